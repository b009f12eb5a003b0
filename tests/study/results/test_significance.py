"""Comparisons in a study: over which runs and items, in which families, and what tables say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest
from support import study_helpers
from support.study_helpers import (
    LINES,
    RATES,
    REFERENCES,
    make_study,
    outputs,
    recipe_content,
    result,
    score,
    write,
)  # fmt: skip

from treesyntax.errors import InputError, OptionError
from treesyntax.metrics import compare_runs, get_metric
from treesyntax.metrics.statistics import holm
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.report.table_notes import COMPARISON_HEADER, comparison_cells
from treesyntax.study.results.comparisons import corrected
from treesyntax.study.results.results import write_results

SEEDS = (1, 2, 3)


def right(method: str, seeds: tuple[int, ...] = SEEDS) -> np.ndarray:
    """Which outputs are right, [lines, runs], in points."""
    runs = [np.array(outputs(method, seed)) == np.array(REFERENCES) for seed in seeds]
    return 100.0 * np.stack(runs, axis=1)


def test_rows_are_compared_with_the_baseline_over_runs_and_items(tmp_path: Path):
    comparisons = read_study(make_study(tmp_path)).comparisons
    assert [(one.method, one.baseline, one.metric) for one in comparisons] == [
        ("relation_mask", "sequence", "exact"), ("stack_pe", "sequence", "exact"),
        ("relation_mask", "sequence", "bleu"), ("stack_pe", "sequence", "bleu"),
    ]  # fmt: skip
    assert [one.significant for one in comparisons] == [True, False, True, False]
    assert all(one.better and one.complete for one in comparisons if one.significant)
    first, expected = comparisons[0], compare_runs(right("relation_mask"), right("sequence"))
    assert (first.difference, first.low, first.high, first.p, first.smallest) == pytest.approx(
        (expected.difference, expected.low, expected.high, expected.p, expected.smallest)
    )
    assert (first.runs, first.items, first.lines) == ((3, 3), LINES, LINES)
    assert first.low < first.difference < first.high


def test_the_primary_metric_is_one_family_and_the_others_are_the_second(tmp_path: Path):
    found = read_study(make_study(tmp_path, primary="bleu")).comparisons
    assert [one.metric for one in found] == ["bleu", "bleu", "exact", "exact"]
    assert [one.primary for one in found] == [True, True, False, False]
    for family in (found[:2], found[2:]):
        assert [one.holm_p for one in family] == holm([one.p for one in family])


def test_a_primary_metric_that_is_not_scored_is_refused(tmp_path: Path):
    with pytest.raises(OptionError, match="primary is 'chrf'; it must be one of exact, bleu"):
        make_study(tmp_path, primary="chrf")


def test_metrics_that_judge_alike_are_one_test(tmp_path: Path, monkeypatch):
    trees = [f"( tree n{number} )" for number in range(LINES)]
    monkeypatch.setattr(study_helpers, "REFERENCES", trees)
    study = read_study(make_study(tmp_path, score=["exact", "tree:sexpr", "unordered:sexpr"]))
    assert [one.same_as for one in study.comparisons] == ["", "", *["exact"] * 4]
    exact, *others = (study.comparisons[place : place + 2] for place in (0, 2, 4))
    for family in (exact, *others):
        assert [one.holm_p for one in family] == holm([one.p for one in exact])
    notes = " ".join(study.table.notes)
    assert "correction for 2 in exact and 0 in other metrics" in notes
    assert (
        "tree:sexpr and unordered:sexpr have the scores of exact in every run of every row: shown once"
        in notes
    )
    assert study.table.shown == ["exact"]


def test_a_primary_metric_stays_in_its_family_where_another_says_the_same(tmp_path: Path):
    """On one test set the primary metric may come after one that judges alike."""
    (exact, *_) = read_study(make_study(tmp_path, score=["exact"])).comparisons
    same = replace(exact, metric="first_word", holm_p=None)
    other = replace(exact, method="other", scores="other", p=0.5, holm_p=None)
    found = corrected([replace(exact, primary=False), same, other])
    assert [one.same_as for one in found] == ["first_word", "", ""]
    wanted = holm([exact.p, 0.5])
    assert [one.holm_p for one in found] == pytest.approx([wanted[0], *wanted])


def test_whole_trees_by_construction_are_not_tested(tmp_path: Path):
    methods = recipe_content()["methods"]
    grown = {"target-format": "sexpr", "target-view": "nary_dfs"}
    methods["stack_pe"]["binarize"] = grown
    methods["free"] = {"arch": "tree_stack_pe_mini", "binarize": grown,
                       "generate": {"tree-constraints": "none"}}  # fmt: skip
    out = make_study(tmp_path, methods=methods, score=["wellformed:sexpr"])
    assert [one.method for one in read_study(out).comparisons] == ["relation_mask", "free"]


def test_copies_of_a_line_are_one_item(tmp_path: Path, monkeypatch):
    def copied(method: str, seed: int) -> list[str]:
        lines = outputs(method, seed)
        return [lines[line % 10] for line in range(LINES)]

    references = [REFERENCES[line % 10] for line in range(LINES)]
    monkeypatch.setattr(study_helpers, "outputs", copied)
    monkeypatch.setattr(study_helpers, "REFERENCES", references)
    out = make_study(tmp_path, score=["exact"])
    write(out / "data/p/test.src", [f" {line % 10}" for line in range(LINES)])
    first = read_study(out).comparisons[0]
    assert (first.items, first.lines) == (10, LINES)
    expected = compare_runs(right("relation_mask")[:10], right("sequence")[:10])
    assert (first.difference, first.p) == pytest.approx((expected.difference, expected.p))
    assert comparison_cells(first)[7] == "10 (40 lines)"
    # The same references of other sources are other items.
    write(out / "data/p/test.src", [str(line) for line in range(LINES)])
    assert read_study(out).comparisons[0].items == LINES


def test_all_runs_of_both_rows_count_and_missing_ones_are_said(tmp_path: Path):
    out = make_study(tmp_path, seeds=[1, 2, 3, 4])
    (out / "runs/stack_pe-1/hypotheses.txt").unlink()
    lines = (out / "runs.jsonl").read_text().split("\n")
    kept = [line for line in lines if not ('"sequence"' in line and '"seed": 3' in line)]
    (out / "runs.jsonl").write_text("\n".join(kept))
    study = read_study(out)
    found = {one.method: one.runs for one in study.comparisons}
    assert found == {"relation_mask": (4, 3), "stack_pe": (3, 3)}
    expected = compare_runs(right("relation_mask", (1, 2, 3, 4)), right("sequence", (1, 2, 4)))
    assert study.comparisons[0].p == pytest.approx(expected.p)
    assert study.table.cells(study.table.rows[1])[1].endswith(" (3 of 4 runs)")


def test_lines_seen_in_training_are_left_out(tmp_path: Path):
    out = make_study(tmp_path, score=["exact:unseen"])
    write(out / "data/p/test.src", [str(number) for number in range(LINES)])
    write(out / "data/p/train.src", [str(number) for number in range(10)])
    write(out / "data/p/train.tgt", REFERENCES[:10])
    metric = get_metric("exact:unseen", [line >= 10 for line in range(LINES)])
    write_results(out / "runs.jsonl", [
        result(name, seed, "exact:unseen", metric(outputs(name, seed), REFERENCES)[0].value)
        for name in RATES for seed in SEEDS
    ])  # fmt: skip
    comparisons = read_study(out).comparisons
    assert {(one.metric, one.lines) for one in comparisons} == {("exact:unseen", 30)}


def test_scores_in_and_out_of_distribution_stand_side_by_side(tmp_path: Path):
    parts = {"test": range(10), "gen": range(10, LINES)}
    metrics = [f"exact@{part}" for part in parts]
    out = make_study(tmp_path, score=metrics, categories="{data}/p/test.category")
    write(out / "data/p/test.src", [str(number) for number in range(LINES)])
    write(out / "data/p/test.category", ["test/a"] * 10 + ["gen/b"] * 15 + ["gen/c"] * (LINES - 25))
    judges = {
        f"exact@{part}": get_metric(f"exact@{part}", [line in lines for line in range(LINES)])
        for part, lines in parts.items()
    }
    write_results(out / "runs.jsonl", [
        result(name, seed, metric, judge(outputs(name, seed), REFERENCES)[0].value)
        for metric, judge in judges.items() for name in RATES for seed in SEEDS
    ])  # fmt: skip
    study = read_study(out)
    assert {(one.metric, one.lines) for one in study.comparisons} == {
        ("exact@test", 10), ("exact@gen", LINES - 10),
    }  # fmt: skip
    assert study.table.header[1:3] == metrics


def test_hypotheses_with_another_score_than_the_recorded_one_are_refused(tmp_path: Path):
    out = make_study(tmp_path, score=["exact"])
    write(out / "runs/stack_pe-1/hypotheses.txt", REFERENCES)
    recorded = score("stack_pe", 1, "exact")
    with pytest.raises(
        InputError, match=rf"stack_pe-1/.* has exact 100.00, but .* has {recorded:.2f}; run the"
    ):
        read_study(out)


def test_another_baseline_in_the_report_only(tmp_path: Path):
    out = make_study(tmp_path)
    comparisons = read_study(out, "stack_pe").comparisons
    assert {(one.method, one.baseline) for one in comparisons} == {
        ("sequence", "stack_pe"), ("relation_mask", "stack_pe"),
    }  # fmt: skip


def test_outputs_of_another_length_are_refused(tmp_path: Path):
    out = make_study(tmp_path)
    write(out / "runs/stack_pe-1/hypotheses.txt", REFERENCES[:3])
    with pytest.raises(InputError, match=r"has 3 lines, but .*test\.tgt has 40; run the study"):
        read_study(out)


def test_a_lost_test_set_is_noted(tmp_path: Path):
    out = make_study(tmp_path)
    (out / "data/p/test.tgt").unlink()
    study = read_study(out)
    write_report(study)
    assert study.comparisons == []
    assert study.table.notes[-1].startswith("Not tested for significance: ")
    assert "test.tgt does not exist" in study.table.notes[-1]


def test_the_table_marks_what_differs_and_the_differences_follow(tmp_path: Path):
    study = read_study(make_study(tmp_path, score=["exact"]))
    for row, mark in zip(study.table.rows, ("", " †°", " ns"), strict=True):
        values = [score(row.method, seed, "exact") for seed in SEEDS]
        assert study.table.cells(row)[1] == f"{fmean(values):.2f} ± {stdev(values):.2f}{mark}"
    note, close = study.table.notes
    assert close.startswith("° the row or its baseline is close to the lowest or highest score")
    assert note.startswith("† differs from sequence: p < 0.05 over training runs and test items, ")
    assert "no proof of equality" in note
    write_report(study)
    first = study.comparisons[0]
    assert comparison_cells(first)[3:5] == [
        f"{first.difference:+.2f}", f"{first.low:+.2f} to {first.high:+.2f}",
    ]  # fmt: skip
    for name in ("report.md", "report.html"):
        text = (study.folder / name).read_text()
        assert all(cell in text for cell in (*COMPARISON_HEADER, *comparison_cells(first)[3:5]))


@pytest.mark.parametrize("seeds", [[1], [1, 2]])
def test_with_fewer_than_three_runs_there_is_no_verdict_and_the_runs_are_shown(
    tmp_path: Path, seeds: list[int]
):
    study = read_study(make_study(tmp_path, seeds=seeds, score=["exact"]))
    assert {(one.p, one.low, one.holm_p, one.significant) for one in study.comparisons} == {
        (None, None, None, False)
    }
    assert comparison_cells(study.comparisons[0])[4:7] == [
        "–",
        "–",
        f"{len(seeds)} and {len(seeds)}",
    ]
    for row in study.table.rows:
        values = [score(row.method, seed, "exact") for seed in seeds]
        runs = ", ".join(f"{value:.2f}" for value in values) if len(values) > 1 else "1 run"
        assert study.table.cells(row)[1] == f"{fmean(values):.2f} ({runs})"
    assert study.table.notes[0].startswith(
        "No verdict on relation_mask, stack_pe in exact: the row or its baseline has fewer than 3 runs"
    )


def test_metrics_without_a_test_and_their_direction_are_said(tmp_path: Path):
    out = make_study(tmp_path, score=["ter", "tree:nonsense"])
    study = read_study(out)
    assert study.table.notes[-1] == "Not tested for significance: tree:nonsense"
    assert study.comparisons[0].difference < 0
    assert study.comparisons[0].better
    write_report(study)
    assert "higher is better, but lower for ter" in (out / "report.md").read_text()
    assert "higher is better, but lower for ter" in (out / "report.html").read_text()


@pytest.mark.parametrize("metric", ["f1:sexpr", "productions:sexpr", "chrf"])
def test_corpus_scores_are_compared_as_they_are_reported(tmp_path: Path, monkeypatch, metric: str):
    trees = [f"( tree n{number} ( has {number % 7} leaves ) )" for number in range(LINES)]
    monkeypatch.setattr(study_helpers, "REFERENCES", trees)
    found = {
        one.method: one for one in read_study(make_study(tmp_path, score=[metric])).comparisons
    }
    means = {name: fmean(score(name, seed, metric) for seed in SEEDS) for name in RATES}
    for name in ("relation_mask", "stack_pe"):
        assert found[name].difference == pytest.approx(means[name] - means["sequence"])
    assert found["relation_mask"].significant
    assert not found["stack_pe"].significant


def test_rows_of_a_grid_name_their_baselines(tmp_path: Path):
    methods = {name: recipe_content()["methods"][name] for name in ("sequence", "relation_mask")}
    study = read_study(
        make_study(tmp_path, methods=methods, axes={"lr": {"train.lr": [1, 2]}}, score=["exact"])
    )
    assert {(one.method, one.baseline) for one in study.comparisons} == {
        ("relation_mask-lr=1", "sequence-lr=1"), ("relation_mask-lr=2", "sequence-lr=2"),
    }  # fmt: skip
    assert "† differs from sequence at the same point of the axes: p" in study.table.notes[0]
