"""Whether one system scores higher than another: a difference over training runs and test items.

A training run is a draw from all runs of a method (its seed decides initialisation and order), and
a test item is a draw from all items. A difference that a paper may claim must hold over both. The
scores of a system are a table [items, runs], and the variance of a difference of means is

    V = run_A / R_A + run_B / R_B + item / n - residual,

where run_A is the variance between the scores of A's runs, item that of the items' mean differences,
and the residual (what is special to an item in a run) stands in both and is taken out once: the
crossed two-way random-effects model (Cornfield & Tukey 1956; Clark 1973, "The language-as-fixed-effect
fallacy"). Runs of two methods share nothing, whatever their seeds are called: they are unpaired. Items
are paired. V is the sum of three parts, none of which can be below 0: the residual, what runs vary
beyond it, and what items vary beyond it. An estimate below 0 counts as 0 (Searle, Casella & McCulloch
1992, ch. 4).

t = difference / sqrt(V) has the degrees of freedom of Satterthwaite (1946), which are themselves an
estimate. Where the runs that vary most happen to lie close together, V is too small and its freedom
too large at once. That is rare, but small p-values are made of it, and Holm's correction works there.
So a second p-value guards the tail, that of the runs of each system alone (docs/statistics.md has the
formula, and the simulations that chose its numbers).

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

Array = NDArray[np.float64]
CorpusScore = Callable[[Array], Array]

FEWEST_RUNS = 3
"""Fewest runs of a system for a verdict: two say next to nothing about the spread of runs."""
LEVEL = 0.05
ROUNDING = 1e-12
"""What sums of equal scores may differ by, as a share of the largest score."""
POWER = 0.8
FEWEST_ITEMS = 20
"""Below so many items, more runs than items look like a transposed table."""
ALONE_MORE, ALONE_UNIT, MOST_ALONE = 4, 12, 1.5
"""The guard of the tail weighs the p-value of one system's runs by (degrees of freedom of both + 4) / 12,
at most 1.5: with few runs the whole would hardly ever be found, with many their skew is guarded too."""
TAIL = 10.0
"""How much weaker the guard is for large p-values: p / (1 + 10 p) halves 0.1 and leaves 0.001."""
NEAR_LIMIT, NEAR_LIMIT_SHARE = 2.0, 0.1
"""Standard deviations of runs from the lowest or highest score within which runs are lopsided, and the
share of the range of scores: where all of few runs are good, they do not show that others are not."""
DRAWS, BLOCK, SEED = 10_000, 500, 12345


class RunComparison(NamedTuple):
    """The difference between two systems, with its interval and p-value.

    Attributes:
        difference: mean of the first system less that of the second, in the units of the scores.
        low: lower end of the 95 % interval of the difference, which has 0 in it where p is not below
            0.05. It is NaN with fewer than 3 runs a side, and where nothing varies between runs or items.
        high: its upper end.
        p: two-sided p-value of no difference; NaN with fewer than 3 runs a side.
        runs: training runs of the first and of the second system.
        items: distinct test items.
        smallest: the true difference that such a table finds in 80 % of cases; NaN as ``low``.
        error: the standard error of the difference; NaN as ``low``.
        floor: which part of the variance was estimated below 0 and counts as 0: "runs", "items",
            "runs and items", or "" for none. Runs: they vary no more than the items in a run explain.
        lopsided: whether a system's mean is near the lowest or highest score of an item: within two
            standard deviations of its runs, or a tenth of the range between these. Runs are
            skewed there. Where one system varies much more than the other, p < 0.05 then came in up
            to 15 % of simulated pairs of equal systems.
    """

    difference: float
    low: float
    high: float
    p: float
    runs: tuple[int, int]
    items: int
    smallest: float
    error: float = float("nan")
    floor: str = ""
    lopsided: bool = False


class _Variance(NamedTuple):
    """The estimated variance of a difference of means, in parts.

    Attributes:
        runs: of each system's mean over its runs, the residual in it.
        freedoms: runs less one of each.
        items: of the items' mean differences, the residual in it.
        item_freedom: distinct items less one; with copies fewer.
        residual: what is special to an item in a run, in both parts before.
    """

    runs: tuple[float, float]
    freedoms: tuple[int, int]
    items: float
    item_freedom: float
    residual: float

    @property
    def total(self) -> float:
        """Residual, and what runs and items vary beyond it."""
        beyond = (sum(self.runs) - self.residual, self.items - self.residual)
        return self.residual + sum(max(excess, 0.0) for excess in beyond)

    @property
    def floor(self) -> str:
        """See :class:`RunComparison`."""
        variances = {"runs": sum(self.runs), "items": self.items}
        rounding = ROUNDING * self.residual
        below = [
            name for name, variance in variances.items() if variance < self.residual - rounding
        ]
        return " and ".join(below)


def compare_runs(
    row: ArrayLike,
    baseline: ArrayLike,
    weights: ArrayLike | None = None,
    *,
    few_items: bool = False,
) -> RunComparison:
    """Compare two systems over training runs and test items.

    Args:
        row: scores [items, runs] of one system.
        baseline: scores [items, runs] of the other, of the same items in the same order; it may
            have another number of runs.
        weights: [items], how often each item stands in the test set; 1 unless told.
        few_items: allow more runs than items where there are fewer than 20 items, which is refused
            otherwise since it looks like a transposed table.

    Raises:
        ValueError: if the shapes do not fit or look transposed, a score is not finite, or a weight
            is not a positive finite number.
    """
    first, second = (_table(scores, few_items) for scores in (row, baseline))
    if len(first) != len(second):
        raise ValueError(
            f"row has {len(first)} items and baseline {len(second)}: both are [items, runs] of the "
            "same items in the same order"
        )
    shares = np.ones(len(first)) if weights is None else np.asarray(weights, np.float64)
    if shares.shape != (len(first),) or not ((shares > 0) & np.isfinite(shares)).all():
        raise ValueError("weights are one positive, finite number an item")
    shares = shares / shares.max()
    shares = shares / shares.sum()
    difference = float(shares @ first.mean(1) - shares @ second.mean(1))
    runs = (first.shape[1], second.shape[1])
    nan = float("nan")
    if min(runs) < FEWEST_RUNS or len(first) < 2:
        return RunComparison(difference, nan, nan, nan, runs, len(first), nan)
    variance = _variance(first, second, shares)
    error, size = variance.total**0.5, max(np.abs(first).max(), np.abs(second).max())
    if not np.isfinite([difference, error]).all():
        raise ValueError(f"scores of {size:g} are too large to compute a variance of")
    if error <= ROUNDING * size:
        p = _least_p(runs, len(first)) if abs(difference) > ROUNDING * size else 1.0
        return RunComparison(difference, nan, nan, p, runs, len(first), nan)
    from scipy.special import stdtrit  # it takes a second to load, and few commands compare

    reach = _reach(variance)
    return RunComparison(
        difference,
        float(difference - reach * error),
        float(difference + reach * error),
        _p_value(abs(difference), variance),
        runs,
        len(first),
        float((reach + stdtrit(_freedom(variance), POWER)) * error),
        error,
        variance.floor,
        _is_lopsided(first, second, shares),
    )


def compare_corpus_scores(
    row: ArrayLike,
    baseline: ArrayLike,
    score: CorpusScore,
    weights: ArrayLike | None = None,
    *,
    few_items: bool = False,
) -> RunComparison:
    """Compare two systems as :func:`compare_runs` does, by a score of the whole test set such as BLEU or F1.

    Args:
        row: what the score is a function of, [items, runs, numbers], to be summed over items.
        baseline: the same of the other system.
        score: from sums [samples, numbers] to scores [samples].
        weights: as of :func:`compare_runs`.
        few_items: as of :func:`compare_runs`.

    Raises:
        ValueError: as :func:`compare_runs`.
    """
    tables = [np.asarray(table, np.float64) for table in (row, baseline)]
    for table in tables:
        if table.ndim != 3:
            raise ValueError(
                f"{table.shape} is not [items, runs, numbers], the numbers being what the score is a "
                "function of"
            )
        _table(table[..., 0], few_items)
    first, second = (pulls(table, score, weights) for table in tables)
    return compare_runs(first, second, weights, few_items=few_items)


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
    observed = abs(gaps.sum()) - 1e-9 * np.abs(gaps).sum()
    source, far = np.random.default_rng(SEED), 0
    for _ in range(DRAWS // BLOCK):
        signs = source.integers(2, size=(BLOCK, len(gaps)), dtype=np.int8) * 2 - 1
        far += int((np.abs(signs @ gaps) >= observed).sum())
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
    numbers = np.asarray(statistics, np.float64)
    copies = np.ones(len(numbers)) if weights is None else np.asarray(weights, np.float64)
    shares = (copies / copies.sum())[:, None]
    weighted = copies[:, None, None] * numbers
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


def _table(scores: ArrayLike, few_items: bool) -> Array:
    """Scores [items, runs], checked."""
    table = np.asarray(scores, np.float64)
    if table.ndim == 1 and table.size:
        raise ValueError(
            f"{table.shape} is one score a run, not [items, runs]. For a score of the whole test set "
            "use compare_corpus_scores with what it is computed from, [items, runs, numbers]; "
            "without the items, scipy.stats.ttest_ind(row, baseline, equal_var=False) compares the "
            "runs on these very items"
        )
    if table.ndim != 2 or not table.size:
        raise ValueError(f"{table.shape} is not [items, runs] with an item and a run")
    items, runs = table.shape
    if runs > items and items < FEWEST_ITEMS and not few_items:
        raise ValueError(
            f"{items} items and {runs} runs: scores are [items, runs], is this [runs, items]? If not, "
            "pass few_items=True"
        )
    if not np.isfinite(table).all():
        raise ValueError("a score is not finite")
    return table


def _variance(first: Array, second: Array, shares: Array) -> _Variance:
    """Estimate the parts of the variance of a difference.

    An item of the share w adds w² times its own variance to that of a mean. So squares of items, and of
    items in runs, count with w², and are divided by what they are expected to be for a variance of 1.

    Args:
        first: [items, runs].
        second: the same of the other system.
        shares: [items], which sum to 1; their squares take the place of 1 / items.
    """
    squares = shares @ shares
    expected = 1 + squares - 2 * (shares**3).sum() / squares
    gaps = first.mean(1) - second.mean(1)
    gaps -= shares @ gaps
    return _Variance(
        runs=(_run_variance(first, shares), _run_variance(second, shares)),
        freedoms=(first.shape[1] - 1, second.shape[1] - 1),
        items=float(shares**2 @ gaps**2 / expected),
        item_freedom=float(1 / squares - 1),
        residual=(_residual(first, shares) + _residual(second, shares)) / expected,
    )


def _run_variance(scores: Array, shares: Array) -> float:
    """The variance of a system's mean over its runs."""
    return float((shares @ scores).var(ddof=1) / scores.shape[1])


def _residual(scores: Array, shares: Array) -> float:
    """The variance of what is special to an item in a run, of the mean over runs and items."""
    runs = scores.shape[1]
    means = shares @ scores
    rest = scores - scores.mean(1, keepdims=True) - means + means.mean()
    return float(shares**2 @ (rest**2).sum(1)) / (runs - 1) / runs


def _freedom(variance: _Variance) -> float:
    """Satterthwaite's degrees of freedom of the whole variance."""
    squared = variance.items**2 / variance.item_freedom
    for run_variance, freedom in zip(variance.runs, variance.freedoms, strict=True):
        squared += run_variance**2 / freedom
    with np.errstate(divide="ignore"):  # where no run differs from another, there is no end of them
        return float(np.float64(variance.total) ** 2 / squared)


def _weight(variance: _Variance) -> float:
    """The weight of the p-value of one system's runs alone, more with more runs."""
    return min((sum(variance.freedoms) + ALONE_MORE) / ALONE_UNIT, MOST_ALONE)


def _p_value(distance: float, variance: _Variance) -> float:
    """The larger of Satterthwaite's p-value and of the guard of the tail.

    If one system's runs are nearly all of the variance, the difference has a t distribution with their
    freedom, and no other part may lend them more. So the difference is also compared with the runs
    of each system alone.
    """
    from scipy.special import stdtr

    whole = 2 * stdtr(_freedom(variance), -distance / variance.total**0.5)
    alone = [
        2 * stdtr(freedom, -distance / run_variance**0.5)
        for run_variance, freedom in zip(variance.runs, variance.freedoms, strict=True)
        if run_variance
    ]
    guard = _weight(variance) * max(alone, default=0.0)
    return float(max(whole, guard / (1 + TAIL * guard)))


def _reach(variance: _Variance) -> float:
    """How many standard errors from 0 a difference has p = 0.05."""
    from scipy.special import stdtrit

    reaches = [stdtrit(_freedom(variance), 1 - LEVEL / 2)]
    alone = LEVEL / (1 - TAIL * LEVEL) / _weight(variance)  # the p-value that the guard makes 0.05
    if alone < 1:
        for run_variance, freedom in zip(variance.runs, variance.freedoms, strict=True):
            reaches.append((run_variance / variance.total) ** 0.5 * stdtrit(freedom, 1 - alone / 2))
    return float(max(reaches))


def _is_lopsided(first: Array, second: Array, shares: Array) -> bool:
    """See :class:`RunComparison`."""
    low, high = min(first.min(), second.min()), max(first.max(), second.max())
    for means in (shares @ first, shares @ second):
        reach = max(NEAR_LIMIT * means.std(ddof=1), NEAR_LIMIT_SHARE * (high - low))
        if not low + reach <= means.mean() <= high - reach:
            return True
    return False
