"""Scores by the category of test items: a table with intervals, and its CSV.

The recipe's ``categories`` names a file with one category for each line of the test set, such as the
cases of COGS. The difference of a row from its baseline has its interval over training runs and the
items of the category (`treesyntax.metrics.compare_runs`). There is one comparison for each category, so
intervals are not corrected for their number and there are no marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from treesyntax.metrics.runs import compare_runs
from treesyntax.study.report.table import Spread
from treesyntax.study.results.item_scores import ItemScores
from treesyntax.study.results.rows import ItemRow, is_tested

CATEGORY_HEADER = (
    "category", "items", "row", "metric", "score", "runs", "difference", "95 % interval",
)  # fmt: skip


class CategoryScore(NamedTuple):
    """A row's score of one category.

    Attributes:
        items: distinct pairs of source and reference.
        lines: lines of the test set in which these stand.
        spread: over runs.
        baseline: the row it is compared with; "" for a baseline, which has no difference.
        low: lower end of the 95 % interval of the difference; None with fewer than 3 runs a side.
        high: its upper end.
    """

    category: str
    items: int
    lines: int
    method: str
    metric: str
    spread: Spread
    baseline: str
    difference: float | None
    low: float | None
    high: float | None

    def cells(self) -> list[str]:
        """The texts of a line of the table."""
        items = (
            str(self.items) if self.items == self.lines else f"{self.items} ({self.lines} lines)"
        )
        gap = "–" if self.difference is None else f"{self.difference:+.2f}"
        interval = "–" if self.low is None else f"{self.low:+.2f} to {self.high:+.2f}"
        runs = str(len(self.spread.values))
        score = str(self.spread)
        return [self.category, items, self.method, self.metric, score, runs, gap, interval]


def score_categories(
    scores: ItemScores, rows: Sequence[ItemRow], metrics: Sequence[str]
) -> list[CategoryScore]:
    """The score of each row in each category and metric, on each test set."""
    found: list[CategoryScore] = []
    for test_set in dict.fromkeys(row.test_set for row in rows):
        pairs = [
            (row, metric)
            for metric in filter(is_tested, metrics)
            for row in rows
            if row.test_set == test_set and scores.lines.seeds(row.row, metric)
        ]
        names = [scores.lines.categories(row.row, metric)[0] for row, metric in pairs]
        for category in dict.fromkeys(name for own in names for name in own):
            part = scores.of_category(category)
            for row, metric in pairs:
                if part.known(
                    row.row, metric
                ):  # all lines of a category may be in the training data
                    compared = row.baseline and part.known(row.baseline, metric)
                    baseline = row.baseline if compared else ""
                    found.append(score_category(part, category, row.row, baseline, metric))
    return found


def score_category(
    scores: ItemScores, category: str, row: str, baseline: str, metric: str
) -> CategoryScore:
    """A row's score of one category.

    Args:
        scores: of the lines of the category.
        baseline: the row to compare with; "" for none.
    """
    owner = baseline or row
    table, copies = scores.table(row, owner, metric), scores.copies(owner, metric)
    values = Spread.of((copies @ table / copies.sum()).tolist())
    difference = low = high = None
    if baseline:
        test = compare_runs(table, scores.table(baseline, baseline, metric), copies, few_items=True)
        difference = test.difference
        low, high = (None if np.isnan(end) else end for end in (test.low, test.high))
    size = int(copies.sum())
    return CategoryScore(
        category, len(copies), size, row, metric, values, baseline, difference, low, high
    )
