"""Conclusions in words: from baseline and control, in every renderer of a study's table."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
import support.study_helpers as study_helpers
from rich.console import Console
from support.study_helpers import (
    LINES,
    RATES,
    REFERENCES,
    keep_items,
    make_study,
    make_two_test_sets,
    outputs,
    recipe_content,
    result,
    write,
)

import treesyntax as ts
from treesyntax.__main__ import main
from treesyntax.metrics import compare_runs, get_metric
from treesyntax.metrics.statistics import holm
from treesyntax.study.recipe.rows import run_name
from treesyntax.study.report.map import Cell, draw_map, grey, map_table, method_lines, read_cells
from treesyntax.study.report.report import Study, read_study, write_report
from treesyntax.study.report.table import print_table
from treesyntax.study.report.table_files import latex_table, markdown_table
from treesyntax.study.report.table_notes import comparison_cells, would_find
from treesyntax.study.results import figure_files
from treesyntax.study.results.comparisons import Comparison
from treesyntax.study.results.figure_files import svg_text
from treesyntax.study.results.results import read_results, write_results

pytestmark = pytest.mark.usefixtures("empty_figures")
TREES = ("relation_mask", "stack_pe")


@pytest.fixture
def whole_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the tests that read them."""
    monkeypatch.setattr(figure_files, "svg_text", svg_text)


@pytest.fixture(autouse=True)
def weak_controls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs of controls are wrong more often than those of their rows."""
    for name in TREES:
        monkeypatch.setitem(RATES, f"{name}/random", 0.6)


def methods(*controlled: str) -> dict:
    content = recipe_content()["methods"]
    for name in controlled:
        content[name]["controls"] = ["random"]
    return content


def changed(out: Path, choose: dict[str, object], **changes: object) -> Study:
    """The study with other records of the runs of some rows, by row the number of them."""
    results = [
        replace(one, **changes) if one.seed <= choose.get(one.method, 0) else one
        for one in read_results(out / "runs.jsonl")
    ]
    write_results(out / "runs.jsonl", results)
    return read_study(out)


def words(study: Study) -> dict[str, str]:
    return {one.method: str(one.conclusion) for one in study.table.conclusions}


def primary(study: Study) -> dict[str, Comparison]:
    return {one.method: one for one in study.comparisons if one.primary}


def test_syntax_helps_where_a_row_is_better_than_baseline_and_control(tmp_path: Path):
    study = read_study(make_study(tmp_path, methods=methods(*TREES), score=["exact", "bleu"]))
    assert words(study) == {"relation_mask": "syntax helps", "stack_pe": "not shown"}
    row = primary(study)["relation_mask"]
    assert row.conclusion.control == "relation_mask/random"
    assert row.conclusion.why.startswith("better than the baseline (+")
    # Controls stand below their rows, are of no family and have no conclusion.
    assert [one.method for one in study.table.rows] == [
        "sequence", "relation_mask", "relation_mask/random", "stack_pe", "stack_pe/random",
    ]  # fmt: skip
    first = [one for one in study.comparisons if one.in_family]
    assert [one.holm_p for one in first] == holm([one.p for one in first])
    assert [one.method for one in first] == [*TREES]
    # Their comparisons are one family of their own.
    scores = study.scores
    tables = {row.method: scores.table(row.method, "sequence", "exact") for row in study.table.rows}
    p = [compare_runs(tables[name], tables[f"{name}/random"]).p for name in TREES]
    found = [primary(study)[name].conclusion.control_p for name in TREES]
    assert found == pytest.approx(holm(p))


@pytest.mark.parametrize(("rates", "expected"), [
    ({"relation_mask/random": 0.05}, "mechanism helps"),
    ({"relation_mask/random": 0.9}, "syntax helps"),
    ({"relation_mask": 0.95, "relation_mask/random": 0.99}, "hurts"),
    ({"relation_mask": 0.5}, "not shown"),
    (dict.fromkeys([*RATES, "relation_mask/random"], 2.0), "on the floor"),
    (dict.fromkeys([*RATES, "relation_mask/random"], 0.0), "at the ceiling"),
])  # fmt: skip
def test_each_word_has_its_case(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rates: dict[str, float], expected: str
):
    for name, rate in rates.items():
        monkeypatch.setitem(RATES, name, rate)
    study = read_study(make_study(tmp_path, methods=methods("relation_mask"), score=["exact"]))
    assert words(study)["relation_mask"] == expected
    mark = study.table.rows[1].metric("exact")
    assert ("†" in mark) is (expected in ("mechanism helps", "syntax helps", "hurts"))
    assert ("ns" in mark) is (expected == "not shown")


def test_of_several_controls_the_least_favourable_one_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(RATES, "relation_mask/flat", 0.05)
    content = methods("relation_mask")
    content["relation_mask"]["controls"] = ["random", "flat"]
    study = read_study(make_study(tmp_path, methods=content, score=["exact"]))
    conclusion = primary(study)["relation_mask"].conclusion
    assert (conclusion.word, conclusion.control) == ("mechanism helps", "relation_mask/flat")


@pytest.mark.parametrize(("flat", "expected"), [(0.9, "still learning"), (0.05, "mechanism helps")])
def test_a_row_is_better_than_no_control_that_was_still_learning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flat: float, expected: str
):
    """The random one scores lower than the flat one at rest, of which alone p had been looked at."""
    monkeypatch.setitem(RATES, "relation_mask/random", 1.0)
    monkeypatch.setitem(RATES, "relation_mask/flat", flat)
    content = methods("relation_mask")
    content["relation_mask"]["controls"] = ["random", "flat"]
    out = make_study(tmp_path, methods=content, score=["exact"])
    assert words(read_study(out))["relation_mask"] == expected.replace(
        "still learning", "syntax helps"
    )
    write_results(out / "runs.jsonl", [
        replace(one, ended="last") for one in read_results(out / "runs.jsonl")
        if one.method == "relation_mask/random"
    ])  # fmt: skip
    assert words(read_study(out))["relation_mask"] == expected


@pytest.mark.parametrize(
    ("state", "why"), [("absent", "has no runs"), ("other", "is of other code")]
)
def test_without_one_of_its_controls_no_row_shows_that_syntax_helps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, why: str
):
    """Also where files of scores by item are joined again, and where there is no other control."""
    monkeypatch.setitem(RATES, "relation_mask/flat", 0.05)
    content = methods("relation_mask")
    content["relation_mask"]["controls"] = ["random", "flat"]
    out = make_study(tmp_path, methods=content, score=["exact"])
    assert words(read_study(out))["relation_mask"] == "mechanism helps"

    def with_state(*controls: str) -> None:
        results = [
            replace(
                one, code={"train: nn": "b" if one.method in controls else "a", "train: rule": "3"}
            )
            for one in read_results(out / "runs.jsonl")
            if state == "other" or one.method not in controls
        ]
        (out / "runs.jsonl").unlink()
        write_results(out / "runs.jsonl", results)

    with_state("relation_mask/flat")
    conclusion = primary(read_study(out))["relation_mask"].conclusion
    assert (conclusion.word, conclusion.control) == ("mechanism helps", "relation_mask/random")
    assert (
        f"its control relation_mask/flat {why}, so syntax is not tested against it"
        in conclusion.why
    )
    write_report(read_study(out))
    table = copied(out, tmp_path / "kept") / "table.csv"
    with table.open(encoding="utf-8") as stream:
        again = {row["method"]: row for row in csv.DictReader(stream)}
    assert (again["relation_mask"]["conclusion"], again["relation_mask"]["why"]) == (
        "mechanism helps", conclusion.why,
    )  # fmt: skip
    with_state("relation_mask/flat", "relation_mask/random")
    conclusion = primary(read_study(out))["relation_mask"].conclusion
    assert (conclusion.word, conclusion.control) == ("mechanism helps", "")
    for name in ("random", "flat"):
        assert f"its control relation_mask/{name} {why}" in conclusion.why
    assert conclusion.why.endswith("so syntax is not tested")


def test_a_control_of_which_other_lines_count_is_not_compared(tmp_path: Path):
    """With source files of its own training may have other lines. It had been compared line by line, or crashed."""
    metric = "exact:unseen"
    content = methods()
    content["trees"] = {**content["relation_mask"]}
    content["trees"]["data"] = {"source": {"train": "{data}/p/random.src"}}
    content["relation_mask"]["controls"] = ["trees", "random"]
    out = make_study(tmp_path, methods=content, score=[metric])
    write(out / "data/p/test.src", [str(line) for line in range(LINES)])
    write(out / "data/p/train.src", ["0", "1"])
    write(out / "data/p/train.tgt", REFERENCES[:2])
    write(out / "data/p/random.src", ["a", "2"])
    results = []
    for name in (*content, "relation_mask/random"):
        counted = [line != 2 if name == "trees" else line > 1 for line in range(LINES)]
        for seed in (1, 2, 3):
            value = get_metric(metric, counted)(outputs(name, seed), REFERENCES)[0].value
            results.append(result(name, seed, metric, value, sum(counted)))
    write_results(out / "runs.jsonl", results)
    conclusion = primary(read_study(out))["relation_mask"].conclusion
    assert (conclusion.word, conclusion.control) == ("mechanism helps", "relation_mask/random")
    why = "its control trees counts other test lines, so syntax is not tested against it"
    assert why in conclusion.why
    write_report(read_study(out))
    kept = copied(out, tmp_path / "kept")
    assert (kept / "table.csv").read_bytes() == (out / "tables/table.csv").read_bytes()


def test_runs_that_were_still_learning_have_no_verdict_and_no_mark(tmp_path: Path):
    out = make_study(tmp_path, methods=methods("relation_mask"), score=["exact", "bleu"])
    # One of three runs is not more than a third.
    assert words(changed(out, {"relation_mask": 1}, ended="cap"))["relation_mask"] == "syntax helps"
    study = changed(out, {"relation_mask": 2}, ended="last")
    assert words(study)["relation_mask"] == "still learning"
    assert primary(study)["relation_mask"].conclusion.why == (
        "2 of 3 runs of the row were still learning when they ended: train longer"
    )
    assert not any(one.significant for one in study.comparisons if one.method == "relation_mask")
    # Corrected p-values, which read as verdicts, are left out in each metric.
    row = [record for record in ts.read_study(out).table() if record["row"] == "relation_mask"]
    assert [(bool(record["p"]), record["holm_p"]) for record in row] == [(True, None)] * 2
    shown = [comparison_cells(one) for one in study.comparisons if one.method == "relation_mask"]
    assert [cells[5] for cells in shown] == ["–", "–"]
    assert not any(mark in cell for cell in study.table.cells(study.table.rows[1]) for mark in "†°")
    command = f"treesyntax study {out}/recipe.yaml --out {out} --train-on 2"
    assert study.table.advice[0].startswith("STILL LEARNING: relation_mask, or what")
    assert study.table.advice[0].endswith(f"Train twice as long: {command}")
    page = write_report(study).read_text()
    assert page.index(command) < page.index('id="results"')  # in the verdict


@pytest.mark.parametrize(
    ("row", "whose"), [("sequence", "baseline"), ("relation_mask/random", "control")]
)
def test_baseline_and_control_must_rest_too(tmp_path: Path, row: str, whose: str):
    out = make_study(tmp_path, methods=methods("relation_mask"), score=["exact"])
    conclusion = primary(changed(out, {row: 3}, ended="cap"))["relation_mask"].conclusion
    assert conclusion.word == "still learning"
    assert f"3 of 3 runs of the {whose} were" in conclusion.why


def test_a_fixed_budget_allows_a_verdict_that_says_after_how_many_updates(tmp_path: Path):
    out = make_study(tmp_path, methods=methods("relation_mask"), score=["exact"], budget="fixed")
    study = changed(
        out, dict.fromkeys([*RATES, "relation_mask/random"], 3), ended="cap", updates=2600
    )
    assert words(study)["relation_mask"] == "syntax helps after 2,600 updates"
    assert "†" in study.table.rows[1].metric("exact")
    write_report(study)
    kept = copied(out, tmp_path / "kept")
    assert (kept / "table.csv").read_bytes() == (out / "tables/table.csv").read_bytes()


def test_a_fixed_budget_says_where_more_updates_may_change_the_verdict(tmp_path: Path):
    """With 500 updates a tree decoder led by 4.9 points, with 1,500 it was 2.1 behind."""
    out = make_study(tmp_path, methods=methods("relation_mask"), score=["exact"], budget="fixed")
    rows = [*RATES, "relation_mask/random"]
    few = changed(out, {"sequence": 3} | dict.fromkeys(rows, 0), ended="last")
    assert "more updates" not in primary(few)["relation_mask"].conclusion.why
    many = changed(out, dict.fromkeys(rows, 3), ended="last")
    conclusion = primary(many)["relation_mask"].conclusion
    assert conclusion.word == "syntax helps"
    assert conclusion.why.endswith(
        "9 of 9 trainings were best at their end, so more updates may change this"
    )


def test_of_older_records_it_is_said_that_it_is_not_known(tmp_path: Path):
    out = make_study(tmp_path, score=["exact"])
    assert not any("Older records" in note for note in read_study(out).table.notes)
    study = changed(out, {"relation_mask": 3}, ended=None)
    (note,) = [note for note in study.table.notes if "Older records" in note]
    assert note.startswith("Older records do not say how these trainings ended")
    assert note.endswith(": relation_mask")
    assert words(study)["relation_mask"] == "mechanism helps"


def copied(out: Path, folder: Path) -> Path:
    """A folder with the two files of a study and the tables that the command makes of them."""
    assert main(["report", str(keep_items(out, folder))]) == 0
    return folder


@pytest.mark.usefixtures("whole_figures")
def test_the_words_stand_in_every_renderer(tmp_path: Path, capsys):
    study = read_study(make_study(tmp_path, methods=methods("relation_mask"), score=["exact"]))
    out, word = study.folder, "syntax helps"
    page = write_report(study).read_text()
    conclusion = primary(study)["relation_mask"].conclusion
    line = f"relation_mask: {word}. Better than the baseline"
    console = Console(width=300, file=io.StringIO(), record=True)
    print_table(study.table, console)
    terminal = console.export_text()
    for text in (terminal, page, (out / "report.md").read_text()):
        assert line in text
    assert page.index(line) < page.index("<figure>") < page.index('id="results"')
    for text in (latex_table(study.table), markdown_table(study.table)):
        (row,) = [
            one
            for one in text.splitlines()
            if "mask" in one and "random" not in one and word in one
        ]
        assert row
    assert word in (out / "figures/verdict.svg").read_text()
    (numbers, *_) = json.loads((out / "figures/verdict.json").read_text())
    assert (numbers["conclusion"]["word"], numbers["conclusion"]["why"]) == (word, conclusion.why)
    with (out / "tables/table.csv").open() as stream:
        rows = {row["method"]: row for row in csv.DictReader(stream)}
    assert (rows["relation_mask"]["conclusion"], rows["relation_mask"]["why"]) == (
        word,
        conclusion.why,
    )
    assert rows["relation_mask"]["control"] == "relation_mask/random"
    assert rows["relation_mask/random"]["conclusion"] == ""
    (record,) = [one for one in ts.read_study(out).table() if one["row"] == "relation_mask"]
    assert (record["conclusion"], record["why"]) == (word, conclusion.why)
    assert record["control_p"] == conclusion.control_p
    # The same from the scores by item alone, control included.
    capsys.readouterr()
    kept = copied(out, tmp_path / "kept")
    assert (kept / "table.csv").read_bytes() == (out / "tables/table.csv").read_bytes()
    assert line in capsys.readouterr().out


def test_every_table_says_what_it_would_find(tmp_path: Path):
    study = read_study(
        make_study(tmp_path, methods=methods("relation_mask"), score=["exact", "bleu"])
    )
    *_, line = study.table.tables[0][2]
    smallest = {one.method: one.smallest for one in study.comparisons if one.metric == "exact"}
    ends = sorted(smallest[name] for name in TREES)
    assert line[:2] == ["would find", f"{ends[0]:.2f} to {ends[1]:.2f}"]
    assert len(line) == len(study.table.header)
    assert would_find([replace(study.comparisons[0], smallest=None)]) == ""
    assert "would find" in latex_table(study.table)


def test_minutes_stand_beside_parameters(tmp_path: Path):
    out = make_study(tmp_path, score=["exact"])
    place = read_study(out).table.header.index("minutes a run")
    assert read_study(out).table.header[place - 1] == "parameters"
    seconds = {"train": 120.0, "start_up": 30.0, "generate": 15.0, "hypotheses": 15.0, "score": 6.0}
    study = changed(out, {"sequence": 3}, train_seconds=120.0, seconds=seconds)
    minutes = [study.table.cells(row)[place] for row in study.table.rows]
    assert minutes == ["3.1", "0.02 (training)", "0.02 (training)"]
    write_report(study)
    with (out / "tables/table.csv").open() as stream:
        row = next(csv.DictReader(stream))
    parts = [row[f"minutes_{name}"] for name in ("training", "generation", "scoring", "start_up")]
    assert parts == ["2.0", "0.5", "0.1", "0.5"]


def domains_study(tmp_path: Path) -> Path:
    return make_two_test_sets(tmp_path, score=["exact"], methods=methods("relation_mask"))


@pytest.mark.usefixtures("whole_figures")
def test_the_map_has_word_and_number_and_a_line_a_method(tmp_path: Path, capsys):
    out = domains_study(tmp_path)
    study = changed(out, {"stack_pe-domain=news": 3}, ended="cap")
    page = write_report(study).read_text()
    cells = read_cells(out / "tables/map.csv")
    assert method_lines(cells) == [
        "relation_mask: syntax helps on law, news",
        "stack_pe: not shown on law; still learning on news",
    ]
    for line in method_lines(cells):
        assert page.index('id="map"') < page.index(line)
    found = {(cell.test_set, cell.row): cell for cell in cells}
    assert not found["news", "stack_pe"].significant
    for name in ("law", "news"):
        assert found[name, "relation_mask"].control == "relation_mask/random"
        assert found[name, "relation_mask/random"].conclusion == ""
    _, header, rows = map_table(cells)
    table = {row[0]: row[1:] for row in rows}
    assert table["relation_mask"][0].endswith("] syntax helps")
    assert len(table["would find"]) == len(header) - 1
    rows_of = {n: [c for c in cells if c.test_set == n and c.conclusion] for n in ("law", "news")}
    for name, text in zip(header[1:], table["would find"], strict=True):
        smallest = [cell.smallest for cell in rows_of[name]]  # without the control, as in the table
        assert text == f"{min(smallest):.1f} to {max(smallest):.1f}"
    drawing = (out / "figures/map.svg").read_text()
    assert all(text in drawing for text in ("syntax helps", "still learning", "would find"))
    capsys.readouterr()
    kept = copied(out, tmp_path / "kept")
    assert (kept / "map.csv").read_bytes() == (out / "tables/map.csv").read_bytes()
    assert "relation_mask: syntax helps on law, news" in capsys.readouterr().out


def test_controls_in_a_map_have_no_mark_either_where_trainings_had_not_rested(tmp_path: Path):
    out = domains_study(tmp_path)
    study = changed(out, dict.fromkeys(names_of(out), 3), ended="last")
    write_report(study)
    cells = read_cells(out / "tables/map.csv")
    assert {cell.no_verdict for cell in cells if cell.row == "relation_mask/random"} == {
        "still learning"
    }
    assert not any("†" in text for line in map_table(cells).rows for text in line)


def names_of(out: Path) -> list[str]:
    return [one.method for one in read_results(out / "runs.jsonl")]


def test_no_metric_is_marked_where_all_are_on_the_floor_and_no_control(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """In the second metric too, and on a row's control."""
    lines = [f"the tree {number} has {number % 7} green leaves" for number in range(1000)]
    right = {"sequence": 0, "relation_mask": 12, "relation_mask/random": 12}

    def outputs(method: str, seed: int) -> list[str]:
        count = right[method] + (seed if method != "sequence" else 0)
        return [
            line if at < count else line.replace("tree", "dog") for at, line in enumerate(lines)
        ]

    monkeypatch.setattr(study_helpers, "REFERENCES", lines)
    monkeypatch.setattr(study_helpers, "outputs", outputs)
    content = {name: methods("relation_mask")[name] for name in ("sequence", "relation_mask")}
    for number, score in enumerate((["exact", "bleu"], ["bleu", "exact"])):
        (tmp_path / str(number)).mkdir()
        study = read_study(make_study(tmp_path / str(number), methods=content, score=score))
        exact = [one for one in study.comparisons if one.metric == "exact"]
        assert min(one.p for one in exact) < 0.05
        assert [one.no_verdict for one in exact] == ["on the floor"] * 2
        assert not any("†" in row.metric("exact") for row in study.table.rows)


def test_of_one_test_item_nothing_is_tested_and_the_reason_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    line = "the tree has green leaves"
    monkeypatch.setattr(study_helpers, "REFERENCES", [line] * 40)
    out = make_study(tmp_path, score=["exact"])
    write(out / "data/p/test.src", ["same"] * 40)
    study = read_study(out)
    conclusion = primary(study)["relation_mask"].conclusion
    assert conclusion.word == "nothing to compare"
    assert conclusion.why == "there is one test item, on which nothing can be tested"
    assert not any("runs" in note for note in study.table.notes)


def test_a_column_on_the_floor_is_grey_and_has_no_mark():
    plain = Cell(
        "easy", "plain", "exact", 50.0, 1.0, 3, "plain", 3, None, None, None, None, None, 9
    )
    row = replace(plain, row="row", mean=60.0, difference=10.0, low=5.0, high=15.0, p=0.001,
                  holm_p=0.001, smallest=2.0, conclusion="mechanism helps")  # fmt: skip
    low = [replace(one, test_set="hard", mean=mean) for one, mean in ((plain, 0.5), (row, 1.9))]
    cells = [plain, row, *low]
    assert grey(cells) == {"hard"}
    assert grey([replace(one, mean=99.0) for one in cells]) == {"easy", "hard"}
    assert grey([replace(one, metric="ter") for one in cells]) == set()
    table = {line[0]: line[1:] for line in map_table(cells).rows}
    assert ["†" in text for text in table["row"]] == [True, False]
    (panel,) = draw_map(cells).axes
    assert [
        round(patch.get_facecolor()[0], 2) for patch in panel.patches if patch.get_height() > 1
    ] == [0.88]


def test_a_report_may_compare_with_a_row_that_has_controls(tmp_path: Path, capsys):
    out = make_study(tmp_path, methods=methods("relation_mask"), score=["exact"])
    study = read_study(out, "relation_mask")
    assert {one.method for one in study.comparisons} == {
        "sequence",
        "relation_mask/random",
        "stack_pe",
    }
    assert {one.baseline for one in study.comparisons} == {"relation_mask"}
    assert not any("controls from" in note for note in study.table.notes)
    for name in ("", "null"):
        assert main(["report", str(out), "--baseline", name]) == 2
        assert f"baseline is {name!r}; it must be a method: sequence" in capsys.readouterr().err


def test_maps_of_before_are_read(tmp_path: Path):
    file = tmp_path / "map.csv"
    columns = (
        "test_set,row,metric,mean,sd,runs,baseline,baseline_runs,difference,low,high,p,holm_p,items"
    )
    file.write_text(f"{columns}\neasy,row,exact,60.0,1.0,3,plain,3,10.0,5.0,15.0,0.001,0.001,9\n")
    (cell,) = read_cells(file)
    assert (cell.conclusion, cell.smallest, cell.significant) == ("", None, True)
    assert method_lines([cell]) == []


def test_the_report_says_what_was_changed_after_the_first_score(tmp_path: Path):
    out = make_study(tmp_path, score=["exact"])
    assert not any("first score" in note for note in read_study(out).table.notes)
    notes = read_study(out, "stack_pe").table.notes
    change = "The baseline was sequence before the first score; now it is stack_pe."
    assert change in notes
    (out / "plan.json").unlink()
    assert any(
        note.startswith("The first plan of this study is not")
        for note in read_study(out).table.notes
    )


def test_what_logs_tell_of_older_records_goes_with_the_scores_by_item(tmp_path: Path, capsys):
    """A study whose results do not say how its trainings ended has the same words away from its logs."""
    out = make_study(tmp_path, methods=methods("relation_mask"), score=["exact"])
    results = [replace(one, ended=None) for one in read_results(out / "runs.jsonl")]
    write_results(out / "runs.jsonl", results)
    for one in results:
        losses = (3.0, 2.0, 1.0) if one.method == "stack_pe" else (1.0, 2.0, 3.0)
        lines = [
            f't | INFO | valid | {{"valid_loss": "{loss}", "valid_num_updates": "{at}"}}'
            for at, loss in enumerate(losses, start=1)
        ]
        lines += ["early stop since valid performance hasn't improved"] * (one.method != "stack_pe")
        write(out / f"logs/{run_name(one.method, one.seed)}/train.log", lines)
    study = read_study(out)
    assert words(study) == {"relation_mask": "syntax helps", "stack_pe": "still learning"}
    write_report(study)
    kept = copied(out, tmp_path / "kept")
    assert (kept / "table.csv").read_bytes() == (out / "tables/table.csv").read_bytes()
    assert "not known whether" not in capsys.readouterr().out


def test_a_row_that_scores_every_line_as_its_control_does_has_nothing_to_compare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As relation masks do over the words of constituents, whatever the tree."""
    drawn = study_helpers.outputs
    monkeypatch.setattr(
        study_helpers, "outputs", lambda method, seed: drawn(method.removesuffix("/random"), seed)
    )
    study = read_study(make_study(tmp_path, methods=methods(*TREES)))
    assert words(study) == dict.fromkeys(TREES, "nothing to compare")
    write_report(study)
    assert "sees nothing of the trees" in (study.folder / "report.md").read_text("utf-8")
