"""What docs/results holds agrees with itself, and docs/reproduction.md with it."""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from treesyntax.__main__ import main
from treesyntax.study.results.results import Result, read_results, results_file

pytestmark = pytest.mark.usefixtures("empty_figures")
DOCS = Path(__file__).parents[2] / "docs"
CATEGORIES = "categories.csv"
TABLES = sorted((DOCS / "results").glob("*/*.csv"))
WHOLE = [path for path in TABLES if path.name != CATEGORIES]
"""Those over the whole test set, which the results have scores of."""
FOLDERS = sorted(
    path for path in (DOCS / "results").iterdir() if path.is_dir() and path.name != "begun"
)
"""All results but those of unfinished columns, which have no tables."""
PAGE = (DOCS / "reproduction.md").read_text("utf-8").splitlines()
TASKS = {
    f"Multi30k, 29,000 pairs, masks {words}": (folder, row)
    for words, folder, row in (
        ("in the encoder", "multi30k_trees", "relation_mask"),
        ("of random trees", "multi30k_trees", "random_trees"),
        ("of right-branching trees", "multi30k_trees", "right_branching"),
        ("over constituents", "multi30k_constituents", "relation_mask"),
        ("over random constituents", "multi30k_constituents", "random_trees"),
    )
}
PROGRAMS = {"SYN-S": "for2lam_100k", "CJ-A-s": "coffeescript_javascript_100k"}
"""The columns of the table of programs that have figures of ours, and the folders that these are from."""


def results_of(folder: Path) -> list[Result]:
    """The results of a study, of all parts if it was trained in parts; those of a map are named after tasks."""
    return [
        replace(result, method=f"{result.method}-task={path.parent.name}")
        if folder.name == "map"
        else result
        for path in sorted([*folder.rglob("results.jsonl"), *folder.rglob("runs.jsonl")])
        for result in read_results(path)
    ]


def read_table(path: Path) -> list[dict[str, str]]:
    """The rows of a study's table, of its map or of its curves, with the names of the results."""
    with path.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows if path.name == "map.csv" else ():
        task = row["test_set"]
        row["method"] = f"{row['row']}-task={task}"
        row["baseline"] = f"{row['baseline']}-task={task}" if row["difference"] else ""
        row["seeds"] = row["runs"]
    for row in rows if path.name == "worth.csv" else ():
        row["method"] = f"{row['row']}-pairs={row['pairs']}"
        row |= {"mean": row["score"], "seeds": row["runs"], "sd": "", "difference": ""}
    return rows


def scores(results: list[Result]) -> dict[tuple[str, str], list[float]]:
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for result in results:
        found[result.method, result.metric].append(result.value)
    return found


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip()[1:-1].split("|")]


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_table_is_made_of_its_results(path: Path) -> None:
    results = results_of(path.parent)
    found = scores(results)
    parameters = {(result.method, result.metric): result.parameters for result in results}
    table = read_table(path)
    assert table
    for row in table:
        key = (row["method"], row["metric"])
        values = found[key]
        assert len(values) == int(row["seeds"])
        assert np.mean(values) == pytest.approx(float(row["mean"]))
        if row["sd"] or (len(values) > 1 and path.name != "worth.csv"):
            assert np.std(values, ddof=1) == pytest.approx(float(row["sd"]))
        if "parameters" in row:
            assert parameters[key] == int(row["parameters"])
        if row["difference"]:
            gap = np.mean(values) - np.mean(found[row["baseline"], row["metric"]])
            assert gap == pytest.approx(float(row["difference"]))
            if row["low"]:
                assert float(row["low"]) <= gap <= float(row["high"])
    for result in results:
        assert result.commit
        assert result.train_seconds > 0
        assert result.commands


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_tables_are_made_of_results_and_scores_by_item(
    folder: Path, tmp_path: Path, capsys
) -> None:
    """With intervals and p-values before and after correction, by the command that docs/results.md names."""
    items = sorted(map(str, folder.rglob("items.jsonl")))
    assert main(["report", *items, "--out", str(tmp_path)]) == 0
    kept = {path.name for path in TABLES if path.parent == folder}
    assert kept == {path.name for path in tmp_path.glob("*.csv")}
    for name in kept:
        for row, again in zip(
            *(read_table(place / name) for place in (folder, tmp_path)), strict=True
        ):
            assert row.keys() == again.keys()
            for column, text in row.items():
                if text != again[column]:  # sums may differ between processors
                    assert float(again[column]) == pytest.approx(float(text), rel=1e-9), column


def test_our_figures_of_semantic_parsing_are_those_of_the_results() -> None:
    header = next(cells(line) for line in PAGE if "JOBS" in line and line.startswith("|"))
    seen = 0
    for line in PAGE:
        if not line.startswith("| *ours, "):
            continue
        name, *shown = cells(line)
        settings, method = name.removeprefix("*ours, ").split(":* ")
        for task, text in zip(map(str.lower, header[1:]), shown, strict=True):
            folder, suffix = {
                "at rest": ("map", f"-task={task}"),
                "searched": (f"{task}_strong", ""),
            }[settings]
            found = scores(results_of(DOCS / "results" / folder))
            values = found[method.strip("`") + suffix, "exact"]
            expected = f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}" if values else ""
            assert text == expected, (line, task)
            seen += bool(values)
    assert seen == 18
    demo = scores(read_results(results_file(DOCS / "results/demo")))
    for method in ("tree2tree", "sequence"):
        values = demo[method, "exact"]
        assert f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}" in "\n".join(PAGE)


def test_our_figures_of_programs_are_those_of_the_results() -> None:
    header = next(cells(line) for line in PAGE if line.startswith("|") and "SYN-S" in line)
    found = {task: scores(results_of(DOCS / "results" / name)) for task, name in PROGRAMS.items()}
    rows = [cells(line) for line in PAGE if line.startswith("| *ours at width 64:* ")]
    assert len(rows) == 4
    for name, *shown in rows:
        for task, text in zip(header[1:], shown, strict=True):
            values = found.get(task, {}).get((name.split("`")[1], "exact"))
            expected = f"{np.mean(values):.2f} ± {np.std(values, ddof=1):.2f}" if values else ""
            assert text == expected, (name, task)


def test_our_strengths_are_those_of_the_results() -> None:
    seen = 0
    for line in PAGE:
        if line.startswith("| *ours:* "):
            name, low, high, spread, gain = cells(line)
            folder, row = TASKS[name.removeprefix("*ours:* ")]
            text = (DOCS / "results" / folder / "strength_study.md").read_text("utf-8")
            own = next(own for own in map(cells, text.splitlines()) if own[1] == row)
            expected = [*own[2:5], own[8]]
            assert [low, high, spread, gain.split()[0]] == [
                cell.replace("−", "-") for cell in expected
            ]
            seen += 1
    assert seen == len(TASKS)


def test_differences_of_the_papers_are_those_of_their_figures() -> None:
    rows = {name: shown for name, *shown in map(cells, PAGE) if shown}
    for first, second, difference in (
        ("masks", "sequence", "masks - sequence"),
        ("*theirs:* sequence to tree", "*theirs:* sequence to sequence", "difference"),
    ):
        for one, other, gap in zip(rows[first], rows[second], rows[difference], strict=True):
            pairs = zip(one.split(" / "), other.split(" / "), gap.split(" / "), strict=True)
            for left, right, shown in pairs:
                assert float(left) - float(right) == pytest.approx(float(shown))
