"""How fast rows trained, and how many pairs they saw."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

from treesyntax.study.results.results import Result

BUSY = 1.25
"""Threads a core above which speeds are those of a busy machine."""


class Speed(NamedTuple):
    """Pairs a second in training: the mean of the runs' medians, and the outermost quartiles."""

    mean: float
    slow: float
    fast: float
    busy: bool

    @classmethod
    def of(cls, results: Sequence[Result]) -> Speed | None:
        """Of those of a row, None where no run has a speed."""
        runs = {result.seed: result for result in results if result.pairs_per_second}.values()
        if not runs:
            return None
        speeds = [result.pairs_per_second or 0.0 for result in runs]
        slow = min(result.slow or speed for result, speed in zip(runs, speeds, strict=True))
        fast = max(result.fast or speed for result, speed in zip(runs, speeds, strict=True))
        return cls(fmean(speeds), slow, fast, any((run.load or 0) > BUSY for run in runs))

    def __str__(self) -> str:
        """With its spread, and a mark where the machine was busy."""
        return f"{self.mean:,.0f} ({self.slow:,.0f} to {self.fast:,.0f}){' ~' * self.busy}"


def mean_pairs(results: Sequence[Result]) -> dict[str, float]:
    """Training pairs seen by row, where they are known."""
    found: dict[str, list[float]] = {}
    for result in results:
        if result.pairs is not None:
            found.setdefault(result.method, []).append(result.pairs)
    return {method: fmean(values) for method, values in found.items()}
