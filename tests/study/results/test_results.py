"""runs.jsonl: one line a run, and which lines a study takes."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from support.study_helpers import make_study, result, write_recipe

from treesyntax.errors import InputError
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.results.current import current_results, missing_scores
from treesyntax.study.results.results import (
    CHECKSUM,
    _checksum,
    read_results,
    results_file,
    write_results,
)


def test_a_new_score_replaces_the_old_one(tmp_path: Path):
    file = tmp_path / "runs.jsonl"
    assert read_results(file) == []
    write_results(file, [result(), result(seed=2)])
    assert read_results(file) == [result(), result(seed=2)]
    write_results(file, [result(value=9), result(metric="bleu")])
    assert read_results(file) == [result(value=9), result(metric="bleu"), result(seed=2)]
    first, _ = map(json.loads, file.read_text().strip().split("\n"))
    assert [score["metric"] for score in first["scores"]] == ["exact", "bleu"]
    assert first["seed"] == 1


def test_results_of_an_older_version_are_read_and_become_lines_a_run(tmp_path: Path):
    """There is one file of results, before and after."""
    old, new = tmp_path / "results.jsonl", tmp_path / "runs.jsonl"
    known = [result(), result(seed=2), result(metric="bleu")]
    records = [asdict(one) for one in known]
    lines = [json.dumps({**one, CHECKSUM: _checksum(one)}, ensure_ascii=False) for one in records]
    old.write_text("".join(f"{line}\n" for line in lines))
    assert results_file(tmp_path) == old
    assert read_results(old) == known
    write_results(new, [result(seed=3)])
    assert results_file(tmp_path) == new
    assert not old.exists()
    assert read_results(new) == [known[0], known[2], known[1], result(seed=3)]
    old.write_text("an older version wrote here, too\n")
    assert results_file(tmp_path) == new


def test_a_torn_last_line_is_dropped_and_written_again(tmp_path: Path):
    file = tmp_path / "runs.jsonl"
    write_results(file, [result(), result(seed=2)])
    whole = file.read_bytes()
    second = whole.index(b"\n") + 1
    for cut in range(second, len(whole), 9):
        file.write_bytes(whole[:cut])
        assert read_results(file) == [result()]
    write_results(file, [result(), result(seed=2)])
    assert file.read_bytes() == whole


def test_lines_of_other_studies_and_of_outputs_that_are_no_more_are_left_out(tmp_path: Path):
    out = make_study(tmp_path, score=["exact"], seeds=[1, 2])
    file, recipe = out / "runs.jsonl", read_recipe(out / "recipe.yaml")
    own, others = current_results(out, recipe)
    before = read_study(out).table.rows
    assert (len(own), others) == (6, [])
    foreign = [
        replace(own[0], hash="another study", value=99.0), replace(own[0], run="old", value=98.0),
        replace(own[0], method="a row that was taken away"), replace(own[0], seed=7),
    ]  # fmt: skip
    for one in foreign:
        write_results(tmp_path / "foreign", [one])
        with file.open("ab") as stream:
            stream.write((tmp_path / "foreign").read_bytes())
        (tmp_path / "foreign").unlink()
    assert current_results(out, recipe) == (own, ["sequence-1 in exact"] * 2)
    study = read_study(out)
    write_report(study)
    assert [row.metrics for row in study.table.rows] == [row.metrics for row in before]
    assert any("Left out of runs.jsonl" in note for note in study.table.notes)
    assert "99.0" not in (out / "tables/results.csv").read_text()


def test_two_truths_of_one_run_are_refused(tmp_path: Path):
    out = make_study(tmp_path, score=["exact"], seeds=[1])
    file, recipe = out / "runs.jsonl", read_recipe(out / "recipe.yaml")
    own = read_results(file)
    write_results(tmp_path / "more", [replace(own[0], value=9.0)])
    whole = file.read_bytes()
    file.write_bytes(whole + whole)
    assert current_results(out, recipe)[0] == own
    file.write_bytes(whole + (tmp_path / "more").read_bytes())
    with pytest.raises(InputError, match="holds two results of sequence-1 in exact; remove one"):
        current_results(out, recipe)


def test_seeds_without_a_result_are_known_by_row_and_metric(tmp_path: Path):
    recipe = read_recipe(write_recipe(tmp_path, seeds=[1, 2, 3]))
    keys = [("sequence", seed, metric) for seed in (1, 2, 3) for metric in recipe.score]
    keys += [("stack_pe", 1, "exact"), ("stack_pe", 2, "exact"), ("stack_pe", 2, "tree:lambda")]
    found = [result(*key) for key in keys]
    assert missing_scores(recipe, found) == {
        "relation_mask": {"exact": [1, 2, 3], "tree:lambda": [1, 2, 3]},
        "stack_pe": {"exact": [3], "tree:lambda": [1, 3]},
    }
