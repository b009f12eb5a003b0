"""Scores by the category of test items: a table with intervals, and its CSV.

The recipe's ``categories`` names a file with one category for each line of the test set, such as the
cases of COGS. The difference of a row from its baseline has its interval over training runs and the
items of the category (`treesyntax.metrics.compare_runs`). There is one comparison for each category, so
intervals are not corrected for their number and there are no marks.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from treesyntax.errors import InputError
from treesyntax.files import read_lines
from treesyntax.metrics.runs import compare_runs
from treesyntax.study.recipe.recipe import Method
from treesyntax.study.report.breakdown import Quantity
from treesyntax.study.report.table import Spread
from treesyntax.study.results.current import Comparable
from treesyntax.study.results.item_scores import ItemScores, Scores
from treesyntax.study.results.results import Result
from treesyntax.study.results.significance import is_tested
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import located

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


def read_categories(plan: Plan, folder: Path) -> Quantity | None:
    """The category of each line of the test set; None if the recipe names no file.

    The plan is of one test set, see :func:`treesyntax.study.report.domains.plans_by_test_set`.

    Raises:
        InputError: if the file cannot be read or has another number of lines than the test set.
    """
    first = plan.recipe.methods[0]
    if not first.categories:
        return None
    path, test = (located(name, folder) for name in (first.categories, first.target.test))
    found, size = (
        [" ".join(line.split()) for line in read_lines(path)],
        sum(1 for _ in read_lines(test)),
    )
    if len(found) != size:
        cause = f"has {len(found)} lines, but {test} has {size}"
        raise InputError(path, None, cause, "name the category of each line")
    names = list(dict.fromkeys(found))
    return Quantity("category", "category", tuple(map(names.index, found)), tuple(names))


def score_categories(
    plan: Plan,
    folder: Path,
    results: Sequence[Result],
    categories: Quantity,
    may_compare: Comparable,
) -> list[CategoryScore]:
    """The score of each row in each category and metric, as far as there are results."""

    def baseline_of(scores: ItemScores, method: Method, metric: str) -> str:
        baseline = plan.recipe.baseline_of(method)
        if baseline is None or not may_compare(method.name, baseline.name):
            return ""
        return baseline.name if scores.runs(baseline, metric) else ""

    def counts(scores: ItemScores, method: Method, metric: str) -> bool:
        """Whether any line does; those of a category may all be in the training data."""
        size = len(scores.lines(located(method.target.test, folder)))
        return bool(scores.chosen(method, metric, size))

    found: list[CategoryScore] = []
    whole = ItemScores(plan, folder, results)
    for place, category in enumerate(categories.names):
        scores = whole.of_lines(categories.lines(place))
        found += [
            score_category(
                scores, category, method.name, baseline_of(scores, method, metric), metric
            )
            for metric in filter(is_tested, plan.recipe.score)
            for method in plan.recipe.methods
            if scores.runs(method, metric) and counts(scores, method, metric)
        ]
    return found


def score_category(
    scores: Scores, category: str, row: str, baseline: str, metric: str
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
