"""The table of a study."""

from __future__ import annotations

import statistics
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from support.study_helpers import ONE, plan_of, result

from treesyntax.study.report.table import Spread, make_table, print_table
from treesyntax.study.report.table_files import latex_table, markdown_table
from treesyntax.study.report.table_notes import footnote_mark, significance_notes
from treesyntax.study.results.results import Result
from treesyntax.study.run.failures import Failure


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=6))
def test_spread_is_mean_and_sample_standard_deviation(values: list[float]):
    spread = Spread.of(values)
    assert spread.values == tuple(values)
    assert spread.mean == pytest.approx(statistics.mean(values))
    if len(values) == 1:
        assert spread.sd is None
        assert str(spread) == f"{values[0]:.2f} (1 run)"
        return
    assert spread.sd == pytest.approx(statistics.stdev(values))
    if len(values) == 2:
        assert str(spread) == f"{spread.mean:.2f} ({values[0]:.2f}, {values[1]:.2f})"
    else:
        assert str(spread) == f"{statistics.fmean(values):.2f} ± {statistics.stdev(values):.2f}"


def test_rows_come_in_the_order_of_the_recipe(tmp_path: Path):
    results = [
        result("stack_pe", 1, "exact", 10.0),
        replace(result("stack_pe", 2, "exact", 20.0), pairs_per_second=15.0, fast=18.0),
        result("sequence", 1, "exact", 7.0),
        result("sequence", 1, "tree:lambda", 8.0),
    ]
    table = make_table(plan_of(tmp_path), results, {})
    assert [row.method for row in table.rows] == ["sequence", "stack_pe"]  # what has begun
    assert table.header == [
        "method", "exact", "tree:lambda", "parameters", "minutes a run", "pairs/s", "seeds",
    ]  # fmt: skip
    assert [table.cells(row) for row in table.rows] == [
        [
            "sequence",
            "7.00 (1 run)",
            "8.00 (1 run)",
            "10",
            "0.02 (training)",
            "5 (4 to 6)",
            "1 of 2",
        ],
        [
            "stack_pe",
            "15.00 (10.00, 20.00)",
            "–",
            "10",
            "0.02 (training)",
            "10 (4 to 18)",
            "2 of 2",
        ],
    ]


def test_unequal_training_is_told_at_the_rows(tmp_path: Path):
    pairs = {"sequence": 1000.0, "relation_mask": 1015.0, "stack_pe": 780.0}
    results = [
        replace(result(name, seed), pairs=seen, ended="last")
        for name, seen in pairs.items()
        for seed in (1, 2)
    ]
    (note,) = (note for note in make_table(plan_of(tmp_path), results, {}).notes if "pairs" in note)
    assert note == (
        "UNEQUAL TRAINING: pairs seen differ by more than 2% from the baseline's: stack_pe -22.0% "
        "(sequence); set train.batch-size for all rows"
    )
    # Trainings that ended by themselves saw as many pairs in each update.
    rested = [replace(one, ended="rested", updates=int(one.pairs or 0)) for one in results]
    notes = make_table(plan_of(tmp_path), rested, {}).notes
    assert not any("pairs" in note for note in notes)
    # So do rows of which one run met the cap.
    mixed = [replace(one, ended="cap" if one.seed == 2 else one.ended) for one in rested]
    assert not any("pairs" in note for note in make_table(plan_of(tmp_path), mixed, {}).notes)
    rested = [replace(one, updates=1000) for one in rested]
    notes = make_table(plan_of(tmp_path), rested, {}).notes
    assert any("pairs an update differ by more than 2%" in note for note in notes)
    assert not any("runs of a row" in note for note in notes)
    two_gpus = [
        replace(one, pairs=2 * (one.pairs or 0)) if one.seed == 2 else one for one in rested
    ]
    (note,) = (n for n in make_table(plan_of(tmp_path), two_gpus, {}).notes if "runs of a row" in n)
    assert note.startswith(
        "UNEQUAL TRAINING: pairs an update differ between runs of a row: sequence 1.0 to 2.0, "
    )
    plan = plan_of(tmp_path, "differences.train.max-tokens=as the paper has it")
    notes = make_table(plan, results, {}).notes
    assert any(note.endswith("(sequence); declared: as the paper has it") for note in notes)


def test_speeds_of_a_busy_machine_are_marked(tmp_path: Path):
    results = [replace(result("sequence", 1), load=2.0), replace(result("stack_pe", 1), load=1.0)]
    table = make_table(plan_of(tmp_path), results, {})
    assert [table.cells(row)[5] for row in table.rows] == ["5 (4 to 6) ~", "5 (4 to 6)"]
    assert any(note.startswith("~ measured while the machine had more") for note in table.notes)


def test_settings_of_its_own_are_marked(tmp_path: Path):
    overrides = [
        "methods.relation_mask.train.lr=0.5",
        "methods.relation_mask.generate.beam=1",
        "methods.stack_pe.train.encoder-injection=stack_pe(depth=3)",
    ]
    plan, rows = plan_of(tmp_path, *overrides), ("sequence", "relation_mask", "stack_pe")
    table = make_table(plan, [result(name) for name in rows], {})
    assert [row.mark for row in table.rows] == ["", "ᵃ", "ᵇ"]
    assert table.notes[1:] == (
        "ᵃ relation_mask: own settings (--lr 0.5; --beam 1), not equal to those of the other rows",
        "ᵇ stack_pe: injection stack_pe(depth=3)",
    )
    assert make_table(plan, [result("stack_pe")], {}).notes[1:] == (
        "ᵃ stack_pe: injection stack_pe(depth=3)",  # nothing of rows that were not run
    )


def test_a_beam_that_ends_by_other_rules_in_rows_that_grow_trees_is_told(tmp_path: Path):
    grows = [
        "methods.stack_pe.binarize.target-view=nary_dfs",
        "methods.stack_pe.binarize.target-format=lambda",
    ]
    results = [result("sequence"), result("stack_pe")]

    def told(*overrides: str, rows: list[Result] = results) -> list[str]:
        notes = make_table(plan_of(tmp_path, *overrides), rows, {}).notes
        return [note for note in notes if note.startswith("UNEQUAL SEARCH")]

    (note,) = told(*grows, "generate.beam=2")
    assert (
        "the beam of stack_pe goes on to the best tree, that of the other rows ends with the first"
        in note
    )
    assert told(*grows, "generate.beam=null") == [note]  # fairseq's own beam is 5
    assert not told(*grows, "generate.beam=1")
    assert not told("generate.beam=2")
    assert not told(*grows, "generate.beam=2", rows=results[1:])
    free = ["methods.stack_pe.generate.tree-constraints=none"]
    assert not told(*grows, *free, "generate.beam=2")


def test_rows_that_have_learned_nothing_or_everything_are_told(tmp_path: Path):
    def told(*scores: float, metric: str = "exact", overrides: tuple[str, ...] = ()) -> list[str]:
        names = ("sequence", "relation_mask", "stack_pe")[: len(scores)]
        results = [
            result(name, seed, metric, value + spread)
            for name, value in zip(names, scores, strict=True)
            for seed, spread in ((1, -0.5), (2, 0.5))
        ]
        notes = make_table(plan_of(tmp_path, *overrides), results, {}).notes
        return [note for note in notes if note.startswith("NOTHING ")]

    (low,) = told(0.6, 0.9)
    assert low.startswith("NOTHING LEARNED: exact of all rows is below 2, where differences say")
    (high,) = told(99.2, 99.1, 99.5)
    assert high.startswith(
        "NOTHING LEFT TO GAIN: exact of all rows is above 98; less training data"
    )
    assert not told(0.6, 2.0)
    assert not told(99.2, 98.0)
    assert not told(0.6, 99.5)
    assert not told(0.6, metric="tree:lambda")  # does not decide
    assert told(0.6, metric="bleu", overrides=("score=[bleu]",))
    assert not told(0.6, metric="ter", overrides=("score=[ter]",))  # the lower, the better
    (note,) = make_table(plan_of(tmp_path), [result("stack_pe", 1, "exact", 0.5)], {}).notes
    assert note == "PARTIAL TABLE without exact of seed 2 of stack_pe; tree:lambda of stack_pe"


def test_rows_are_at_a_limit_beside_their_own_baseline(tmp_path: Path):
    plan = plan_of(tmp_path, "axes.lr={train.lr: [0.1, 0.2]}")
    scores = {0.1: (0.5, 0.2, 0.3), 0.2: (0.5, 0.2, 80.0)}
    results = [
        result(f"{name}-lr={rate}", 1, "exact", score)
        for rate, own in scores.items()
        for name, score in zip(("sequence", "relation_mask", "stack_pe"), own, strict=True)
    ]
    (note,) = (
        note for note in make_table(plan, results, {}).notes if note.startswith("NOTHING LEARNED")
    )
    rows = "sequence-lr=0.1, relation_mask-lr=0.1 and stack_pe-lr=0.1"
    assert note.startswith(f"NOTHING LEARNED: exact of {rows} is below 2")


def test_rows_share_a_note_that_is_true_of_both(tmp_path: Path):
    same = ["methods.relation_mask.train.lr=0.5", "methods.stack_pe.train.lr=0.5"]
    plan = plan_of(tmp_path, *same, "methods.stack_pe.train.encoder-injection=stack_pe(depth=3)")
    table = make_table(plan, [result("relation_mask"), result("stack_pe")], {})
    assert [row.mark for row in table.rows] == ["ᵃ", "ᵃ,ᵇ"]
    assert table.notes[1:] == (
        "ᵃ relation_mask, stack_pe: own settings (--lr 0.5), not equal to those of the other rows",
        "ᵇ stack_pe: injection stack_pe(depth=3)",
    )
    assert table.cells(table.rows[1])[0] == "stack_peᵃ,ᵇ"
    assert r"stack\_pe$^{a}$,$^{b}$ &" in latex_table(table)
    marks = [footnote_mark(number) for number in range(1, 60)]
    assert len({*marks}) == 59
    assert marks[24:26] == ["ᶻ", "ᵃᵃ"]


def test_several_metrics_that_say_the_same_are_one_note(tmp_path: Path):
    plan = plan_of(tmp_path, "score=[exact,tree:lambda,wellformed:lambda]")
    results = [result("sequence", 1, metric) for metric in plan.recipe.score]
    partial, note = make_table(plan, results, {}).notes
    assert partial == "PARTIAL TABLE without seed 2 of sequence"
    assert note == (
        "tree:lambda and wellformed:lambda have the scores of exact in every run of every row: shown once"
    )
    one = replace(ONE, primary=False, same_as="exact")
    tests = [replace(one, metric=metric, method=row) for row in "ab" for metric in ("x", "y")]
    notes = significance_notes(plan.recipe, [replace(ONE, method="a"), *tests])
    assert notes[1:] == ["x and y score every output as exact does: one test (a, b)"]


def test_failed_runs_are_named_with_their_first_failure(tmp_path: Path):
    plan = plan_of(tmp_path)
    failures = {
        "stack_pe-2/train": Failure("exit status 1: boom", "logs/a.log"),
        "binarize/sequence": Failure("no disk", "logs/b.log"),
    }
    table = make_table(plan, [], failures)
    assert table.failed == (
        "sequence-1 failed: no disk (see logs/b.log)",
        "sequence-2 failed: no disk (see logs/b.log)",
        "stack_pe-2 failed: exit status 1: boom (see logs/a.log)",
    )
    assert [row.seeds for row in table.rows] == [
        "0 of 2, 2 failed", "0 of 2, 1 failed",
    ]  # fmt: skip


def test_brackets_in_a_message_are_no_markup(tmp_path: Path):
    failures = {"stack_pe-2/train": Failure("[bold]x[/] | y*", "l")}
    table = make_table(plan_of(tmp_path), [], failures)
    console = Console(width=100, record=True, file=(tmp_path / "out.txt").open("w"))
    print_table(table, console)
    assert "[bold]x[/] | y*" in console.export_text()
    assert r"\[bold\]x\[/\] \| y\*" in markdown_table(table)


def test_the_markdown_table_is_rectangular(tmp_path: Path):
    text = markdown_table(make_table(plan_of(tmp_path), [result("stack_pe")], {}))
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 3
    assert {line.count("|") for line in lines} == {8}
