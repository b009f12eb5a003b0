"""Scores by the category of test items, in a study's report."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from support.study_helpers import LINES, REFERENCES, make_study, outputs, recipe_with

import treesyntax as ts
from treesyntax.errors import OptionError
from treesyntax.metrics import METRICS, compare_runs
from treesyntax.study.recipe.identity import check_data_files
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.results.results import read_results, write_results

NAMES = ("active", "pass|ive", "relative")
CATEGORIES = [NAMES[number % 3] for number in range(LINES)]
CHOSEN = [number for number in range(LINES) if number % 3 == 1]
SEEDS = (1, 2, 3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = make_study(tmp_path, categories="{data}/p/test.cat")
    (folder / "data/p/test.cat").write_text("".join(f"{name}\n" for name in CATEGORIES))
    return folder


def own(method: str, seed: int) -> list[str]:
    return [outputs(method, seed)[line] for line in CHOSEN]


def test_table_figure_and_csv_by_category_with_intervals(folder: Path):
    write_report(read_study(folder))
    with (folder / "tables/categories.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["category"] for row in rows[::6]] == list(NAMES)
    found = {(row["category"], row["metric"], row["method"]): row for row in rows}
    row = found["pass|ive", "exact", "relation_mask"]
    tables = [
        np.array([
            [100 * (one == REFERENCES[line]) for one, line in zip(own(method, seed), CHOSEN, strict=True)]
            for seed in SEEDS
        ]).T
        for method in ("relation_mask", "sequence")
    ]  # fmt: skip
    wanted = compare_runs(*tables)
    assert float(row["mean"]) == pytest.approx(tables[0].mean())
    assert [float(row[name]) for name in ("difference", "low", "high")] == pytest.approx(
        [wanted.difference, wanted.low, wanted.high]
    )
    assert (row["items"], row["lines"], row["seeds"], row["baseline"]) == (
        "13",
        "13",
        "3",
        "sequence",
    )
    bleu = float(found["pass|ive", "bleu", "stack_pe"]["mean"])
    references = [REFERENCES[line] for line in CHOSEN]
    scores = [METRICS["bleu"](own("stack_pe", seed), references)[0].value for seed in SEEDS]
    assert bleu == pytest.approx(np.mean(scores))
    assert found["pass|ive", "exact", "sequence"]["difference"] == ""
    report = (folder / "report.md").read_text(encoding="utf-8")
    interval = f"{wanted.difference:+.2f} | {wanted.low:+.2f} to {wanted.high:+.2f} |"
    assert f"| pass\\|ive | 13 | relation_mask | exact | {tables[0].mean():.2f} ± " in report
    assert interval in report
    assert '<table id="score-by-category-table">' in (folder / "report.html").read_text("utf-8")
    numbers = json.loads((folder / "figures/score_by_category.json").read_text("utf-8"))
    assert [one["name"] for one in numbers["bins"]] == list(NAMES)
    assert numbers["mean"]["relation_mask"]["exact"][1] == pytest.approx(tables[0].mean())
    assert (folder / "figures/score_by_category.svg").is_file()


@pytest.mark.parametrize(("text", "why"), [
    ("active\n", "has 1 lines, but"), (None, "test.cat"),
])  # fmt: skip
def test_categories_that_do_not_fit_are_told(folder: Path, text: str | None, why: str):
    file = folder / "data/p/test.cat"
    file.unlink() if text is None else file.write_text(text)
    write_report(read_study(folder))
    report = (folder / "report.md").read_text(encoding="utf-8")
    (line,) = [line for line in report.splitlines() if "no scores by category" in line]
    assert why in line


def test_without_its_categories_a_metric_is_not_tested_and_the_rest_is(tmp_path: Path):
    score = ["exact", "exact@active"]
    folder = make_study(tmp_path, score=score, categories="{data}/cat")
    lost = f"exact@active not tested for significance: {folder / 'data/cat'} does not exist"
    (folder / "data/cat").write_text("".join(f"{name}\n" for name in CATEGORIES))
    counted = [line for line in range(LINES) if CATEGORIES[line] == "active"]
    results = read_results(folder / "runs.jsonl")
    for one in list(results):
        lines = outputs(one.method, one.seed), REFERENCES
        value = METRICS["exact"](*([text[line] for line in counted] for text in lines))[0].value
        results.append(replace(one, metric="exact@active", value=value, n=len(counted)))
    write_results(folder / "runs.jsonl", results)
    study = read_study(folder)
    assert {one.metric for one in study.comparisons} == {*score}
    assert not any(lost in note for note in study.table.notes)
    (folder / "data/cat").unlink()
    study = read_study(folder)
    assert {one.metric for one in study.comparisons} == {"exact"}
    assert any(lost in note for note in study.table.notes)
    with pytest.raises(OptionError, match="no test set or categories"):
        ts.read_study(folder).compare("stack_pe", metric="exact@active")
    write_report(study)


def test_a_report_without_categories_leaves_none_of_its_former_files(folder: Path):
    write_report(read_study(folder))
    kept = [folder / "figures/score_by_category_talk.svg", folder / "tables/own.csv"]
    stale = [
        folder / "tables/categories.csv",
        folder / "tables/map.csv",
        *(folder / f"figures/score_by_category{end}" for end in (".svg", ".pdf", ".json", "_all_metrics.svg")),
        *(folder / f"figures/score_by_category_law.{suffix}" for suffix in ("svg", "json")),
    ]  # fmt: skip
    for file in [*kept, *stale]:
        file.touch()
    (folder / "figures/score_by_category_law.json").write_text('{"quantity": "category of law"}')
    recipe = folder / "recipe.yaml"
    content = yaml.safe_load(recipe.read_text("utf-8"))
    del content["categories"]
    recipe.write_text(f"# resolved from x\n{yaml.safe_dump(content, sort_keys=False)}")
    hypotheses = folder / "runs/sequence-1/hypotheses.txt"
    hypotheses.rename(folder / "moved")
    write_report(read_study(folder))
    assert all(file.exists() for file in [*kept, *stale])  # as they could not be made again
    (folder / "moved").rename(hypotheses)
    write_report(read_study(folder))
    assert all(file.exists() for file in kept)
    assert not [file for file in stale if file.exists()]


def test_a_file_of_categories_that_does_not_exist_is_refused_before_anything_runs(tmp_path: Path):
    recipe = recipe_with(tmp_path, categories=str(tmp_path / "test.cat"))
    with pytest.raises(OptionError, match="categories: no such file: .*test.cat"):
        check_data_files(recipe)
    (tmp_path / "test.cat").touch()
    check_data_files(recipe)
