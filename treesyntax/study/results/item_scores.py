"""The scores of a study's runs by test item, from their hypotheses.

An item is a distinct pair of source and reference: copies of it in a test set are no further evidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from treesyntax.data.encoding import TEXT
from treesyntax.errors import InputError
from treesyntax.files import read_lines, sha256_of, sha256_of_value
from treesyntax.metrics import (
    CORPUS_METRICS,
    ITEM_METRICS,
    PART_METRICS,
    UNSEEN,
    measured,
    unseen_lines,
)
from treesyntax.metrics.line_file import FILE as LINES
from treesyntax.metrics.line_file import LineFile
from treesyntax.metrics.runs import pulls
from treesyntax.metrics.statistics import corpus_score, f1_score
from treesyntax.study.recipe.recipe import Method, Side
from treesyntax.study.results.results import RESULTS_FILE, Result
from treesyntax.study.run.code import code_of
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import Run, located
from treesyntax.trees.formats import FORMATS, read_trees

CLOSE = 0.01
"""Points by which a recorded score may differ from that of its hypotheses."""


class Scores(Protocol):
    """Scores in points by item and run, wherever they are from."""

    def copies(self, baseline: str, metric: str) -> NDArray[np.intp]:
        """For each item of a baseline in how many lines of the test set it stands."""

    def table(self, name: str, baseline: str, metric: str) -> NDArray[np.float64]:
        """The scores [items, runs] of a row, the items being those of its baseline."""


def points(
    metric: str, by_line: NDArray[np.float64], items: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Scores in points [items, runs] whose mean over lines is the score of each run.

    Args:
        metric: one that has a test.
        by_line: [lines, runs, columns], see :meth:`ItemScores.by_line`.
        items: for each line the index of its item.
    """
    copies = np.bincount(items)
    sums = np.zeros((len(copies), *by_line.shape[1:]))
    np.add.at(sums, items, by_line)
    means = sums / copies[:, None, None]
    plain = metric.removesuffix(UNSEEN)
    if plain in ITEM_METRICS:
        return 100 * means[..., 0]
    if plain in PART_METRICS:
        return pulls(means, f1_score, copies)
    return pulls(means, corpus_score(CORPUS_METRICS[plain]()), copies)


class ItemScores:
    """Scores in points by item and run.

    Args:
        plan: the study's.
        folder: the study's folder.
        results: those of its runs; hypotheses with other scores are refused.
    """

    def __init__(self, plan: Plan, folder: Path, results: Sequence[Result]) -> None:
        self.plan, self.folder = plan, folder
        self.values = {result.key: result.value for result in results}
        # A baseline's scores serve all its rows; those of rows are used once.
        self.table = lru_cache(maxsize=8)(self._table)
        self.items = lru_cache(maxsize=8)(self._items)
        self.lines = lru_cache(maxsize=64)(lambda path: list(read_lines(path)))
        self.unseen = lru_cache(maxsize=8)(self._unseen)
        self.digest = lru_cache(maxsize=None)(sha256_of)
        self.line_file = lru_cache(maxsize=64)(lambda name: LineFile(folder / name / LINES))
        self.methods = {method.name: method for method in plan.recipe.methods}
        self._known = lru_cache(maxsize=16)(self._statistics)
        self.only: frozenset[int] | None = None

    def of_lines(self, only: Iterable[int]) -> ItemScores:
        """The same over some lines of the test set."""
        part = copy(self)
        part.only = frozenset(only)
        part.table = lru_cache(maxsize=8)(part._table)
        part.items = lru_cache(maxsize=8)(part._items)
        return part

    def runs(self, method: Method, metric: str) -> list[Run]:
        """The runs of a row that have this score."""
        runs = [Run(method, seed) for seed in self.plan.recipe.seeds]
        scored = [run for run in runs if (method.name, run.seed, metric) in self.values]
        return [run for run in scored if self.output(run).is_file()]

    def copies(self, baseline: str, metric: str) -> NDArray[np.intp]:
        """For each item in how many lines of the test set it stands."""
        return np.bincount(self.items(baseline, metric))

    def has_references(self, method: Method) -> bool:
        """Whether the test set still exists."""
        return self._file(method.target.test).is_file()

    def key(self, runs: Sequence[Sequence[Run]], metric: str) -> str:
        """A hash of everything that scores and their comparison depend on."""
        baseline = runs[1][0].method
        files = [baseline.target.test, baseline.source.test]
        if metric.endswith(UNSEEN):
            files += [baseline.source.train, baseline.target.train]
        paths = [self._file(file) for file in files]
        inputs = [self.digest(path) for path in paths if path.is_file()]
        outputs = [[self.digest(self.output(run)) for run in side] for side in runs]
        return sha256_of_value([metric, outputs, inputs, code_of("score")])

    def output(self, run: Run) -> Path:
        """The hypotheses of a run."""
        return self.folder / run.folder / "hypotheses.txt"

    def _table(self, name: str, baseline: str, metric: str) -> NDArray[np.float64]:
        """The scores [items, runs] of a row, the items being those of its baseline."""
        method, other = (
            next(method for method in self.plan.recipe.methods if method.name == wanted)
            for wanted in (name, baseline)
        )
        items = self.items(other.name, metric)
        runs = self.runs(method, metric)
        table = points(metric, np.stack([self.by_line(run, metric) for run in runs], axis=1), items)
        if self.only is None:  # recorded scores are of the whole test set
            copies = np.bincount(items)
            self._check(metric, runs, copies @ table / copies.sum())
        return table

    def by_line(self, run: Run, metric: str) -> NDArray[np.float64]:
        """What the score of a run is a function of, whole numbers [lines, columns]."""
        statistics = self.statistics(run, metric)
        if self.only is None:
            return statistics
        counted = self._counted(
            run.method, metric, len(self.lines(self._file(run.method.target.test)))
        )
        return statistics[[line in self.only for line in counted]]

    def numbered_lines(self, run: Run, metric: str) -> list[tuple[int, NDArray[np.float64]]]:
        """The index of each line that counts, with what it contributes."""
        size = len(self.lines(self._file(run.method.target.test)))
        return list(
            zip(self.chosen(run.method, metric, size), self.by_line(run, metric), strict=True)
        )

    def statistics(self, run: Run, metric: str) -> NDArray[np.float64]:
        """What a metric keeps of each line that it counts, whole numbers [lines, columns]."""
        return self._known(run.method.name, run.seed, metric)

    def _statistics(self, name: str, seed: int, metric: str) -> NDArray[np.float64]:
        """As the step ``score`` found it; outputs that an older version scored are judged here."""
        method = self.methods[name]
        run = Run(method, seed)
        files = {"hypothesis": self.output(run), "reference": self._file(method.target.test)}
        if metric.endswith(UNSEEN):
            files["source"] = self._file(method.source.test)
            files["train_source"] = self._file(method.source.train)
            files["train_target"] = self._file(method.target.train)
        digests = {name: self.digest(path) for name, path in files.items() if path.is_file()}
        statistics = self.line_file(run.folder).statistics(metric, digests)
        if statistics is not None and len(digests) == len(files):
            return statistics
        references = self.lines(files["reference"])
        counted = self._counted(method, metric, len(references))
        wanted = [references[number] for number in counted]
        return measured(metric.removesuffix(UNSEEN), self._hypotheses(run, counted), wanted).lines

    def _check(self, metric: str, runs: Sequence[Run], scores: NDArray[np.float64]) -> None:
        """Refuse hypotheses whose score is not the recorded one: one table has one truth."""
        for run, score in zip(runs, scores.tolist(), strict=True):
            recorded = self.values[run.method.name, run.seed, metric]
            if abs(recorded - score) > CLOSE:
                raise InputError(
                    self.folder / RESULTS_FILE,
                    None,
                    f"has {recorded:.2f} {metric} for {run.name}, but {self.output(run)} has {score:.2f}",
                    "run the study again",
                )

    def _hypotheses(self, run: Run, chosen: Sequence[int]) -> list[str]:
        path, test = self.output(run), self._file(run.method.target.test)
        lines, size = list(read_lines(path)), len(self.lines(test))
        if len(lines) != size:
            raise InputError(
                path, None, f"has {len(lines)} lines, but {test} has {size}", "run the study again"
            )
        return [lines[number] for number in chosen]

    def _items(self, name: str, metric: str) -> NDArray[np.intp]:
        """For each line that counts the index of its pair of source and reference."""
        baseline = next(method for method in self.plan.recipe.methods if method.name == name)
        references = self.lines(self._file(baseline.target.test))
        sources = self.sources(baseline, len(references))
        indices: dict[tuple[object, ...], int] = {}
        return np.array([
            indices.setdefault((sources[line], *references[line].split()), len(indices))
            for line in self.chosen(baseline, metric, len(references))
        ])  # fmt: skip

    def sources(self, method: Method, size: int) -> Sequence[object]:
        """What each line of the test set is translated from: its text, the labels of its tree, or its
        index if that is not known."""
        path = self._file(method.source.test)
        if not path.is_file():
            return range(size)
        lines = self.lines(path)
        notation = str(self.plan.recipe.flags(method, "binarize").get("source-format", TEXT))
        if len(lines) != size and notation in FORMATS:
            return [tuple(tree.labels) for tree in read_trees(path, notation)]
        return [" ".join(line.split()) for line in lines]

    def chosen(self, method: Method, metric: str, size: int) -> Sequence[int]:
        """The lines that count, of a test set of this size."""
        counted = self._counted(method, metric, size)
        return counted if self.only is None else [line for line in counted if line in self.only]

    def _counted(self, method: Method, metric: str, size: int) -> Sequence[int]:
        """The lines that a metric counts."""
        if not metric.endswith(UNSEEN):
            return range(size)
        return [
            number for number, new in enumerate(self.unseen(method.source, method.target)) if new
        ]

    def _unseen(self, source: Side, target: Side) -> list[bool]:
        files = (source.test, target.test, source.train, target.train)
        return unseen_lines(*(self.lines(self._file(file)) for file in files))

    def _file(self, name: str) -> Path:
        return located(name, self.folder)
