"""Which rows of a study differ from their baseline: tests over the hypotheses of its runs.

A row is tested with those seeds that it shares with its baseline. All tests of a study are corrected
for their number together (Holm), so a grid of many rows and metrics finds no more by chance than one
test would. The tests are kept in ``significance.json`` and computed again only where
hypotheses, references or this version changed.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from treesyntax import __version__
from treesyntax.errors import InputError
from treesyntax.files import read_lines, sha256_of, sha256_of_value
from treesyntax.metrics import CORPUS_METRICS, ITEM_METRICS, PART_METRICS, UNSEEN, unseen_lines
from treesyntax.metrics.statistics import (
    RESAMPLES,
    SHUFFLES,
    bootstrap,
    holm,
    line_statistics,
    mean_f1,
    mean_score,
    randomisation,
    sign_flip,
)
from treesyntax.study.recipe.recipe import Method, Side
from treesyntax.study.results.comparisons import Comparison
from treesyntax.study.results.results import Result
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import Run, located

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

SIGN_FLIP = "exact sign-flip over lines"
RANDOMISATION = f"approximate randomisation over lines, {SHUFFLES} shuffles"


def is_tested(metric: str) -> bool:
    """Whether there is a test for a metric."""
    plain = metric.removesuffix(UNSEEN)
    return any(plain in kind for kind in (ITEM_METRICS, PART_METRICS, CORPUS_METRICS))


def compare(
    plan: Plan, folder: Path, results: Sequence[Result], known: Sequence[Comparison] = ()
) -> list[Comparison]:
    """Test each row of a study against its baseline, as far as there are results."""
    maker = _Maker(plan, folder, results, known)
    rows = list(product(filter(is_tested, plan.recipe.score), plan.recipe.methods))
    shown = track(
        rows,
        "testing rows",
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    found = [
        comparison
        for metric, method in shown
        if (comparison := maker.comparison(method, metric)) is not None
    ]
    corrected = holm([comparison.p for comparison in found])
    return [replace(one, holm_p=p) for one, p in zip(found, corrected, strict=True)]


def lost_reference(plan: Plan, folder: Path) -> Path | None:
    """A test set that does not exist any more, without which nothing can be tested."""
    files = {located(method.target.test, folder) for method in plan.recipe.methods}
    return next((file for file in sorted(files) if not file.is_file()), None)


def _judge(metric: str, references: tuple[str, ...]) -> Metric:
    # sacreBLEU prepares the references once for all rows.
    return CORPUS_METRICS[metric](references=[list(references)])


class _Maker:
    def __init__(
        self, plan: Plan, folder: Path, results: Sequence[Result], known: Sequence[Comparison]
    ) -> None:
        self.plan, self.folder = plan, folder
        self.known = {comparison.key: comparison for comparison in known}
        self.scored = {result.key for result in results}
        # A baseline's statistics serve all its rows; those of rows are used once.
        self.statistics = lru_cache(maxsize=8)(self._statistics)
        self.lines = lru_cache(maxsize=64)(lambda path: list(read_lines(path)))
        self.unseen = lru_cache(maxsize=8)(self._unseen)
        self.digest = lru_cache(maxsize=None)(sha256_of)
        self.judge = lru_cache(maxsize=8)(_judge)

    def comparison(self, method: Method, metric: str) -> Comparison | None:
        baseline = self.plan.recipe.baseline_of(method)
        if baseline is None or (metric.endswith(UNSEEN) and _other_data(method, baseline)):
            return None
        seeds = tuple(
            seed
            for seed in self.plan.recipe.seeds
            if all(self._has_hypotheses(Run(row, seed), metric) for row in (method, baseline))
        )
        if not seeds or not self._file(baseline.target.test).is_file():
            return None
        key = self._key(method, baseline, seeds, metric)
        if key in self.known:
            return replace(self.known[key], method=method.name, baseline=baseline.name)
        return self._test(method, baseline, seeds, metric, key)

    def _has_hypotheses(self, run: Run, metric: str) -> bool:
        return (run.method.name, run.seed, metric) in self.scored and self._output(run).is_file()

    def _test(
        self, method: Method, baseline: Method, seeds: tuple[int, ...], metric: str, key: str
    ) -> Comparison:
        one, other = (self.statistics(row.name, seeds, metric) for row in (method, baseline))
        plain = metric.removesuffix(UNSEEN)
        if plain in ITEM_METRICS:
            won = (one - other).sum(axis=(1, 2)).astype(int).tolist()
            difference = 100 * sum(won) / (len(won) * len(seeds))
            test, p, bootstrap_p = SIGN_FLIP, sign_flip(won), None
        else:
            score = mean_f1 if plain in PART_METRICS else mean_score(CORPUS_METRICS[plain]())
            difference = score(one.sum(0)) - score(other.sum(0))
            test, p = RANDOMISATION, randomisation(one, other, score)
            bootstrap_p = bootstrap(one, other, score)
        return Comparison(
            method.name, baseline.name, metric, seeds, len(one), difference, test, p, bootstrap_p,
            p, key,
        )  # fmt: skip

    def _statistics(self, name: str, seeds: tuple[int, ...], metric: str) -> NDArray[np.float64]:
        """[lines, seeds, numbers]; for metrics that judge each line the number is 0 or 1."""
        method = next(method for method in self.plan.recipe.methods if method.name == name)
        references = self.lines(self._file(method.target.test))
        chosen = self._chosen(method, metric, len(references))
        hypotheses = [self._hypotheses(Run(method, seed), chosen) for seed in seeds]
        wanted = [references[number] for number in chosen]
        plain = metric.removesuffix(UNSEEN)
        if plain in CORPUS_METRICS:
            return line_statistics(self.judge(plain, tuple(wanted)), hypotheses)
        if plain in PART_METRICS:
            parts = [PART_METRICS[plain](lines, wanted) for lines in hypotheses]
            return np.array(parts, dtype=np.float64).transpose(1, 0, 2)
        right = [ITEM_METRICS[plain](lines, wanted) for lines in hypotheses]
        return np.array(right, dtype=np.float64).T[:, :, None]

    def _hypotheses(self, run: Run, chosen: Sequence[int]) -> list[str]:
        path, test = self._output(run), self._file(run.method.target.test)
        lines, size = list(read_lines(path)), len(self.lines(test))
        if len(lines) != size:
            raise InputError(
                path, None, f"has {len(lines)} lines, but {test} has {size}", "run the study again"
            )
        return [lines[number] for number in chosen]

    def _chosen(self, method: Method, metric: str, size: int) -> list[int]:
        if not metric.endswith(UNSEEN):
            return list(range(size))
        return [
            number for number, new in enumerate(self.unseen(method.source, method.target)) if new
        ]

    def _unseen(self, source: Side, target: Side) -> list[bool]:
        files = (source.test, target.test, source.train, target.train)
        return unseen_lines(*(self.lines(self._file(file)) for file in files))

    def _key(self, method: Method, baseline: Method, seeds: tuple[int, ...], metric: str) -> str:
        parts: list[object] = [metric, SHUFFLES, RESAMPLES, __version__]
        parts += [
            self.digest(self._output(Run(row, seed)))
            for row in (method, baseline)
            for seed in seeds
        ]
        parts.append(self.digest(self._file(baseline.target.test)))
        if metric.endswith(UNSEEN):
            parts.append(self.unseen(method.source, method.target))
        parts.append(list(seeds))
        return sha256_of_value(parts)

    def _output(self, run: Run) -> Path:
        return self.folder / run.folder / "hypotheses.txt"

    def _file(self, name: str) -> Path:
        return located(name, self.folder)


def _other_data(method: Method, baseline: Method) -> bool:
    """Whether the two rows differ in their data, so that other lines are unseen."""
    return (method.source, method.target) != (baseline.source, baseline.target)
