"""Scores in points by test item and run, from line statistics.

An item is a distinct pair of source and reference: copies of it in a test set are no further evidence.
Line statistics are those of the outputs of a study (:class:`treesyntax.study.results.outputs.Outputs`) or of the
file ``items.jsonl`` that its report wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from treesyntax.endings import LAST
from treesyntax.errors import InputError
from treesyntax.metrics import CORPUS_METRICS, OF_PARTS, plain_name
from treesyntax.metrics.labels import MACRO, macro_f1
from treesyntax.metrics.runs import pulls
from treesyntax.metrics.statistics import corpus_score, f1_score
from treesyntax.study.results.results import RESULTS_FILE, Result

Mask = Callable[[str, str], NDArray[np.bool_]]
"""Of a row and a metric which of the lines that it counts are scored."""
CLOSE = 0.01
"""Points by which a recorded score may differ from that of its line statistics."""


class LineStatistics(Protocol):
    """What metrics keep of each test line that they count, wherever it is from."""

    def seeds(self, row: str, metric: str) -> Sequence[int]:
        """The seeds of a row's runs that have such statistics."""

    def statistics(self, row: str, seed: int, metric: str) -> NDArray[np.float64]:
        """Of a run: whole numbers [lines, columns]."""

    def items(self, row: str, metric: str) -> NDArray[np.intp]:
        """For each line the index of its item, which counts up where an item is new."""

    def categories(self, row: str, metric: str) -> tuple[tuple[str, ...], NDArray[np.intp]]:
        """The names of the categories, and for each line the index of its own; none where they are not known."""

    def refused(self, row: str, seed: int, metric: str, why: str) -> InputError:
        """The refusal of a run's statistics."""


class ItemScores:
    """Scores in points by item and run.

    Args:
        lines: the statistics.
        results: of the runs; statistics that give other scores than these are refused.
        fixed: whether trainings had a fixed budget, so that none counts as still learning.
    """

    def __init__(
        self, lines: LineStatistics, results: Sequence[Result], fixed: bool = False
    ) -> None:
        self.lines, self.fixed = lines, fixed
        self.results = {result.key: result for result in results}
        self.mask: Mask | None = None  # all lines
        self._remember()

    def _remember(self) -> None:
        """Keep a few tables: a baseline's scores serve all its rows; those of rows are used once."""
        self.table = lru_cache(maxsize=8)(self._table)
        self.items = lru_cache(maxsize=8)(self._items)

    def of_lines(self, mask: Mask) -> ItemScores:
        """Those of some lines alone."""
        scores = copy(self)
        scores.mask = mask
        scores._remember()
        return scores

    def of_category(self, category: str) -> ItemScores:
        """Those of the lines of a category alone."""

        def mask(row: str, metric: str) -> NDArray[np.bool_]:
            names, indices = self.lines.categories(row, metric)
            return indices == (names.index(category) if category in names else -1)

        return self.of_lines(mask)

    def known(self, row: str, metric: str) -> bool:
        """Whether a row has a line to be scored on."""
        known = bool(self.lines.seeds(row, metric))
        return known and (self.mask is None or bool(self.mask(row, metric).any()))

    def still_learning(self, row: str, metric: str) -> int:
        """How many of a row's runs were still learning at their end, as far as is known."""
        runs = [self.results[row, seed, metric] for seed in self.lines.seeds(row, metric)]
        return 0 if self.fixed else sum(bool(run.still_learning) for run in runs)

    def best_last(self, rows: Sequence[str], metric: str) -> tuple[int, int]:
        """Of how many runs of some rows the last checkpoint was the best one, and how many there are."""
        runs = [
            self.results[row, seed, metric]
            for row in rows
            for seed in self.lines.seeds(row, metric)
        ]
        return sum(run.ended == LAST for run in runs), len(runs)

    def updates(self, rows: Sequence[str]) -> int | None:
        """The most updates that a run of some rows was trained for, if the budget is fixed."""
        updates = [run.updates for run in self.results.values() if run.method in rows]
        return max(updates) if self.fixed else None

    def copies(self, baseline: str, metric: str) -> NDArray[np.intp]:
        """For each item of a baseline in how many lines of the test set it stands."""
        return np.bincount(self.items(baseline, metric))

    def values(self, row: str, baseline: str, metric: str) -> list[float]:
        """The score of each run of a row, over the lines that count for its baseline."""
        copies = self.copies(baseline, metric)
        scores: list[float] = (copies @ self.table(row, baseline, metric) / copies.sum()).tolist()
        return scores

    def _table(self, name: str, baseline: str, metric: str) -> NDArray[np.float64]:
        """The scores [items, runs] of a row, the items being those of its baseline."""
        items, seeds = self.items(baseline, metric), self.lines.seeds(name, metric)
        by_line = np.stack([self.lines.statistics(name, seed, metric) for seed in seeds], axis=1)
        if self.mask is not None:  # recorded scores are of the whole test set, and checked there
            return points(metric, by_line[self.mask(name, metric)], items)
        table, copies = points(metric, by_line, items), np.bincount(items)
        for seed, score in zip(seeds, (copies @ table / copies.sum()).tolist(), strict=True):
            recorded = self.results[name, seed, metric].value
            if not abs(recorded - score) <= CLOSE:
                why = f"{score:.2f}, but {RESULTS_FILE} has {recorded:.2f}"
                raise self.lines.refused(name, seed, metric, why)
        return table

    def _items(self, baseline: str, metric: str) -> NDArray[np.intp]:
        items = self.lines.items(baseline, metric)
        return items if self.mask is None else renumbered(items[self.mask(baseline, metric)])


def points(
    metric: str, by_line: NDArray[np.float64], items: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Scores in points [items, runs] whose mean over lines is the score of each run.

    Args:
        metric: one that has a test.
        by_line: [lines, runs, columns], what metrics keep of each line.
        items: for each line the index of its item.
    """
    copies = np.bincount(items)
    sums = np.zeros((len(copies), *by_line.shape[1:]))
    np.add.at(sums, items, by_line)
    means = sums / copies[:, None, None]
    plain = plain_name(metric)
    if plain in CORPUS_METRICS:
        return pulls(means, corpus_score(CORPUS_METRICS[plain]()), copies)
    if plain == MACRO:
        return pulls(means, macro_f1, copies)
    if means.shape[-1] == OF_PARTS:
        return pulls(means, f1_score, copies)
    return 100 * means[..., 0]


def renumbered(items: NDArray[np.intp]) -> NDArray[np.intp]:
    """Indices from 0, in the order of their first lines."""
    indices: dict[int, int] = {}
    return np.array([indices.setdefault(item, len(indices)) for item in items.tolist()])
