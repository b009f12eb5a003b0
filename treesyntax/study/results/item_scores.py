"""The scores of a study's runs by test item, from their hypotheses.

An item is a distinct pair of source and reference: copies of it in a test set are no further evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from treesyntax.data.encoding import TEXT
from treesyntax.errors import InputError
from treesyntax.files import read_lines, sha256_of, sha256_of_value
from treesyntax.metrics import CORPUS_METRICS, ITEM_METRICS, PART_METRICS, UNSEEN, unseen_lines
from treesyntax.metrics.runs import pulls
from treesyntax.metrics.statistics import corpus_score, f1_score, line_statistics
from treesyntax.study.recipe.recipe import Method, Side
from treesyntax.study.results.results import RESULTS_FILE, Result
from treesyntax.study.run.code import code_of
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import Run, located
from treesyntax.trees.formats import FORMATS, read_trees

if TYPE_CHECKING:  # sacreBLEU is loaded by those who score with it
    from sacrebleu.metrics.base import Metric

CLOSE = 0.01
"""Points by which a recorded score may differ from that of its hypotheses."""


def _judge(metric: str, references: tuple[str, ...]) -> Metric:
    # sacreBLEU prepares the references once for all rows.
    return CORPUS_METRICS[metric](references=[list(references)])


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
        self.judge = lru_cache(maxsize=8)(_judge)

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
        copies = np.bincount(items)
        self._check(metric, runs, copies @ table / copies.sum())
        return table

    def by_line(self, run: Run, metric: str) -> NDArray[np.float64]:
        """What the score of a run is a function of, whole numbers [lines, columns]."""
        references = self.lines(self._file(run.method.target.test))
        chosen = self.chosen(run.method, metric, len(references))
        wanted = [references[number] for number in chosen]
        return self._judged(metric, self._hypotheses(run, chosen), wanted)

    def _judged(
        self, metric: str, hypotheses: list[str], references: list[str]
    ) -> NDArray[np.float64]:
        """[lines, numbers] of one run; for metrics that judge each line the number is 0 or 1."""
        plain = metric.removesuffix(UNSEEN)
        if plain in CORPUS_METRICS:
            return line_statistics(self.judge(plain, tuple(references)), hypotheses)
        if plain in PART_METRICS:
            return np.array(PART_METRICS[plain](hypotheses, references), dtype=np.float64)
        right = map(bool, ITEM_METRICS[plain](hypotheses, references))
        return np.array([*right], dtype=np.float64)[:, None]

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
        """The lines that a metric counts, of a test set of this size."""
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
