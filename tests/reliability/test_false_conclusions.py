"""How often a row is said to be helped by syntax that is not, and how often one that is.

Five rows of a study, each with its control, against one baseline; `test_false_findings` says how systems
are drawn. And whether the interval of how much data a row is worth has the true factor in it.
"""

from __future__ import annotations

import numpy as np
import pytest
from reliability.figures import SOAK, amount, count
from reliability.test_false_findings import study
from scipy import stats
from scipy.special import expit

from treesyntax.metrics.conclusions import conclude
from treesyntax.metrics.runs import FEWEST_RUNS
from treesyntax.metrics.worth import data_worth

STUDIES, ROWS, ITEMS = amount(15, 250), 5, 300
RUNS = (FEWEST_RUNS, 5, 10)


def words(source: np.random.Generator, runs: int, spread: float, gain: float, of_control: float):
    """The words of a study whose rows gain some points, and whose controls gain some."""
    baseline, systems = study(source, ITEMS, runs, spread, gain=[gain] * ROWS + [of_control] * ROWS)
    return [
        conclude(row, baseline, control, tested=ROWS).word
        for row, control in zip(systems[:ROWS], systems[ROWS:], strict=True)
    ]


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("spread", [2.0, 6.0])
@pytest.mark.parametrize("gain", [0.0, 15.0])
def test_no_syntax_is_found_where_the_control_does_as_well(gain: float, spread: float, runs: int):
    """No effect at all, and a mechanism that helps for real."""
    source, found = np.random.default_rng(5), 0
    for _ in range(STUDIES):
        found += "syntax helps" in words(source, runs, spread, gain, gain)
    count(f"studies with false syntax, mechanism {gain:g}, sd {spread:g}, {runs} runs", found)
    most = 0.05 * STUDIES if SOAK else stats.binom.ppf(0.999, STUDIES, 0.05)
    assert found <= most


@pytest.mark.parametrize(("runs", "spread"), [(3, 2.0), (5, 2.0), (10, 2.0)])
@pytest.mark.parametrize("gain", [4.0, 8.0, 16.0])
def test_syntax_that_helps_is_found(gain: float, runs: int, spread: float):
    """The power for three sizes of effect; the control is as good as the baseline."""
    source, found, studies = np.random.default_rng(6), 0, max(5, STUDIES // 4)
    for _ in range(studies):
        found += words(source, runs, spread, gain, 0.0).count("syntax helps")
    case = f"{gain:g} points, sd {spread:g}, {runs} runs"
    count(f"rows with true syntax found of {studies * ROWS}, {case}", found)
    if gain == 16 and runs > FEWEST_RUNS:
        assert found / (studies * ROWS) > 0.9


SIZES = (250, 500, 1000, 2000, 4000)


def trained(source: np.random.Generator, items: np.ndarray, runs: int, points: float, times: float):
    """Scores by pairs of a system that learns from each pair as much as from ``times`` of another."""
    fit = 0.5 * source.normal(size=items.shape)
    by_run = points / 100 / 0.13
    return {
        size: 100.0 * (
            source.random((len(items), runs))
            < expit(
                items + fit - 1.5 + 0.6 * np.log2(size * times / 250)
                + by_run * source.normal(size=runs) + 0.5 * source.normal(size=(len(items), runs))
            )
        )
        for size in SIZES
    }  # fmt: skip


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("points", [1.0, 4.0, 8.0])
def test_the_interval_of_times_the_pairs_has_the_true_factor_in_it(points: float, runs: int):
    source, studies, held, beyond = np.random.default_rng(7), amount(12, 150), 0, 0
    for _ in range(studies):
        items = 2 * source.normal(size=(ITEMS, 1))
        row = trained(source, items, runs, points, 3.0)
        baseline = trained(source, items, runs, points, 1.0)
        (found,) = data_worth({500: row[500]}, baseline, resamples=400).times
        held += found.low <= 3.0 <= found.high
        beyond += found.high == np.inf
    count(f"× pairs of {studies}, sd {points:g}, {runs} runs: held", held)
    count(f"× pairs of {studies}, sd {points:g}, {runs} runs: end beyond the data", beyond)
    assert held / studies >= (0.88 if SOAK else 0.6)
