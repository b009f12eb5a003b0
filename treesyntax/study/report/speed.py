"""How fast rows trained, and how many minutes their runs took."""

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


class Minutes(NamedTuple):
    """Minutes of a run, mean over runs. What older records do not say is None: all but training."""

    training: float
    generation: float | None
    scoring: float | None
    start_up: float | None

    @classmethod
    def of(cls, results: Sequence[Result]) -> Minutes | None:
        """Of those of a row, None where it has none."""
        runs = list({result.seed: result for result in results}.values())
        if not runs:
            return None
        known = all(run.seconds for run in runs)
        parts = [
            fmean(sum(run.seconds.get(kind, 0.0) for kind in kinds) for run in runs) / 60
            for kinds in (
                ("average", "generate", "hypotheses"),
                ("score", "facts"),
                ("start_up",),
            )
        ]
        training = fmean(run.train_seconds for run in runs) / 60
        return cls(training, *(parts if known else (None, None, None)))

    @property
    def total(self) -> float:
        """Of all parts that are known."""
        return sum(part or 0.0 for part in self)

    def __str__(self) -> str:
        """All together; of older records that of training, which is said."""
        text = f"{self.total:.1f}" if self.total >= 0.05 else f"{self.total:.2f}"
        return text if self.generation is not None else f"{text} (training)"
