"""Differences over runs and items: the formulas written out, and what they are in special cases."""

from __future__ import annotations

import itertools
import re
import warnings
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from treesyntax.metrics import checkpoint_p, compare_corpus_scores, compare_runs
from treesyntax.metrics.runs import _variance, pulls


def table(seed: int, items: int, runs: int, by_run: float, by_item: float, rest: float):
    source = np.random.default_rng(seed)
    return (
        source.normal(0, by_run, runs)
        + source.normal(0, by_item, (items, 1))
        + source.normal(0, rest, (items, runs))
    )


class Slow(NamedTuple):
    """The formulas of docs/statistics-test.md, sum by sum."""

    variance: float
    freedom: float
    runs: list[tuple[float, int]]
    below: list[str]

    def p(self, distance: float) -> float:
        def two_sided(variance: float, freedom: float) -> float:
            return 2 * stats.t.sf(abs(distance) / variance**0.5, freedom)

        weight = min(1.5, (sum(degrees for _, degrees in self.runs) + 4) / 12)
        tail = weight * max(two_sided(*part) for part in self.runs)
        return max(two_sided(self.variance, self.freedom), tail / (1 + 10 * tail))


def slow(first, second, copies) -> Slow:
    """The parts of the variance of a difference and its degrees of freedom."""
    items, total = len(first), sum(copies)
    share = [count / total for count in copies]

    def run_mean(scores, run):
        return sum(share[i] * scores[i][run] for i in range(items))

    def item_mean(scores, item):
        return sum(scores[item]) / len(scores[item])

    squares = sum(w**2 for w in share)
    # Each squared deviation of an item has the expectation 1 - 2 w_i + Σ w² times its variance.
    expected = sum(share[i] ** 2 * (1 - 2 * share[i] + squares) for i in range(items)) / squares
    run_parts, residual = [], 0.0
    for scores in (first, second):
        runs = len(scores[0])
        means = [run_mean(scores, run) for run in range(runs)]
        centre = sum(means) / runs
        run_parts.append((sum((m - centre) ** 2 for m in means) / (runs - 1) / runs, runs - 1))
        rest = sum(
            share[i] ** 2 * (scores[i][r] - item_mean(scores, i) - means[r] + centre) ** 2
            for i in range(items)
            for r in range(runs)
        )
        residual += rest / expected / (runs - 1) / runs
    gaps = [item_mean(first, i) - item_mean(second, i) for i in range(items)]
    gap = sum(share[i] * gaps[i] for i in range(items))
    of_items = sum(share[i] ** 2 * (gaps[i] - gap) ** 2 for i in range(items)) / expected
    of_runs = run_parts[0][0] + run_parts[1][0]
    variance = residual + max(of_runs - residual, 0) + max(of_items - residual, 0)
    parts = [*run_parts, (of_items, 1 / squares - 1)]
    freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts)
    below = [name for name, part in (("runs", of_runs), ("items", of_items)) if part < residual]
    return Slow(variance, freedom, run_parts, below)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("copied", [False, True])
def test_interval_and_p_are_those_of_the_formulas(seed: int, copied: bool):
    by_run, by_item = ((0.3, 0.8), (0.02, 0.8), (1.0, 0.0), (0.0, 0.0))[seed % 4]
    first = table(seed, 12, 3 + seed % 2, by_run, by_item, 0.5)
    second = table(seed + 50, 12, 4, by_run / 3, by_item, 0.2)
    copies = np.random.default_rng(seed).integers(1, 5, 12) if copied else None
    found = compare_runs(first, second, copies)
    counts = [1] * 12 if copies is None else copies.tolist()
    expected = slow(first.tolist(), second.tolist(), counts)
    difference = np.average(first.mean(1) - second.mean(1), weights=counts)
    assert found.difference == pytest.approx(difference)
    assert found.error == pytest.approx(expected.variance**0.5)
    assert found.p == pytest.approx(expected.p(difference))
    reach = optimize.brentq(lambda distance: expected.p(distance) - 0.05, 1e-9, 1e3, xtol=1e-12)
    assert (found.low, found.high) == pytest.approx((difference - reach, difference + reach))
    more = stats.t.ppf(0.8, expected.freedom) * expected.variance**0.5
    assert found.smallest == pytest.approx(reach + more)
    assert found.floor == " and ".join(expected.below)
    assert (found.runs, found.items) == ((3 + seed % 2, 4), 12)


def test_all_floors_are_in_the_test_of_the_formulas():
    kinds = ((0.02, 0.8), (1.0, 0.0), (0.0, 0.0))
    found = {
        compare_runs(table(n, 12, 3, *kind, 0.5), table(n + 50, 12, 4, *kind, 0.2)).floor
        for kind in kinds
        for n in range(40)
    }
    assert found == {"", "runs", "items", "runs and items"}


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10**6), st.floats(0, 6), st.sampled_from([0.01, 0.3, 3.0]))
def test_the_interval_has_0_in_it_where_p_is_not_below_5_percent(seed: int, gap: float, by_run):
    first, second = table(seed, 25, 3, by_run, 0.5, 0.5), table(seed + 1, 25, 4, 0.2, 0.5, 0.5)
    found = compare_runs(first + gap * by_run, second)
    assert (found.low > 0 or found.high < 0) == (found.p < 0.05)


def test_copies_of_an_item_weigh_alike_in_all_parts_of_the_variance():
    """What is special to an item in a run is in the items' part too, copied items or not.

    The copied items are the only ones with any. No item is better for one system: the two parts are
    the same on average, and so are those of two systems that differ in nothing.
    """
    source, gaps = np.random.default_rng(5), []
    copies = np.repeat([1, 8], [60, 6])
    for _ in range(400):
        tables = [
            np.where(copies > 1, 1.0, 0.0)[:, None] * source.normal(size=(66, 3)) for _ in "ab"
        ]
        variance = _variance(*tables, copies / copies.sum())
        gaps.append([variance.items, variance.residual])
    items, residual = np.mean(gaps, 0)
    assert items == pytest.approx(residual, rel=0.06)


def test_where_items_are_alike_it_is_welchs_t_over_runs():
    first, second = (table(seed, 1, 5, by_run, 0, 0) for seed, by_run in ((1, 1.0), (2, 3.0)))
    found = compare_runs(np.repeat(first, 40, 0), np.repeat(second, 40, 0))
    welch = stats.ttest_ind(first[0], second[0], equal_var=False)
    assert found.p == pytest.approx(welch.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(welch.confidence_interval()))


def test_far_in_the_tail_it_trusts_no_freedom_that_chance_may_have_lent():
    """The runs of one side vary much more, but lie close together by chance in the second pair."""
    by_chance = np.array([[1.0, 1.1, 1.2]]), np.array([[0.0, 0.1, 0.2]])
    first, second = (np.repeat(scores, 40, 0) for scores in by_chance)
    welch = stats.ttest_ind(by_chance[0][0], by_chance[1][0], equal_var=False)
    alone = 2 * stats.t.sf(1 / (0.1 / 3**0.5), 2)
    found = compare_runs(first, second)
    assert welch.pvalue < 0.001
    assert found.p == pytest.approx(2 / 3 * alone / (1 + 20 / 3 * alone))
    assert found.p > 1.5 * welch.pvalue


def test_where_runs_are_alike_it_is_the_paired_t_over_items():
    first, second = (np.repeat(table(seed, 30, 1, 0, 1, 0), 4, 1) for seed in (1, 2))
    found = compare_runs(first, second)
    assert found.p == pytest.approx(stats.ttest_rel(first[:, 0], second[:, 0]).pvalue)


def test_equal_tables_do_not_differ_and_too_few_runs_have_no_verdict():
    same = np.ones((5, 3))
    equal = compare_runs(same, same)
    assert (equal.difference, equal.p) == (0, 1)
    assert np.isnan([equal.low, equal.high, equal.smallest]).all()
    few = compare_runs(same[:, :2], same - 0.5)
    assert few.difference == 0.5
    assert np.isnan([few.low, few.high, few.p, few.smallest]).all()


def test_what_never_varies_is_as_sure_as_the_number_of_runs_and_items_allows():
    """3 runs of 100 against 3 of 0 are dealt so by chance in 2 of 20 ways, 5 against 5 in 2 of 252."""
    right, wrong = np.full((9, 5), 100.0), np.zeros((9, 5))
    found = compare_runs(right, wrong)
    assert found.p == pytest.approx(2 / 252)
    assert np.isnan([found.low, found.high, found.smallest]).all()
    assert compare_runs(right[:, :3], wrong[:, :3]).p == pytest.approx(0.1)
    assert (
        compare_runs(right[:2], wrong[:2], few_items=True).p == 0.5
    )  # two items may agree by chance


def test_the_smallest_difference_is_found_four_times_in_five():
    """A table of this kind has a standard error of sqrt(2 (0.25 / 10 + 1 / 400)) = 0.235."""
    tables = [
        [table(2 * seed + side, 40, 10, 0.5, 0.0, 1.0) for side in (0, 1)] for seed in range(400)
    ]
    smallest = np.mean([compare_runs(*sides).smallest for sides in tables])
    found = [compare_runs(first + smallest, second).p < 0.05 for first, second in tables]
    assert smallest == pytest.approx(0.235 * (2.101 + 0.862), rel=0.1)
    assert np.mean(found) == pytest.approx(0.8, abs=0.06)


def f1(sums):
    return 200 * sums[:, 0] / sums[:, 1]


def test_a_mean_over_items_pulls_by_its_items():
    scores = table(0, 9, 3, 1, 1, 1)
    statistics = np.stack([scores, np.ones_like(scores)], axis=2)
    for copies in (None, np.arange(1, 10)):
        found = pulls(statistics, lambda sums: sums[:, 0] / sums[:, 1], copies)
        assert found == pytest.approx(scores)


@pytest.mark.parametrize("copied", [False, True])
def test_corpus_scores_are_compared_as_they_are_reported(copied: bool):
    source = np.random.default_rng(3)
    totals = source.integers(4, 20, (60, 1, 1)) * np.ones((1, 4, 1))
    sides = [
        np.concatenate([source.binomial(totals.astype(int), rate) / 2, totals], axis=2)
        for rate in (0.9, 0.6)
    ]
    copies = source.integers(1, 4, 60) if copied else np.ones(60)
    found = compare_corpus_scores(*sides, f1, copies)
    reported = [f1((copies[:, None, None] * side).sum(0)).mean() for side in sides]
    assert found.difference == pytest.approx(reported[0] - reported[1])
    assert found.low < found.difference < found.high
    assert found.p < 1e-3


def test_checkpoints_on_other_items_by_all_signs():
    """The definition: all patterns of signs, one after the other; the draws come close."""
    first, second = table(1, 9, 2, 0, 1, 0), table(2, 9, 4, 0, 1, 0)
    copies = np.arange(1, 10)
    gaps = copies * (first.mean(1) - second.mean(1))
    sums = [np.dot(signs, gaps) for signs in itertools.product((-1, 1), repeat=9)]
    expected = np.mean(np.abs(sums) >= abs(gaps.sum()) - 1e-9)
    assert checkpoint_p(first, second, copies) == pytest.approx(expected, abs=0.02)
    assert checkpoint_p(first, first) == 1


def test_equal_methods_whose_runs_differ_fool_the_test_of_checkpoints_alone():
    tables = [[table(9 * seed + side, 400, 3, 0.5, 0, 1) for side in (0, 1)] for seed in range(40)]
    assert np.mean([checkpoint_p(*sides) < 0.05 for sides in tables]) > 0.5
    assert np.mean([compare_runs(*sides).p < 0.05 for sides in tables]) < 0.2


@pytest.mark.parametrize(
    ("row", "baseline", "weights", "message"),
    [
        (np.ones((3, 3)), np.ones((4, 3)), None, "row has 3 items and baseline 4"),
        (np.ones((3, 3)), np.ones((3, 0)), None, "not [items, runs] with an item and a run"),
        (np.ones((0, 3)), np.ones((0, 3)), None, "not [items, runs] with an item and a run"),
        (np.ones(3), np.ones(3), None, "use compare_corpus_scores"),
        (np.ones((3, 3, 2)), np.ones((3, 3, 2)), None, "(3, 3, 2) is not [items, runs]"),
        (np.ones((3, 3)), np.ones((3, 3)), [1, 0, 1], "positive, finite"),
        (np.ones((3, 3)), np.ones((3, 3)), [1, np.inf, 1], "positive, finite"),
        (np.ones((3, 3)), np.ones((3, 3)), [1, np.nan, 1], "positive, finite"),
        (np.full((3, 3), np.nan), np.ones((3, 3)), None, "not finite"),
        (1e308 * np.eye(3), -1e308 * np.eye(3), None, "1e+308 are too large"),
        (
            np.ones((3, 200)),
            np.ones((3, 200)),
            None,
            "3 items and 200 runs: scores are [items, runs]",
        ),
        (np.ones((19, 3)), np.ones((19, 20)), None, "few_items=True"),
    ],
)
def test_what_cannot_be_compared_is_refused(row, baseline, weights, message: str):
    with pytest.raises(ValueError, match=re.escape(message)), np.errstate(all="ignore"):
        compare_runs(row, baseline, weights)


def test_runs_that_score_alike_on_other_items_are_compared_without_a_warning():
    first = np.array([100.0, 0.0] * 4)
    scores = np.stack([first, 100 - first, first], 1)  # each run is right on half of the items
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compared = compare_runs(scores, scores)
    assert (compared.difference, compared.p) == (0.0, 1.0)
    assert compared.low < 0 < compared.high


def test_large_weights_are_weights():
    first, second = table(1, 9, 3, 1, 1, 1), table(2, 9, 3, 1, 1, 1)
    huge, plain = compare_runs(first, second, np.full(9, 1e308)), compare_runs(first, second)
    assert (huge.low, huge.p) == pytest.approx((plain.low, plain.p))


def test_more_runs_than_items_are_compared_if_told_so_or_if_the_items_are_many():
    assert compare_runs(np.ones((3, 9)), np.zeros((3, 9)), few_items=True).runs == (9, 9)
    assert compare_runs(np.ones((20, 30)), np.zeros((20, 30))).runs == (30, 30)
    sums = np.ones((3, 9, 2))
    assert compare_corpus_scores(sums, sums, f1, few_items=True).items == 3
    with pytest.raises(ValueError, match="3 items and 9 runs"):
        compare_corpus_scores(sums, sums, f1)
    with pytest.raises(ValueError, match=re.escape("not [items, runs, numbers]")):
        compare_corpus_scores(np.ones((30, 3)), np.ones((30, 3)), f1)


@pytest.mark.parametrize(
    ("right", "lopsided"),
    [((97, 99, 100), True), ((92, 92, 92), True), ((66, 82, 98), True), ((80, 82, 84), False)],
)
def test_runs_close_to_the_highest_score_are_told(right: tuple[int, ...], lopsided: bool):
    scores = 100.0 * (np.arange(100)[:, None] < np.array(right))
    other = 100.0 * (np.arange(100)[:, None] < np.array([50, 51, 52]))
    assert compare_runs(scores, other).lopsided is lopsided
    assert compare_runs(100 - other, 100 - scores).lopsided is lopsided
