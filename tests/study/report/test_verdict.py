"""What the report says first: the verdict, what is shown once, and what curves cannot tell."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.study_helpers import ONE, make_study, plan_of, result

from treesyntax.files import write_json
from treesyntax.palette import line_of
from treesyntax.study.report.curves import not_ended, targets_note
from treesyntax.study.report.data_notes import same_targets
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.report.table import find_coinciding, make_table
from treesyntax.study.report.verdict import draw_verdict, verdict_text
from treesyntax.study.results.comparisons import Comparison, Conclusion

LINES = {name: line_of(number) for number, name in enumerate("abcd")}
WORST = replace(
    ONE, method="b", difference=-2.0, low=-3.0, high=-1.0, conclusion=Conclusion("hurts", "worse")
)
UNSURE = replace(
    ONE, method="c", difference=0.5, low=-1.0, high=2.0, holm_p=0.4,
    conclusion=Conclusion("not shown", "not shown to differ"),
)  # fmt: skip
FEW = replace(
    ONE, method="d", low=None, high=None, p=None, holm_p=None, runs=(2, 3),
    conclusion=Conclusion("too few runs", "the row has 2 runs"),
)  # fmt: skip


def test_each_row_is_a_line_with_its_interval():
    (panel,) = draw_verdict([ONE, WORST, UNSURE, FEW], LINES).axes
    lines = [
        (line.get_segments()[0][:, 0].tolist(), line.get_colors()) for line in panel.collections
    ]
    assert [ends for ends, _ in lines] == [[1.0, 3.0], [-3.0, -1.0], [-1.0, 2.0]]
    dots = panel.lines[1:]  # the first line is that of no difference
    colours = [LINES[name]["color"] for name in "abc"]
    assert [dot.get_color() for dot in dots] == colours
    assert [dot.get_markerfacecolor() for dot in dots] == [*colours[:2], "white"]
    labels = [label.get_text() for label in panel.get_yticklabels()]
    assert labels == ["a", "b", "c", "d (2 of 3 runs)"]
    assert panel.get_ylim()[0] > panel.get_ylim()[1]  # the first row is on top
    assert "← worse, better →" in panel.get_xlabel()
    ter = replace(ONE, metric="ter", difference=-2.0, low=-3.0, high=-1.0, baseline="other")
    (panel,) = draw_verdict([replace(ter, baseline="more"), ter], LINES).axes
    assert "← better, worse →" in panel.get_xlabel()
    assert [label.get_text() for label in panel.get_yticklabels()] == ["a − more", "a − other"]


def test_nothing_is_drawn_where_nothing_can_be_said():
    assert draw_verdict([FEW], LINES) is None
    assert verdict_text([ONE, WORST, UNSURE, FEW]) == (
        "Mechanism helps on exact: a. Not shown on exact, which is no proof of equality: c. "
        "Hurts on exact: b. Too few runs on exact: d."
    )


def test_the_verdict_says_where_another_metric_says_otherwise():
    def other(one: Comparison, metric: str, **changes: float) -> Comparison:
        changes = {"primary": False, "conclusion": None, "holm_p": 0.01, **changes}
        return replace(one, metric=metric, **changes)

    found = other(UNSURE, "f1:sexpr", difference=2.97)
    assert verdict_text([UNSURE, found]) == (
        "Not shown on exact, which is no proof of equality: c (but +2.97 † on f1:sexpr, "
        "which is not the primary metric)."
    )
    both = [UNSURE, found, other(UNSURE, "ter", difference=-1.0)]
    assert "c (but +2.97 † on f1:sexpr and -1.00 † on ter, none of which is" in verdict_text(both)
    # A row that is better on all is better, and what is not shown says nothing.
    plain = "Mechanism helps on exact: a."
    assert verdict_text([ONE, other(ONE, "f1"), replace(other(ONE, "ter"), holm_p=0.4)]) == plain
    assert "a (but +2.00 † on ter, which" in verdict_text([ONE, other(ONE, "ter")])
    assert verdict_text([ONE, other(WORST, "f1")]) == plain  # another row's


def test_the_verdict_comes_first(tmp_path: Path):
    study = read_study(make_study(tmp_path))
    page = write_report(study).read_text()
    assert page.index('id="verdict"') < page.index('id="results"') < page.index('id="differences"')
    assert "Mechanism helps on exact: relation_mask." in page
    assert "relation_mask: mechanism helps. Better than the baseline (+" in page
    numbers = json.loads((study.folder / "figures/verdict.json").read_text())
    assert [(row["method"], row["significant"]) for row in numbers] == [
        ("relation_mask", True), ("stack_pe", False),
    ]  # fmt: skip
    text = (study.folder / "report.md").read_text()
    assert text.index("![Difference of each row") < text.index("| method |")
    assert page.index("<details><summary>In other metrics") < page.index('id="other-differences"')


def test_metrics_that_coincide_are_shown_once(tmp_path: Path):
    def results(last: float) -> list:
        values = [("sequence", 1, 7.0), ("sequence", 2, 8.0), ("stack_pe", 1, 9.0)]
        first = [result(*row[:2], "tree:lambda", row[2]) for row in values]
        return [*first, *(result(*row[:2], "exact", row[2]) for row in values[:2]),
                result("stack_pe", 1, "exact", last)]  # fmt: skip

    plan = plan_of(tmp_path, "score=[tree:lambda,exact]", "primary=exact")
    table = make_table(plan, results(9.0), {})
    assert table.header == ["method", "exact", "parameters", "minutes a run", "pairs/s", "seeds"]
    assert (
        "tree:lambda has the scores of exact in every run of every row: shown once" in table.notes
    )
    assert all(len(row.metrics) == 2 for row in table.rows if row.metrics)  # tables/*.csv have both
    assert make_table(plan, results(9.5), {}).shown == ["tree:lambda", "exact"]
    assert make_table(plan, [], {}).shown == ["tree:lambda", "exact"]
    # The same means by chance, but not the same items.
    tests = {"tree:lambda": replace(ONE, metric="tree:lambda", primary=False)}
    rows = [replace(row, tests=tests) for row in table.rows]
    assert find_coinciding(plan.recipe.score, plan.recipe.primary, rows) == {}


def manifest(view: str, tokens: int) -> dict:
    side = {"language": "lambda", "view": view, "dictionary_symbols": 9}
    return {"sides": {"target": side}, "splits": {"valid": {"lambda": {"tokens": tokens}}}}


@pytest.mark.parametrize(("view", "tokens"), [("lcrs_dfs", 50), ("words", 51), ("words", 50)])
def test_curves_of_different_target_tokens_are_told_apart(tmp_path: Path, view: str, tokens: int):
    plan, curves = plan_of(tmp_path), dict.fromkeys(("sequence", "relation_mask", "stack_pe"))
    for name, facts in (("sequence", ("words", 50)), ("relation_mask+stack_pe", (view, tokens))):
        write_json(tmp_path / "binarized" / name / "binarize.json", manifest(*facts))
    notes = targets_note(same_targets(plan, tmp_path), curves)
    if (view, tokens) == ("words", 50):
        assert notes == []
    else:
        (note,) = notes
        assert note.endswith("within each of these groups: sequence | relation_mask, stack_pe")
        assert targets_note(same_targets(plan, tmp_path), {"stack_pe": None}) == []


def test_training_that_had_not_ended_is_told():
    results = [replace(result("a", seed), best_update=best) for seed, best in ((1, 4), (2, 5))]
    (note,) = not_ended([*results, result("b")], {}, False, {})
    assert note.startswith(
        "Training had not ended: the best checkpoint was the last one of a (1 of"
    )
    assert " b " not in note
    assert not_ended(results[:1], {}, averaged=False) == []
    # The last checkpoints are tested: best_update is always the last one.
    curves = {"a": [{1: 3.0, 2: 2.0}, {1: 2.0, 2: 3.0}], "b": [{1: 2.0, 2: 2.5}]}
    (note,) = not_ended(results, curves, averaged=True)
    assert "lowest at the last update of a (1 of 2 runs)." in note
    assert note.endswith("and their order")
    (note,) = not_ended(results, curves, averaged=True, longer="treesyntax study x")
    assert note.endswith("and their order. Train twice as long: treesyntax study x")
    assert not_ended(results, {"b": curves["b"]}, averaged=True) == []
