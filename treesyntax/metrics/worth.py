"""How much data a tree is worth: how many times the training pairs a baseline needs to reach a row.

Both were trained on several numbers of pairs. The baseline's curve of score by pairs is made
monotone (more data does no harm: isotonic regression, Barlow et al. 1972) and is straight between its
points on a logarithmic axis of pairs. Where it reaches the row's score, it has so many pairs.

The interval is a bootstrap: items are drawn with replacement, the same for all curves, and the runs of
each point (both factors of a crossed design: Owen 2007). Few runs drawn from few vary too little. So
how far the drawn runs lie from the mean is multiplied by √(R / (R - 1)), and by the ratio of Student's
t with 3 (R - 1) degrees of freedom to the normal's: the row and two points of the baseline decide.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, isinf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtrit

from treesyntax.metrics.runs import FEWEST_RUNS, LEVEL

Array = NDArray[np.float64]
RESAMPLES, BLOCK, SEED = 2000, 200, 12345
CLOSE = 1e-9
"""Share of the largest score by which equal ones may differ, since means are rounded."""
POINTS = 3
"""Points of both curves that decide on a factor: the row's and the two of the baseline beside it."""


class Curve(NamedTuple):
    """The curve of a row: its scores by number of training pairs.

    Attributes:
        pairs: numbers of training pairs, rising.
        scores: mean score at each.
        low: lower ends of the 95 % intervals of these.
        high: their upper ends.
        runs: training runs at each.
    """

    pairs: tuple[int, ...]
    scores: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    runs: tuple[int, ...]


class Times(NamedTuple):
    """How many times the pairs of the row the baseline needs to reach its score.

    Attributes:
        pairs: training pairs of the row.
        times: the factor; infinity where the baseline's curve never reaches the row (beyond the data),
            0 where it is above the row from its first point on (before the data).
        low: lower end of the 95 % interval.
        high: its upper end.
        range: the factors between which the baseline has data.
    """

    pairs: int
    times: float
    low: float
    high: float
    range: tuple[float, float]

    def __str__(self) -> str:
        """As in a report: ``3.2× the pairs [1.9, beyond the data]``."""
        ends = ", ".join(self._text(end) for end in (self.low, self.high))
        if isinf(self.times):
            return f"more than {self.range[1]:.2g}× the pairs: beyond the data [{ends}]"
        if not self.times:
            return f"less than {self.range[0]:.2g}× the pairs: before the data [{ends}]"
        return f"{self.times:.2g}× the pairs [{ends}]"

    @staticmethod
    def _text(times: float) -> str:
        return "beyond the data" if isinf(times) else f"{times:.2g}" if times else "before the data"


class Worth(NamedTuple):
    """The worth of a row: how many times the data its baseline needs.

    Attributes:
        row: the row's curve.
        baseline: the baseline's.
        times: the factor at each number of pairs of the row. The first, at the fewest pairs, is the
            number to report: there the baseline has most data left to catch up.
    """

    row: Curve
    baseline: Curve
    times: tuple[Times, ...]


def data_worth(
    row: Mapping[int, ArrayLike],
    baseline: Mapping[int, ArrayLike],
    weights: ArrayLike | None = None,
    *,
    lower_is_better: bool = False,
    resamples: int = RESAMPLES,
) -> Worth:
    """Say how many times the training pairs a baseline needs to reach a row.

    Args:
        row: scores [items, runs] by the number of training pairs; of corpus scores, what
            :func:`treesyntax.metrics.runs.pulls` makes of them.
        baseline: the same of the baseline, at two numbers of pairs or more. Items are the same, in the
            same order, at every number of pairs.
        weights: [items], how often each item stands in the test set; 1 unless told.
        lower_is_better: whether a lower score is better, as with TER.
        resamples: draws for the intervals.

    Raises:
        ValueError: if a table has fewer than 3 runs or other items, or the baseline has one size only.
    """
    sizes = [sorted(curve) for curve in (row, baseline)]
    if not sizes[0] or len(sizes[1]) < 2 or min(sizes[0] + sizes[1]) < 1:
        raise ValueError("a row at one number of pairs and a baseline at two or more are needed")
    tables = [
        np.asarray(curve[size], np.float64)
        for curve, curve_sizes in zip((row, baseline), sizes, strict=True)
        for size in curve_sizes
    ]
    _check(tables)
    copies = np.ones(len(tables[0])) if weights is None else np.asarray(weights, np.float64)
    if copies.shape != (len(tables[0]),) or not ((copies > 0) & np.isfinite(copies)).all():
        raise ValueError("weights are one positive, finite number an item")
    sign = -1.0 if lower_is_better else 1.0
    means = np.array([np.average(table, axis=0, weights=copies).mean() for table in tables])
    drawn = _resample(tables, copies, resamples)
    ends = np.quantile(drawn, [LEVEL / 2, 1 - LEVEL / 2], axis=0)
    split = len(sizes[0])
    logs = np.log(sizes[1])
    reached = _reached(sign * means[None, :split], sign * means[None, split:], logs)[0]
    among = _reached(sign * drawn[:, :split], sign * drawn[:, split:], logs)
    among = np.sort(among, axis=0)
    indices = np.array([LEVEL / 2, 1 - LEVEL / 2]) * (resamples - 1)
    low, high = among[int(indices[0])], among[int(np.ceil(indices[1]))]
    curves = [
        Curve(
            tuple(curve_sizes),
            tuple(means[slots].tolist()),
            tuple(ends[0, slots].tolist()),
            tuple(ends[1, slots].tolist()),
            tuple(table.shape[1] for table in tables[slots]),
        )
        for curve_sizes, slots in zip(sizes, (slice(split), slice(split, None)), strict=True)
    ]
    times = [
        Times(
            pairs,
            float(np.exp(reached[n]) / pairs),
            float(np.exp(low[n]) / pairs),
            float(np.exp(high[n]) / pairs),
            (sizes[1][0] / pairs, sizes[1][-1] / pairs),
        )
        for n, pairs in enumerate(sizes[0])
    ]
    return Worth(curves[0], curves[1], tuple(times))


def _check(tables: list[Array]) -> None:
    for table in tables:
        if table.ndim != 2 or table.shape[0] != len(tables[0]) or not table.size:
            raise ValueError(
                f"{table.shape} is not [items, runs] of the {len(tables[0])} items of the first table"
            )
        if table.shape[1] < FEWEST_RUNS:
            raise ValueError(
                f"{table.shape[1]} runs at a number of pairs, {FEWEST_RUNS} are needed"
            )
        if not np.isfinite(table).all():
            raise ValueError("a score is not finite")


def _resample(tables: list[Array], copies: Array, resamples: int) -> Array:
    """Mean scores [resamples, tables] over drawn items and runs."""
    source = np.random.default_rng(SEED)
    items, runs = len(copies), [table.shape[1] for table in tables]
    together = np.concatenate(tables, axis=1)
    blocks = []
    for begin in range(0, resamples, BLOCK):
        size = min(BLOCK, resamples - begin)
        counts = source.multinomial(items, np.full(items, 1 / items), size) * copies
        by_run = counts @ together / counts.sum(1, keepdims=True)
        columns, first = [], 0
        for number in runs:
            table_means = by_run[:, first : first + number]
            chosen = np.take_along_axis(
                table_means, source.integers(number, size=(size, number)), axis=1
            )
            wider = (number / (number - 1)) ** 0.5
            wider *= stdtrit(POINTS * (number - 1), 1 - LEVEL / 2) / ndtri(1 - LEVEL / 2)
            centre = table_means.mean(1)
            columns.append(centre + wider * (chosen.mean(1) - centre))
            first += number
        blocks.append(np.stack(columns, axis=1))
    return np.concatenate(blocks)


def _monotone(curves: Array) -> Array:
    """The rising curves [draws, points] that are nearest to curves (Barlow et al. 1972, theorem 1.4)."""
    points = curves.shape[1]
    sums = np.concatenate([np.zeros((len(curves), 1)), curves.cumsum(1)], axis=1)
    rising = np.empty_like(curves)
    for point in range(points):
        lowest = [
            np.min(
                [
                    (sums[:, end] - sums[:, begin]) / (end - begin)
                    for end in range(point + 1, points + 1)
                ],
                axis=0,
            )
            for begin in range(point + 1)
        ]
        rising[:, point] = np.max(lowest, axis=0)
    return rising


def _reached(scores: Array, curves: Array, logs: Array) -> Array:
    """The logarithm of the pairs [draws, scores] at which rising curves reach scores.

    Infinity where they never do, minus infinity where they are above a score from their first point.
    """
    curves = _monotone(curves)
    reached = np.full(scores.shape, inf)
    near = CLOSE * max(abs(scores).max(), abs(curves).max())
    for number in range(scores.shape[1]):
        score = scores[:, number]
        for end in range(curves.shape[1] - 1, 0, -1):
            low, high = curves[:, end - 1], curves[:, end]
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(high - low > near, (score - low) / (high - low), 0.0)
            here = logs[end - 1] + np.clip(share, 0, 1) * (logs[end] - logs[end - 1])
            reached[:, number] = np.where(score <= high + near, here, reached[:, number])
        reached[:, number] = np.where(score < curves[:, 0] - near, -inf, reached[:, number])
    return reached
