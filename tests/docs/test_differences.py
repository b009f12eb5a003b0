"""Differences that a page tells beside those of its tables, computed from the scores by item."""

from __future__ import annotations

from pathlib import Path

import pytest

from treesyntax.metrics.runs import compare_runs
from treesyntax.study.report.items import ITEMS_FILE
from treesyntax.study.report.tables_again import StoredLines, join, read_part
from treesyntax.study.results.item_scores import ItemScores

DOCS = Path(__file__).parents[2] / "docs"
TRANSLATION, PROGRAMS = "results-translation.md", "results-programs.md"
REPRODUCTION = "reproduction.md"
MULTI30K, CONSTITUENTS = "multi30k_trees", "multi30k_constituents"
COFFEESCRIPT = "coffeescript_javascript_100k"


@pytest.mark.parametrize(
    ("page", "folder", "row", "baseline", "told"),
    [
        (TRANSLATION, MULTI30K, "depth_and_position", "relative_position",
         "+0.23 [-0.18, +0.64], p = 0.21"),
        (TRANSLATION, MULTI30K, "tree_rotary", "relative_position",
         "-0.14 [-0.50, +0.23], p = 0.43"),
        (TRANSLATION, MULTI30K, "relative_depth", "relative_position",
         "-0.53 [-0.91, -0.14], p = 0.024"),
        (TRANSLATION, MULTI30K, "relation_mask", "relative_position",
         "-0.44 [-0.78, -0.09], p = 0.013"),
        (TRANSLATION, MULTI30K, "relation_mask", "random_trees", "0.67 [+0.32, +1.03]"),
        (TRANSLATION, MULTI30K, "relation_mask", "right_branching", "-0.42 [-1.52, +0.68]"),
        (TRANSLATION, CONSTITUENTS, "relation_mask", "random_trees",
         "+0.12 [-0.33, +0.58], p = 0.50"),
        (TRANSLATION, CONSTITUENTS, "relation_mask", "right_branching",
         "+0.80 [+0.42, +1.19], p = 0.012"),
        (TRANSLATION, CONSTITUENTS, "random_trees", "right_branching",
         "+0.68 [+0.30, +1.06], p = 0.016"),
        (REPRODUCTION, MULTI30K, "depth_and_position", "relative_position",
         "+0.23 [-0.18, +0.64], p = 0.21"),
        (PROGRAMS, COFFEESCRIPT, "tree2tree_dfs", "sequence_wide", "+12.6 points [+8.9, +16.4]"),
    ],
)  # fmt: skip
def test_a_difference_is_that_of_the_scores_by_item(
    page: str, folder: str, row: str, baseline: str, told: str
) -> None:
    """``told`` stands on the page, and its numbers are those that the study's files give."""
    assert told in " ".join((DOCS / page).read_text("utf-8").split())
    metric = "bleu" if folder in (MULTI30K, CONSTITUENTS) else "exact"
    paths = sorted((DOCS / "results" / folder).rglob(ITEMS_FILE))
    part = join([read_part(path) for path in paths])
    scores = ItemScores(StoredLines(part), part.results)
    found = compare_runs(
        scores.table(row, baseline, metric),
        scores.table(baseline, baseline, metric),
        scores.copies(baseline, metric),
    )
    digits = len(told.split()[0].partition(".")[2])
    for name in ("difference", "low", "high"):
        number = f"{getattr(found, name):+.{digits}f}"
        assert number in told or (number[0] == "+" and number[1:] in told)
    if ", p = " in told:
        p = told.rpartition(" ")[2]
        assert f"{found.p:.{len(p) - 2}f}" == p
