"""Differences over runs and items: the formulas written out, and what they are in special cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from treesyntax.metrics import checkpoint_p, compare_corpus_scores, compare_runs
from treesyntax.metrics.runs import pulls


def table(seed: int, items: int, runs: int, by_run: float, by_item: float, rest: float):
    source = np.random.default_rng(seed)
    return (
        source.normal(0, by_run, runs)
        + source.normal(0, by_item, (items, 1))
        + source.normal(0, rest, (items, runs))
    )


def slow_error(first, second, copies) -> tuple[float, float]:
    """The variance of a difference and its degrees of freedom, sum by sum."""
    items, total = len(first), sum(copies)
    share = [count / total for count in copies]

    def run_mean(scores, run):
        return sum(share[i] * scores[i][run] for i in range(items))

    def item_mean(scores, item):
        return sum(scores[item]) / len(scores[item])

    squares = sum(w**2 for w in share)
    run_parts, residual = [], 0.0
    for scores in (first, second):
        runs = len(scores[0])
        means = [run_mean(scores, run) for run in range(runs)]
        centre = sum(means) / runs
        run_parts.append((sum((m - centre) ** 2 for m in means) / (runs - 1) / runs, runs - 1))
        rest = sum(
            share[i] * (scores[i][r] - item_mean(scores, i) - means[r] + centre) ** 2
            for i in range(items)
            for r in range(runs)
        )
        residual += rest / (1 - squares) / (runs - 1) / runs * squares
    gaps = [item_mean(first, i) - item_mean(second, i) for i in range(items)]
    gap = sum(share[i] * gaps[i] for i in range(items))
    # Each squared gap has the expectation 1 - 2 w_i + Σ w² times the variance of an item.
    expected = sum(share[i] ** 2 * (1 - 2 * share[i] + squares) for i in range(items))
    of_items = squares * sum(share[i] ** 2 * (gaps[i] - gap) ** 2 for i in range(items)) / expected
    of_runs = run_parts[0][0] + run_parts[1][0]
    variance = max(of_runs + of_items - residual, of_runs, of_items)
    parts = [*run_parts, (of_items, 1 / squares - 1)]
    return variance, variance**2 / sum(part**2 / degrees for part, degrees in parts)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("copied", [False, True])
def test_interval_and_p_are_those_of_the_formulas(seed: int, copied: bool):
    first = table(seed, 12, 3 + seed % 2, 0.3, 0.8, 0.5)
    second = table(seed + 50, 12, 4, 0.1, 0.8, 0.2)
    copies = np.random.default_rng(seed).integers(1, 5, 12) if copied else None
    found = compare_runs(first, second, copies)
    counts = [1] * 12 if copies is None else copies.tolist()
    variance, freedom = slow_error(first.tolist(), second.tolist(), counts)
    error = variance**0.5
    difference = np.average(first.mean(1) - second.mean(1), weights=counts)
    assert found.difference == pytest.approx(difference)
    assert found.p == pytest.approx(2 * stats.t.sf(abs(difference) / error, freedom))
    interval = difference + error * np.array([-1, 1]) * stats.t.ppf(0.975, freedom)
    assert (found.low, found.high) == pytest.approx(tuple(interval))
    assert (found.runs, found.items) == ((3 + seed % 2, 4), 12)


def test_where_items_are_alike_it_is_welchs_t_over_runs():
    first, second = (table(seed, 1, 5, by_run, 0, 0) for seed, by_run in ((1, 1.0), (2, 3.0)))
    found = compare_runs(np.repeat(first, 40, 0), np.repeat(second, 40, 0))
    welch = stats.ttest_ind(first[0], second[0], equal_var=False)
    assert found.p == pytest.approx(welch.pvalue)
    assert (found.low, found.high) == pytest.approx(tuple(welch.confidence_interval()))


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
    assert compare_runs(right[:2], wrong[:2]).p == 0.5  # two items may agree by chance


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
    assert found.p < 1e-4


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
        (np.ones((3, 3)), np.ones((4, 3)), None, "not [items, runs]"),
        (np.ones(3), np.ones(3), None, "not [items, runs]"),
        (np.ones((3, 3)), np.ones((3, 3)), [1, 0, 1], "positive"),
        (np.full((3, 3), np.nan), np.ones((3, 3)), None, "not finite"),
    ],
)
def test_what_cannot_be_compared_is_refused(row, baseline, weights, message: str):
    with pytest.raises(ValueError, match=message.replace("[", r"\[")):
        compare_runs(row, baseline, weights)
