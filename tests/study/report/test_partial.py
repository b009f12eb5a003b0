"""Tables that lack something say what; rows without trees have nothing to compare."""

from __future__ import annotations

from pathlib import Path

from support.study_helpers import LINES, make_study, result, write

from treesyntax.metrics import METRICS
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.report.table_files import markdown_table
from treesyntax.study.results.results import read_results, write_results
from treesyntax.study.run.plan import make_plan


def notes(out: Path) -> tuple[str, ...]:
    return read_study(out).table.notes


def keep(out: Path, wanted: object) -> None:
    """Drop the results for which ``wanted`` does not hold."""
    found = [one for one in read_results(out / "runs.jsonl") if wanted(one)]
    (out / "runs.jsonl").unlink()
    write_results(out / "runs.jsonl", found)


def test_a_partial_table_says_what_is_missing(tmp_path: Path):
    out = make_study(tmp_path)
    assert not any("PARTIAL" in note for note in notes(out))
    keep(
        out,
        lambda one: (
            one.method != "stack_pe"
            and (one.method, one.seed) != ("relation_mask", 3)
            and (one.method, one.metric) != ("sequence", "bleu")
        ),
    )
    assert notes(out)[0] == ("PARTIAL TABLE without bleu of sequence; seed 3 of relation_mask")
    write_report(read_study(out))
    assert any("Not run yet: stack_pe" in line for line in read_study(out).table.advice)
    assert "PARTIAL TABLE without" in (out / "report.html").read_text("utf-8")


def test_a_metric_that_some_runs_lack_is_named(tmp_path: Path):
    out = make_study(tmp_path)
    keep(out, lambda one: (one.seed, one.metric) != (2, "bleu"))
    table = read_study(out).table
    assert table.missing == (
        "PARTIAL TABLE without bleu of seed 2 of sequence, relation_mask and stack_pe"
    )
    few = [note for note in table.notes if note.startswith("No verdict")]
    assert few[0].startswith(
        "No verdict on relation_mask, stack_pe in bleu: the row or its baseline has fewer than 3 runs"
    )


def test_no_verdict_names_the_metric(tmp_path: Path):
    table = read_study(make_study(tmp_path, seeds=[1, 2])).table
    few = [note for note in table.notes if note.startswith("No verdict")]
    assert few == [
        "No verdict on relation_mask, stack_pe in exact and bleu: the row or its baseline has fewer than 3 runs"
    ]


TREES = [f"( answer {number % 5} )" for number in range(LINES)]


def forms(tmp_path: Path, broken: str, first: str = "answer 9") -> Path:
    """A study of logical forms; the outputs of one row are symbols without brackets."""
    out = make_study(tmp_path, binarize={"target-format": "sexpr"}, score=["exact", "bleu"])
    write(out / "data/p/test.tgt", TREES)
    results, plan = [], make_plan(read_recipe(out / "recipe.yaml"))
    for run in plan.runs:
        kept = [line.replace("4", str(run.seed)) for line in TREES]
        lost = [first, *(line.strip("( )") for line in TREES[1:])]
        lines = lost if run.method.name == broken else kept
        write(out / run.folder / "hypotheses.txt", lines)
        for metric in plan.recipe.score:
            value = METRICS[metric](lines, TREES)[0].value
            results.append(result(run.method.name, run.seed, metric, value, LINES))
    (out / "runs.jsonl").unlink()
    write_results(out / "runs.jsonl", results)
    return out


def test_a_row_whose_outputs_are_no_trees_has_nothing_to_compare(tmp_path: Path):
    out = forms(tmp_path, "stack_pe")
    table = read_study(out).table
    words = {row.method: str(row.conclusion) for row in table.rows}
    assert words["stack_pe"] == "nothing to compare"
    assert words["relation_mask"] == "not shown"
    cells = next(table.cells(row) for row in table.rows if row.method == "stack_pe")
    assert cells[1:3] == ["–", "–"]
    assert "-80" not in markdown_table(table)
    write_report(read_study(out))
    assert "None of the outputs of stack_pe is a tree." in (out / "report.md").read_text("utf-8")
    family = [one for one in table.comparisons if one.method == "stack_pe"]
    assert [(one.metric, one.p, one.holm_p) for one in family] == [("exact", None, None)]


def test_against_a_baseline_without_trees_there_is_nothing_to_compare(tmp_path: Path):
    table = read_study(forms(tmp_path, "sequence")).table
    words = {str(row.conclusion) for row in table.rows if row.conclusion}
    assert words == {"nothing to compare"}
    assert all(not one.tested for one in table.comparisons)


def test_one_tree_is_enough_to_compare(tmp_path: Path):
    table = read_study(forms(tmp_path, "stack_pe", first="( answer 9 )")).table  # if a wrong one
    words = {row.method: str(row.conclusion) for row in table.rows}
    assert words["stack_pe"] == "hurts"
