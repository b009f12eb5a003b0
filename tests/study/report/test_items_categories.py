"""Scores by category from items.jsonl and runs.jsonl alone."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support import study_helpers
from support.study_helpers import (
    LINES,
    keep_items,
    make_study,
    outputs,
    recipe_content,
    result,
    write,
)

from treesyntax.__main__ import main
from treesyntax.metrics import get_metric
from treesyntax.metrics.line_file import pack
from treesyntax.study.report.items import read_items, write_file
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.results.results import write_results

NAMES = ("test2016", "test2017")
TEXTS = [f"dog {line % 30}" for line in range(LINES)]
"""The last ten lines are copies."""


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(study_helpers, "REFERENCES", TEXTS)
    methods = {name: recipe_content()["methods"][name] for name in ("sequence", "stack_pe")}
    score = ["exact", "bleu", "exact:unseen"]
    out = make_study(tmp_path, methods=methods, score=score, categories="{data}/p/test.cat")
    write(out / "data/p/test.cat", [NAMES[line % 3 == 2] for line in range(LINES)])
    write(out / "data/p/test.src", TEXTS)
    write(out / "data/p/train.src", TEXTS[:10])
    write(out / "data/p/train.tgt", TEXTS[:10])
    new = [line % 30 >= 10 for line in range(LINES)]
    write_results(out / "runs.jsonl", [
        result(name, seed, "exact:unseen",
               get_metric("exact:unseen", new)(outputs(name, seed), TEXTS)[0].value, sum(new))
        for name in methods for seed in (1, 2, 3)
    ])  # fmt: skip
    return out


def test_scores_by_category_are_those_of_the_study_to_the_last_digit(study: Path, tmp_path: Path):
    """With copies, in a metric of the corpus, and in one that leaves lines out."""
    write_report(read_study(study))
    items = keep_items(study, tmp_path / "kept")
    assert main(["report", str(items)]) == 0
    made = items.with_name("categories.csv").read_text("utf-8")
    assert made == (study / "tables/categories.csv").read_text("utf-8")
    rows = list(csv.DictReader(made.splitlines()))
    assert {(row["category"], row["metric"]) for row in rows} == {
        (name, metric) for name in NAMES for metric in ("exact", "bleu", "exact:unseen")
    }
    sizes = {(row["metric"], row["category"]): int(row["lines"]) for row in rows}
    assert sizes["exact", "test2017"] == LINES // 3
    assert sizes["exact:unseen", "test2017"] == sum(
        line % 3 == 2 and line % 30 >= 10 for line in range(LINES)
    )
    assert {row["items"] for row in rows if row["metric"] == "exact"} == {"20", "10"}
    assert all(row["difference"] for row in rows if row["method"] == "stack_pe")


def test_a_study_whose_categories_are_lost_has_its_other_tables(study: Path, tmp_path: Path):
    (study / "data/p/test.cat").unlink()
    write_report(read_study(study))
    items = keep_items(study, tmp_path / "kept")
    assert main(["report", str(items)]) == 0
    assert items.with_name("table.csv").is_file()
    assert not items.with_name("categories.csv").exists()


@pytest.mark.parametrize(("change", "why"), [
    ({"name": "other"}, "whose categories are lacking"),
    ({"places": pack(np.zeros((3, 1)))}, "whose categories are damaged: not 1 numbers for each of "),
    ({"names": (1, 2)}, "names.0: input should be a valid string"),
])  # fmt: skip
def test_categories_that_do_not_fit_are_refused(
    study: Path, tmp_path: Path, change: dict[str, object], why: str, capsys
):
    write_report(read_study(study))
    items = keep_items(study, tmp_path / "kept")
    stored = read_items(items)
    write_file(items, replace(stored, categories=tuple(
        replace(one, **change) for one in stored.categories  # type: ignore[arg-type]
    )))  # fmt: skip
    assert main(["report", str(items)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert why in line
