"""Figures of the docs are those of the results beside them."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest

from treesyntax.__main__ import main
from treesyntax.study.report.map.cells import read_cells
from treesyntax.study.report.map.draw import draw_file, table_rows

DOCS = Path(__file__).parents[2] / "docs"
MAP = DOCS / "results/structure/map.csv"
COLUMNS = ("exact", "exact:unseen", "wellformed:sexpr_bare", "f1:sexpr_bare")


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|\n ").split("|")]


def test_the_table_of_geoquery_is_that_of_its_study() -> None:
    with (DOCS / "results/geo/table.csv").open(encoding="utf-8") as stream:
        scores = {(row["method"], row["metric"]): row for row in csv.DictReader(stream)}
    lines = (DOCS / "results.md").read_text("utf-8").splitlines()
    rows = [cells(line) for line in lines if line.startswith("| `")]
    assert len(rows) == 4
    for system, *shown, difference, p, parameters in rows:
        name = system.split("`")[1]
        for metric, text in zip(COLUMNS, shown, strict=True):
            row = scores[name, metric]
            mean, sd = float(row["mean"]), float(row["sd"])
            assert text == ("100" if mean == 100 else f"{mean:.2f} ± {sd:.2f}")
        row = scores[name, "exact"]
        assert parameters == f"{int(row['parameters']):,}"
        if row["difference"]:
            gap, low, high = (float(row[key]) for key in ("difference", "low", "high"))
            assert difference == f"{gap:+.2f}, {low:+.2f} to {high:+.2f}"
            assert p == f"{float(row['holm_p']):.3f}"


def test_the_table_of_the_demo_is_that_of_its_study() -> None:
    with (DOCS / "results/demo/table.csv").open(encoding="utf-8") as stream:
        scores = {row["method"]: row for row in csv.DictReader(stream) if row["metric"] == "exact"}
    lines = (DOCS.parent / "README.md").read_text("utf-8").splitlines()
    shown = {cells(line)[0].strip("`"): cells(line)[1:] for line in lines if line.startswith("| `")}
    assert {*scores} == {*shown}
    for name, (score, difference, p, parameters) in shown.items():
        row = scores[name]
        assert score == f"{float(row['mean']):.2f} ± {float(row['sd']):.2f}"
        assert parameters == f"{int(row['parameters']):,}"
        if row["difference"]:
            gap, low, high = (float(row[key]) for key in ("difference", "low", "high"))
            assert difference == f"{gap:+.2f}, {low:+.2f} to {high:+.2f}"
            corrected = float(row["holm_p"])
            assert p == ("< 0.001 †" if corrected < 0.001 else f"{corrected:.3f} †")


def test_the_map_is_that_of_its_study(tmp_path: Path) -> None:
    page = (DOCS / "where-trees-help.md").read_text("utf-8")
    header, *rows = table_rows(read_cells(MAP))
    table = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    assert "".join(f"| {' | '.join(row)} |\n" for row in table) in page
    copy = tmp_path / "map.csv"
    copy.write_bytes(MAP.read_bytes())
    drawn = DOCS / "figures/where-trees-help.svg"
    assert draw_file(copy).read_text("utf-8") == drawn.read_text("utf-8")


def test_the_figure_of_the_demo_is_that_of_its_study(tmp_path: Path) -> None:
    for name in ("items.jsonl", "results.jsonl"):
        shutil.copy(DOCS / "results/demo" / name, tmp_path)
    assert main(["report", str(tmp_path / "items.jsonl")]) == 0
    drawn = (DOCS / "figures/demo.svg").read_text("utf-8")
    assert (tmp_path / "verdict.svg").read_text("utf-8") == drawn


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_results_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text("utf-8")
    named = {part.split(")")[0] for part in text.split("](results/")[1:]}
    assert all((DOCS / "results" / name).exists() for name in named)
