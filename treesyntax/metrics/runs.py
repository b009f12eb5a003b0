"""Whether one system scores higher than another: a difference over training runs and test items.

A training run is a draw from all runs of a method (its seed decides initialisation and order), and
a test item is a draw from all items. A difference that a paper may claim must hold over both. The
scores of a system are a table [items, runs], and the variance of a difference of means is

    V = run_A / R_A + run_B / R_B + item / n - residual,

where run_A is the variance between the scores of A's runs, item that of the items' mean differences,
and the residual (what is special to an item in a run) stands in both and is taken out once: the
crossed two-way random-effects model (Cornfield & Tukey 1956; Clark 1973, "The language-as-fixed-effect
fallacy"). t = difference / sqrt(V) has the degrees of freedom of Satterthwaite (1946). Runs of two
methods share nothing, whatever their seeds are called: they are unpaired. Items are paired.

Corpus scores (BLEU, chrF, TER, F1) are not means over items. There the place of an item's score is
taken by how far the item pulls the score of a run, found by leaving the item out (the jackknife:
Quenouille 1956; Efron & Stein 1981).
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr, stdtrit

Array = NDArray[np.float64]
CorpusScore = Callable[[Array], Array]

FEWEST_RUNS = 3
"""Fewest runs of a system for a verdict: two say next to nothing about the spread of runs."""
LEVEL = 0.05
ROUNDING = 1e-12
"""What sums of equal scores may differ by, as a share of the largest score."""
POWER = 0.8
DRAWS, BLOCK, SEED = 10_000, 500, 12345


class RunComparison(NamedTuple):
    """A difference between two systems.

    Attributes:
        difference: mean of the first system less that of the second, in the units of the scores.
        low: lower end of the 95 % interval of the difference; NaN with fewer than 3 runs a side, and
            where nothing varies between runs or items, so that no spread can be told.
        high: its upper end.
        p: two-sided p-value of no difference; NaN with fewer than 3 runs a side.
        runs: training runs of the first and of the second system.
        items: distinct test items.
        smallest: the true difference that such a table finds in 80 % of cases; NaN as ``low``.
    """

    difference: float
    low: float
    high: float
    p: float
    runs: tuple[int, int]
    items: int
    smallest: float


def compare_runs(
    row: ArrayLike, baseline: ArrayLike, weights: ArrayLike | None = None
) -> RunComparison:
    """Compare two systems over training runs and test items.

    Args:
        row: scores [items, runs] of one system.
        baseline: scores [items, runs] of the other, of the same items in the same order; it may
            have another number of runs.
        weights: [items], how often each item stands in the test set; 1 unless told.

    Raises:
        ValueError: if the shapes do not fit, or a score is not finite.
    """
    first, second = (np.asarray(scores, np.float64) for scores in (row, baseline))
    if first.ndim != 2 or second.ndim != 2 or len(first) != len(second) or not first.size:
        raise ValueError(
            f"{first.shape} and {second.shape} are not [items, runs] of the same items"
        )
    shares = np.ones(len(first)) if weights is None else np.asarray(weights, np.float64)
    if shares.shape != (len(first),) or not (shares > 0).all():
        raise ValueError("weights are one positive number an item")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("a score is not finite")
    shares = shares / shares.sum()
    difference = float(shares @ first.mean(1) - shares @ second.mean(1))
    runs = (first.shape[1], second.shape[1])
    nan = float("nan")
    if min(runs) < FEWEST_RUNS or len(first) < 2:
        return RunComparison(difference, nan, nan, nan, runs, len(first), nan)
    error, freedom = _error(first, second, shares)
    rounding = ROUNDING * max(np.abs(first).max(), np.abs(second).max())
    if error <= rounding:
        p = _least_p(runs, len(first)) if abs(difference) > rounding else 1.0
        return RunComparison(difference, nan, nan, p, runs, len(first), nan)
    reach = stdtrit(freedom, 1 - LEVEL / 2)
    return RunComparison(
        difference,
        float(difference - reach * error),
        float(difference + reach * error),
        float(2 * stdtr(freedom, -abs(difference) / error)),
        runs,
        len(first),
        float((reach + stdtrit(freedom, POWER)) * error),
    )


def compare_corpus_scores(
    row: ArrayLike, baseline: ArrayLike, score: CorpusScore, weights: ArrayLike | None = None
) -> RunComparison:
    """:func:`compare_runs` for a score of the whole test set, such as BLEU or F1.

    Args:
        row: what the score is a function of, [items, runs, numbers], to be summed over items.
        baseline: the same of the other system.
        score: from sums [samples, numbers] to scores [samples].
        weights: as of :func:`compare_runs`.

    Raises:
        ValueError: as :func:`compare_runs`.
    """
    first, second = (pulls(part, score, weights) for part in (row, baseline))
    return compare_runs(first, second, weights)


def checkpoint_p(row: ArrayLike, baseline: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Two-sided p-value of no difference between these checkpoints on other test items.

    It takes the runs as fixed, so it says nothing about the methods: those that are equal get a
    small p as soon as their runs differ. The signs of the items' mean differences are drawn at
    random; p is ``(r + 1) / (draws + 1)``, r being the draws whose sum is at least as far from 0 as
    the one found (Fisher's randomisation test; Noreen 1989; Riezler & Maxwell 2005).

    Args:
        row: as of :func:`compare_runs`; of corpus scores, what :func:`pulls` makes of them.
        baseline: the same of the other system.
        weights: as of :func:`compare_runs`.
    """
    gaps = np.asarray(row, np.float64).mean(1) - np.asarray(baseline, np.float64).mean(1)
    gaps = gaps if weights is None else gaps * np.asarray(weights, np.float64)
    # Signs of sums must not hang on the last digit of their additions.
    found = abs(gaps.sum()) - 1e-9 * np.abs(gaps).sum()
    source, far = np.random.default_rng(SEED), 0
    for _ in range(DRAWS // BLOCK):
        signs = source.integers(2, size=(BLOCK, len(gaps)), dtype=np.int8) * 2 - 1
        far += int((np.abs(signs @ gaps) >= found).sum())
    return (far + 1) / (DRAWS + 1)


def pulls(
    statistics: ArrayLike, score: CorpusScore, weights: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Scores [items, runs] whose weighted mean over items is the corpus score of each run.

    An item has the corpus score plus what the score falls by without the item, scaled so that the
    items of a plain mean get their own values: the pseudo-values of the jackknife, moved to the
    mean that is the score itself.

    Args:
        statistics: as of :func:`compare_corpus_scores`.
        score: as of :func:`compare_corpus_scores`.
        weights: as of :func:`compare_runs`.
    """
    parts = np.asarray(statistics, np.float64)
    copies = np.ones(len(parts)) if weights is None else np.asarray(weights, np.float64)
    shares = (copies / copies.sum())[:, None]
    weighted = copies[:, None, None] * parts
    sums = weighted.sum(0)
    whole = score(sums)
    without = np.stack([score(sums[run] - weighted[:, run]) for run in range(len(sums))], axis=1)
    values = whole + (1 - shares) / shares * (whole - without)
    return values + whole - (shares * values).sum(0)


def _least_p(runs: tuple[int, int], items: int) -> float:
    """The p-value of a difference that is the same in all runs and items.

    It is no smaller than that of the rarest way to deal the runs to two systems (Fisher's permutation
    test), nor than that of a sign that is the same for all items.
    """
    return max(2 / comb(sum(runs), runs[0]), 2.0 ** (1 - items))


def _error(first: Array, second: Array, shares: Array) -> tuple[float, float]:
    """The standard error of a difference and its degrees of freedom.

    Args:
        first: [items, runs].
        second: the same of the other system.
        shares: [items], which sum to 1; their squares take the place of 1 / items.
    """
    squares = shares @ shares
    gaps = first.mean(1) - second.mean(1)
    gaps -= shares @ gaps
    of_items = shares**2 @ gaps**2 / (1 + squares - 2 * (shares**3).sum() / squares)
    of_runs = [_run_variance(scores, shares) for scores in (first, second)]
    of_both = sum(_residual(scores, shares) for scores in (first, second)) * squares
    # The residual is in both parts. An estimate may be too large to be taken out.
    total = max(sum(of_runs) + of_items - of_both, sum(of_runs), of_items)
    squared = of_items**2 / (1 / squares - 1)
    for variance, scores in zip(of_runs, (first, second), strict=True):
        squared += variance**2 / (scores.shape[1] - 1)
    return total**0.5, total**2 / squared if squared else np.inf


def _run_variance(scores: Array, shares: Array) -> float:
    """The variance of a system's mean over its runs."""
    return float((shares @ scores).var(ddof=1) / scores.shape[1])


def _residual(scores: Array, shares: Array) -> float:
    """The variance of what is special to an item in a run, of the mean over runs."""
    runs = scores.shape[1]
    means = shares @ scores
    rest = scores - scores.mean(1, keepdims=True) - means + means.mean()
    spread = float(shares @ (rest**2).sum(1)) / ((1 - shares @ shares) * (runs - 1))
    return spread / runs
