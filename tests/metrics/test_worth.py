"""How many times the pairs a baseline needs, against curves whose answer is known."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

import treesyntax as ts
from treesyntax.metrics.worth import _monotone

SIZES = (250, 500, 1000, 2000)


def flat(score: float, runs: int = 3):
    return np.full((20, runs), score)


def curve(*scores: float):
    return {size: flat(score) for size, score in zip(SIZES, scores, strict=False)}


@pytest.mark.parametrize(
    ("score", "pairs"),
    [
        (40, 500), (50, 500 * 2**0.5), (30, 250 * 2**0.5), (75, 2000), (20, 250),
        (76, inf), (19, 0),
    ],
)  # fmt: skip
def test_pairs_are_interpolated_on_their_logarithm(score: float, pairs: float):
    (found,) = ts.data_worth({250: flat(score)}, curve(20, 40, 60, 75)).times
    assert found.times == pytest.approx(pairs / 250)
    assert (found.low, found.high) == pytest.approx((pairs / 250, pairs / 250))


def test_what_never_is_reached_is_beyond_the_data():
    first, second = ts.data_worth({250: flat(90), 500: flat(40)}, curve(20, 40, 60, 75)).times
    assert (
        str(first) == "more than 8× the pairs: beyond the data [beyond the data, beyond the data]"
    )
    assert str(second) == "1× the pairs [1, 1]"
    (third,) = ts.data_worth({1000: flat(10)}, curve(20, 40, 60, 75)).times
    assert str(third).startswith("less than 0.25× the pairs: before the data")


@pytest.mark.parametrize("score", [0.0, 100.0])
def test_of_equal_scores_the_same_pairs_are_needed(score: float):
    """At the first point of a flat curve, not at its second."""
    (found,) = ts.data_worth({250: flat(score)}, curve(score, score, score)).times
    assert found[1:4] == pytest.approx((1.0, 1.0, 1.0))
    (found,) = ts.data_worth({500: flat(40)}, curve(20, 40, 40, 75)).times
    assert found[1:4] == pytest.approx((1.0, 1.0, 1.0))


@pytest.mark.parametrize("items", [150, 280, 448])
def test_rounding_does_not_put_the_highest_score_beyond_the_data(items: int):
    whole = np.full((items, 3), 100.0)
    for right in range(30, 130, 7):
        first = np.zeros((items, 3))
        first[:right] = 100.0
        found = ts.data_worth(
            {500: whole}, {250: first, 500: whole, 1000: whole, 2000: whole}, resamples=50
        )
        assert found.times[0].times == pytest.approx(1.0), right


def test_lower_may_be_better():
    given = ({250: flat(-50)}, curve(-20, -40, -60, -75))
    (found,) = ts.data_worth(*given, lower_is_better=True).times
    assert found.times == pytest.approx(2 * 2**0.5)


def test_curves_have_their_means_and_intervals():
    source = np.random.default_rng(1)
    table = 50 + source.normal(size=(200, 4)) + 2 * source.normal(size=4)
    copies = source.integers(1, 4, 200)
    found = ts.data_worth({250: table}, {250: table - 5, 500: table + 5}, copies)
    assert found.row.scores[0] == pytest.approx(np.average(table, axis=0, weights=copies).mean())
    assert found.row.runs == (4,)
    assert found.baseline.pairs == (250, 500)
    assert found.row.low[0] < found.row.scores[0] < found.row.high[0]
    # The error of the mean of four runs, and t with nine degrees of freedom.
    spread = table.mean(0).std(ddof=1) / 2
    assert found.row.high[0] - found.row.low[0] == pytest.approx(2 * 2.262 * spread, rel=0.15)


def test_more_data_does_no_harm():
    """The nearest rising curve, against another implementation."""
    curves = np.random.default_rng(2).normal(size=(50, 6)).cumsum(1)
    expected = [isotonic_regression(one).x for one in curves]
    assert _monotone(curves) == pytest.approx(np.array(expected))


def noisy(source: np.random.Generator, runs: int, spread: float, gain: float = 1.0):
    """A curve that rises by 15 points with each doubling of pairs times ``gain``."""
    fit = 5 * source.normal(size=(100, 1))
    return {
        size: 30 + 15 * np.log2(size * gain / 250) + fit + spread * source.normal(size=runs)
        + 20 * source.normal(size=(100, runs))
        for size in SIZES
    }  # fmt: skip


@pytest.mark.parametrize(("runs", "spread"), [(3, 4.0), (5, 4.0)])
def test_the_interval_has_the_true_factor_in_it(runs: int, spread: float):
    source, held, studies = np.random.default_rng(3), 0, 60
    for _ in range(studies):
        row, baseline = noisy(source, runs, spread, 2.5), noisy(source, runs, spread)
        (found,) = ts.data_worth({250: row[250]}, baseline, resamples=200).times
        held += found.low <= 2.5 <= found.high
    assert held / studies >= 0.85


@pytest.mark.parametrize(
    ("row", "baseline", "message"),
    [
        ({}, curve(1, 2), "a baseline at two or more"),
        ({250: flat(1)}, curve(1), "a baseline at two or more"),
        ({0: flat(1)}, curve(1, 2), "a baseline at two or more"),
        ({250: flat(1, 2)}, curve(1, 2), "2 runs at a number of pairs"),
        ({250: np.ones((4, 3))}, curve(1, 2), "of the 4 items"),
        ({250: flat(np.nan)}, curve(1, 2), "not finite"),
    ],
)
def test_curves_that_cannot_be_compared_are_refused(row, baseline, message: str):
    with pytest.raises(ValueError, match=message):
        ts.data_worth(row, baseline)
    with pytest.raises(ValueError, match="positive, finite"):
        ts.data_worth({250: flat(1)}, curve(1, 2), [np.inf] * 20)
