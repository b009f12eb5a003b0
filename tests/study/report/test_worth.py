"""How much data a row is worth, in a study with an axis over training pairs."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.study_helpers import (
    LINES,
    REFERENCES,
    keep_items,
    make_study,
    recipe_content,
    result,
    two_methods,
    write,
)

from treesyntax.__main__ import main
from treesyntax.metrics.worth import data_worth
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.report.tables_again import _column as column
from treesyntax.study.report.tables_again import read_part
from treesyntax.study.report.worth import find_worth, worth_lines, worth_numbers
from treesyntax.study.results.results import drop_results, read_results, write_results

SIZES = (100, 400, 1600)
RIGHT = {"sequence": (8, 16, 24), "relation_mask": (16, 24, 36)}
"""How many of 40 lines each row has right with so many training pairs."""


@pytest.fixture
def out(tmp_path: Path) -> Path:
    data = recipe_content()["data"]
    data["source"]["train"], data["target"]["train"] = "{data}/{n}.src", "{data}/{n}.tgt"
    out = make_study(
        tmp_path, data=data, vars={"size": 8, "n": 100}, score=["exact"], methods=two_methods(),
        axes={"pairs": {"vars.n": [*SIZES]}},
    )  # fmt: skip
    results = []
    for one in read_results(out / "runs.jsonl"):
        base, _, size = one.method.partition("-pairs=")
        right = RIGHT[base][SIZES.index(int(size))] + one.seed - 2
        lines = [line if at < right else "wrong" for at, line in enumerate(REFERENCES)]
        write(out / f"runs/{one.method}-{one.seed}/hypotheses.txt", lines)
        used = json.dumps({"train": {"pairs": int(size)}})
        results.append(replace(one, value=100 * right / LINES, used=used))
    write_results(out / "runs.jsonl", results)
    return out


def test_curves_and_the_number_are_those_of_the_public_function(out: Path, tmp_path: Path, capsys):
    study = read_study(out)
    (found,) = find_worth(study.scores, study.rows, study.results)
    assert (found.row, found.baseline, found.metric) == ("relation_mask", "sequence", "exact")
    tables = [
        {
            size: study.scores.table(f"{name}-pairs={size}", "sequence-pairs=100", "exact")
            for size in SIZES
        }
        for name in ("relation_mask", "sequence")
    ]
    wanted = data_worth(*tables)
    assert (found.curve, found.other, found.times) == (wanted.row, wanted.baseline, wanted.times)
    assert found.times[0].times == pytest.approx(4.0, rel=0.01)
    assert found.cells()[-1][-1].startswith("more than 1× the pairs: beyond the data")
    page = write_report(study).read_text()
    (line,) = worth_lines([found])
    assert line.startswith("relation_mask with 100 pairs: sequence needs 4× the pairs [")
    assert page.index('id="worth"') < page.index(line) < page.index('id="worth-table"')
    assert "training pairs" in (out / "figures/worth.svg").read_text()
    values = json.loads((out / "figures/worth.json").read_text())
    assert values[2]["times"] == "beyond the data"
    with (out / "tables/worth.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["pairs"] for row in rows] == [*map(str, SIZES)] * 2
    assert float(rows[0]["times"]) == found.times[0].times
    assert rows[3]["times"] == ""  # of the baseline
    capsys.readouterr()
    assert main(["report", str(keep_items(out, kept := tmp_path / "kept"))]) == 0
    assert (kept / "worth.csv").read_bytes() == (out / "tables/worth.csv").read_bytes()
    assert line in capsys.readouterr().out


def test_a_baseline_of_several_rows_stands_in_the_file_once(out: Path):
    study = read_study(out)
    (worth,) = find_worth(study.scores, study.rows, study.results)
    several = [replace(worth, row="masks"), worth, replace(worth, row="sequence", baseline="plain")]
    rows = [(line[0], line[7]) for line in worth_numbers(several)]
    assert rows == [
        (name, baseline)
        for name, baseline in (
            ("masks", "sequence"),
            ("relation_mask", "sequence"),
            ("sequence", "plain"),
            ("plain", ""),
        )
        for _ in SIZES
    ]


def test_curves_of_several_tasks_in_one_map_keep_apart(out: Path, tmp_path: Path):
    write_report(read_study(out))
    study = read_part(keep_items(out, tmp_path / "kept"))
    curves = {row.curve for task in ("a", "b") for row in column(study, task).stored.rows}
    names = ("sequence", "relation_mask")
    assert curves == {f"{name}-task={task}" for name in names for task in ("a", "b")}


def test_without_numbers_of_pairs_or_with_one_there_is_no_such_section(out: Path, tmp_path: Path):
    results = read_results(out / "runs.jsonl")
    study = read_study(out)
    assert find_worth(study.scores, study.rows, [replace(one, used=None) for one in results]) == []
    alike = [replace(one, used='{"train": {"pairs": 5}}') for one in results]
    assert find_worth(study.scores, study.rows, alike) == []
    other = (
        make_study(tmp_path / "other", score=["exact"])
        if (tmp_path / "other").mkdir() is None
        else out
    )
    study = read_study(other)
    assert {row.curve for row in study.rows} == {""}
    assert "worth" not in write_report(study).read_text()
    assert result  # the helper's runs tell no pairs


def test_curves_of_trainings_that_had_not_rested_tell_no_number(out: Path):
    results = [
        replace(one, ended="last") if one.method.startswith("sequence") else one
        for one in read_results(out / "runs.jsonl")
    ]
    write_results(out / "runs.jsonl", results)
    study = read_study(out)
    (found,) = find_worth(study.scores, study.rows, study.results)
    assert worth_lines([found]) == [
        "relation_mask with 100 pairs: sequence is not compared, 9 of 9 runs of sequence were still learning "
        "when they ended: train longer"
    ]
    assert {cells[-1] for cells in found.cells()} == {"–"}
    assert {line[8] for line in found.numbers()} == {""}


def test_points_that_are_not_in_a_curve_are_told(out: Path):
    drop_results(out, lambda one: (one.method, one.seed) == ("sequence-pairs=400", 3))
    study = read_study(out)
    (found,) = find_worth(study.scores, study.rows, study.results)
    assert found.other.pairs == (100, 1600)
    assert worth_lines([found])[1] == "Not in these curves: sequence-pairs=400 with 2 of 3 runs"
    parts = [replace(one, code={"train: nn": str(one.method == "relation_mask-pairs=400"), "train: rule": "3"})
             for one in read_results(out / "runs.jsonl")]  # fmt: skip
    write_results(out / "runs.jsonl", parts)
    study = read_study(out)
    (found,) = find_worth(study.scores, study.rows, study.results)
    assert found.curve.pairs == (100, 1600)
    assert (
        "relation_mask-pairs=400 of other code than sequence-pairs=400" in worth_lines([found])[1]
    )


def test_of_two_points_with_as_many_pairs_one_is_told_to_be_left_out(out: Path):
    """The later one took the place of the other."""
    results = [
        replace(one, used=one.used.replace("400", "100"))
        for one in read_results(out / "runs.jsonl")
    ]
    write_results(out / "runs.jsonl", results)
    study = read_study(out)
    (found,) = find_worth(study.scores, study.rows, study.results)
    assert found.curve.scores[0] == pytest.approx(100 * RIGHT["relation_mask"][0] / LINES)
    assert worth_lines([found])[1] == (
        "Not in these curves: relation_mask-pairs=400 with 100 pairs as relation_mask-pairs=100, "
        "sequence-pairs=400 with 100 pairs as sequence-pairs=100"
    )


def test_lines_that_each_training_set_leaves_unseen_have_no_curve(tmp_path: Path):
    """Those of one number of pairs stood beside others of another; where they were more, the report ended."""
    data = recipe_content()["data"]
    data["source"]["train"], data["target"]["train"] = "{data}/{n}.src", "{data}/{n}.tgt"
    metric, sources = "exact:unseen", [f"source {number}" for number in range(LINES)]
    out = make_study(
        tmp_path, data=data, vars={"size": 8, "n": 100}, score=[metric], methods=two_methods(),
        axes={"pairs": {"vars.n": [*SIZES]}},
    )  # fmt: skip
    write(out / "data/p/test.src", sources)
    results = []
    for number, size in enumerate(SIZES):
        seen = number + 1
        write(out / f"data/{size}.src", sources[:seen])
        write(out / f"data/{size}.tgt", REFERENCES[:seen])
        for base, right in RIGHT.items():
            lines = [line if at < right[number] else "wrong" for at, line in enumerate(REFERENCES)]
            score = 100 * (right[number] - seen) / (LINES - seen)
            for seed in (1, 2, 3):
                name = f"{base}-pairs={size}"
                write(out / f"runs/{name}-{seed}/hypotheses.txt", lines)
                used = json.dumps({"train": {"pairs": size}})
                results.append(result(name, seed, metric, score, LINES - seen, used))
    write_results(out / "runs.jsonl", results)
    study = read_study(out)
    assert find_worth(study.scores, study.rows, study.results) == []
    note = "There are no curves in exact:unseen: each training set leaves other test lines unseen"
    assert note in write_report(study).read_text()


def test_curves_at_the_ceiling_tell_no_number(out: Path):
    results = []
    for one in read_results(out / "runs.jsonl"):
        write(out / f"runs/{one.method}-{one.seed}/hypotheses.txt", REFERENCES)
        results.append(replace(one, value=100.0))
    write_results(out / "runs.jsonl", results)
    study = read_study(out)
    (found,) = find_worth(study.scores, study.rows, study.results)
    assert worth_lines([found])[0].endswith("is not compared, all scores are above 98")
