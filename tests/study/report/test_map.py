"""The map of a study over several test sets."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.study_helpers import (
    REFERENCES,
    make_study,
    make_two_test_sets,
    outputs,
    recipe_content,
    write,
)

from treesyntax.errors import InputError, OptionError
from treesyntax.metrics import compare_runs
from treesyntax.metrics.statistics import holm
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.report.map import csv_rows, draw_map, map_table, read_cells
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.report.table_files import csv_text
from treesyntax.study.results.results import Result, drop_results

SEEDS = (1, 2, 3)
PLAIN = ("relation_mask", "stack_pe")
"""Not the recipe's baseline, so that the choice shows."""
NOTHING = {"difference": None, "low": None, "high": None, "p": None}
"""What the cell of a baseline has."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two plain rows and two test sets."""
    return make_two_test_sets(tmp_path, score=["exact"], strongest=[*PLAIN])


def cells_of(folder: Path) -> dict[tuple[str, str], dict[str, str]]:
    write_report(read_study(folder))
    with (folder / "tables/map.csv").open(encoding="utf-8") as stream:
        return {(row["test_set"], row["row"]): row for row in csv.DictReader(stream)}


def right(method: str) -> np.ndarray:
    """[items, runs] of 0 and 100, items being distinct sources."""
    return np.array([
        [100.0 * (one == wanted) for one, wanted in zip(outputs(method, seed), REFERENCES, strict=True)]
        for seed in SEEDS
    ]).T  # fmt: skip


def test_each_row_is_compared_with_the_best_plain_row(folder: Path):
    other, best = sorted(PLAIN, key=lambda name: right(name).mean())
    assert right(other).mean() < right(best).mean()
    cells = cells_of(folder)
    assert len(cells) == 2 * len(recipe_content()["methods"])
    for domain, baseline in (("law", best), ("news", best)):
        row = cells[domain, "sequence"]
        wanted = compare_runs(right("sequence"), right(baseline))
        assert row["baseline"] == baseline
        assert [float(row[name]) for name in ("difference", "low", "high", "p")] == pytest.approx(
            [wanted.difference, wanted.low, wanted.high, wanted.p]
        )
        own = cells[domain, baseline]
        assert (own["difference"], own["p"], own["holm_p"]) == ("", "", "")
        assert float(own["mean"]) == pytest.approx(right(baseline).mean())
    for name in {name for _, name in cells}:  # a family for each row
        own = [row for (_, other), row in cells.items() if other == name and row["p"]]
        wanted = holm([float(row["p"]) for row in own])
        assert [float(row["holm_p"]) for row in own] == pytest.approx(wanted)


def test_a_cell_with_two_runs_says_nothing(folder: Path):
    def unwanted(one: Result) -> bool:
        return (one.method, one.seed) == ("sequence-domain=law", 3)

    drop_results(folder, unwanted)
    cells = cells_of(folder)
    assert (cells["law", "sequence"]["runs"], cells["law", "sequence"]["p"]) == ("2", "")
    assert cells["news", "sequence"]["p"]
    table = {row[0]: row[1:] for row in map_table(read_cells(folder / "tables/map.csv")).rows}
    assert table["sequence"][0] == "too few runs"
    assert table["sequence"][1]
    first, *rest = map_table(read_cells(folder / "tables/map.csv")).rows
    (name,) = {
        row["baseline"] for row in cells.values()
    }  # the line above rows, which it is none of
    assert first[0] == name
    assert name not in [row[0] for row in rest]


def test_a_row_that_is_the_baseline_on_one_test_set_keeps_its_line_on_others(folder: Path):
    cells_of(folder)
    kept = read_cells(folder / "tables/map.csv")
    name = kept[0].baseline
    other = next(one.row for one in kept if one.row not in ("sequence", name))
    turned = [
        replace(one, baseline=other, **(NOTHING if one.row == other else {"difference": 1.0}))
        if one.test_set == "news"
        else one
        for one in kept
    ]
    first, *rest = map_table(turned).rows
    assert first[0] == "strongest sequence"
    assert [other in text for text in first[1:]] == [False, True]
    table = {row[0]: row[1:] for row in rest}
    assert (table[name][0], table[other][1]) == ("=", "=")
    (panel,) = draw_map(turned).axes
    assert sum(text.get_text() == "=" for text in panel.texts) == 2
    (panel,) = draw_map(kept).axes
    assert not any(text.get_text() == "=" for text in panel.texts)


def test_a_test_set_without_three_runs_of_a_plain_row_is_left_out(folder: Path):
    def unwanted(one: Result) -> bool:
        return one.seed == 3 and one.method in [f"{name}-domain=law" for name in PLAIN]

    drop_results(folder, unwanted)
    assert {test_set for test_set, _ in cells_of(folder)} == {"news"}


def test_the_report_shows_it_and_a_file_of_it_is_drawn_again(folder: Path, tmp_path: Path, capsys):
    from treesyntax.__main__ import main

    cells_of(folder)
    page = (folder / "report.html").read_text("utf-8")
    assert 'id="map"' in page
    assert len(json.loads((folder / "figures/map.json").read_text())) == 6
    copy = tmp_path / "kept.csv"
    copy.write_bytes((folder / "tables/map.csv").read_bytes())
    assert main(["report", str(copy)]) == 0
    assert copy.with_suffix(".svg").read_text() == (folder / "figures/map.svg").read_text()
    assert csv_text([*csv_rows(read_cells(copy))]) == copy.read_text()


@pytest.mark.parametrize(("text", "why"), [
    ("a,b\n1,2\n", "2: is no cell of a map"), ("", "holds no cell"),
])  # fmt: skip
def test_a_file_that_is_no_map_is_refused(tmp_path: Path, text: str, why: str):
    (tmp_path / "map.csv").write_text(text)
    with pytest.raises(InputError, match=why):
        read_cells(tmp_path / "map.csv")


def test_an_unknown_plain_row_is_refused(folder: Path):
    with pytest.raises(OptionError, match=r"strongest.*names lstm"):
        read_recipe(folder / "recipe.yaml", ["strongest=[lstm]"])


def test_each_test_set_has_its_own_primary_metric(tmp_path: Path):
    data = recipe_content()["data"]
    data["target"]["test"] = "{data}/{d}.tgt"
    out = make_study(
        tmp_path, data=data, vars={"size": 8, "d": "law", "metric": "exact"},
        score=["exact", "first_word"], primary="{metric}", strongest=list(PLAIN),
        axes={"domain": {"vars.d": ["law", "news"], "vars.metric": ["exact", "first_word"]}},
    )  # fmt: skip
    for domain in ("law", "news"):
        write(out / f"data/{domain}.tgt", REFERENCES)
    metrics = {place: row["metric"] for place, row in cells_of(out).items()}
    assert {domain for domain, _ in metrics} == {"law", "news"}
    for (domain, _), metric in metrics.items():
        assert metric == ("exact" if domain == "law" else "first_word")
    found = read_study(out).comparisons
    assert {(one.metric, one.method.endswith("law")) for one in found if one.primary} == {
        ("exact", True), ("first_word", False),
    }  # fmt: skip
    report = (out / "report.md").read_text(encoding="utf-8")
    assert "exact or first_word on each test set" in report


def test_rows_that_are_compared_have_one_primary_metric(tmp_path: Path):
    methods = recipe_content()["methods"]
    methods["stack_pe"]["vars"] = {"metric": "first_word"}
    with pytest.raises(OptionError, match="is first_word for stack_pe, exact for sequence"):
        make_study(
            tmp_path, score=["exact", "first_word"], primary="{metric}", methods=methods,
            vars={"size": 8, "metric": "exact"},
        )  # fmt: skip
