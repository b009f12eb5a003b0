"""What a row shows, in a word, and how often that is false."""

from __future__ import annotations

import numpy as np
import pytest

import treesyntax as ts
from treesyntax.metrics.conclusions import WORDS, conclude, p_as_text, verdict


def scores(mean: float, seed: int, runs: int = 5, items: int = 60, spread: float = 1.0):
    """[items, runs], some of them 0 and some 100, with means close to ``mean``."""
    source = np.random.default_rng(seed)
    level = mean + spread * source.normal(size=runs)
    return 100.0 * ((np.arange(items)[:, None] + 0.5) / items < level / 100)


@pytest.mark.parametrize(
    ("means", "word"),
    [
        ((80, 60, 60), "syntax helps"),
        ((80, 60, 80), "mechanism helps"),
        ((80, 60, 90), "mechanism helps"),
        ((60, 60, 40), "not shown"),
        ((60, 60, 60), "not shown"),
        ((40, 60, 40), "hurts"),
        ((40, 60, 20), "hurts"),
    ],
)
def test_the_word_is_from_baseline_and_control(means, word: str):
    row, baseline, control = (scores(mean, seed) for seed, mean in enumerate(means))
    found = ts.conclude(row, baseline, control)
    assert found.word == word
    assert found.over_baseline == ts.compare_runs(row, baseline)
    assert found.over_control == ts.compare_runs(row, control)
    lower = ts.conclude(100 - row, 100 - baseline, 100 - control, lower_is_better=True)
    assert lower.word == word


def test_without_a_control_no_row_shows_that_syntax_helps():
    row, baseline = scores(80, 1), scores(60, 2)
    found = conclude(row, baseline)
    assert (found.word, found.over_control) == ("mechanism helps", None)
    assert "no control" in found.reason
    few = conclude(row, baseline, scores(60, 3, runs=2))
    assert few.word == "mechanism helps"
    assert "control has fewer than 3 runs" in few.reason


def test_not_shown_says_what_would_have_been_found():
    found = conclude(scores(60, 1), scores(60, 2), scores(60, 3))
    assert (
        f"would have found {found.over_baseline.smallest:.2f} in 80 % of studies before"
        in found.reason
    )


def test_p_values_are_corrected_for_the_rows_of_a_study():
    row, baseline, control = scores(66, 1), scores(60, 2), scores(60, 3)
    one = conclude(row, baseline, control)
    many = conclude(row, baseline, control, tested=200)
    assert one.word == "syntax helps"
    assert many.word == "not shown"
    assert many.baseline_p == pytest.approx(min(1.0, 200 * one.baseline_p))
    assert many.control_p == pytest.approx(min(1.0, 200 * one.control_p))
    assert conclude(row, baseline, control, tested=10**6).baseline_p == 1


@pytest.mark.parametrize(
    ("learning", "word", "reason"),
    [
        ((1, 1, 1), "syntax helps", "better than the baseline"),
        ((2, 0, 0), "still learning", "2 of 5 runs of the row"),
        ((0, 2, 0), "still learning", "2 of 5 runs of the baseline"),
        ((0, 0, 5), "still learning", "5 of 5 runs of the control"),
    ],
)
def test_more_than_a_third_of_runs_still_learning_is_no_verdict(learning, word, reason):
    found = conclude(scores(80, 1), scores(60, 2), scores(60, 3), still_learning=learning)
    assert found.word == word
    assert reason in found.reason


def test_a_third_of_runs_may_be_still_learning():
    sides = [scores(mean, seed, runs=3) for seed, mean in enumerate((80, 60, 60))]
    assert conclude(*sides, still_learning=(1, 1, 1)).word == "syntax helps"
    assert conclude(*sides, still_learning=(2, 0, 0)).word == "still learning"


@pytest.mark.parametrize(("few", "name"), [(0, "row"), (1, "baseline")])
def test_two_runs_are_too_few(few: int, name: str):
    sides = [scores(80, 1), scores(60, 2), scores(60, 3)]
    sides[few] = sides[few][:, :2]
    found = conclude(*sides)
    assert found.word == "too few runs"
    assert f"the {name} has 2 runs" in found.reason


def test_what_nobody_can_do_or_everybody_does_is_no_verdict():
    nothing, all_of_it = [scores(m, 1, items=500, spread=0.3) for m in (1.0, 99.0)]
    low = [nothing, scores(1.2, 2, items=500, spread=0.3), scores(0.8, 3, items=500, spread=0.3)]
    assert conclude(*low).word == "on the floor"
    assert conclude(*(100 - table for table in low)).word == "at the ceiling"
    assert conclude(nothing, all_of_it, nothing).word == "hurts"
    zeros, full = np.zeros((50, 3)), np.full((50, 3), 100.0)
    assert conclude(zeros, zeros).word == "on the floor"
    assert conclude(full, full).word == "at the ceiling"
    assert conclude(zeros + 1, zeros + 1, limits=(0, 100)).word == "on the floor"
    assert conclude(zeros + 50, zeros + 50, limits=(0, 100)).word == "not shown"


def test_where_lower_is_better_the_highest_scores_are_what_nobody_can_do():
    few = [scores(mean, seed, items=500, spread=0.3) for seed, mean in enumerate((1.0, 1.2, 0.8))]
    assert conclude(*few, lower_is_better=True).word == "at the ceiling"
    assert conclude(*(100 - table for table in few), lower_is_better=True).word == "on the floor"


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (0.012, "0.012"), (0.0494, "0.049"), (0.0496, "0.0496"), (0.04996, "0.04996"), (0.0499999, "0.0499999"), (0.05, "0.050"),
        (0.0504, "0.050"), (0.00099, "< 0.001"), (0.0, "< 0.001"), (1.0, "1.000"),
    ],
)  # fmt: skip
def test_a_p_value_is_on_its_side_of_5_percent_as_it_is_printed(p: float, text: str):
    """0.04996 was printed as 0.050 beside a mark, and one of 1e-9 as 0.000."""
    assert p_as_text(p) == text
    over = ts.compare_runs(scores(80, 1), scores(60, 2))
    word, reason = verdict(over, over, 0.01, p)
    assert (word == "syntax helps") is (p < 0.05)
    assert f", p {'' if '<' in text else '= '}{text})" in reason


def test_corpus_scores_are_concluded_on():
    source = np.random.default_rng(3)
    totals = np.full((80, 4, 1), 10.0)
    sides = [
        np.concatenate([source.binomial(10, rate, (80, 4, 1)), totals], axis=2)
        for rate in (0.9, 0.6, 0.6)
    ]
    found = conclude(*sides, score=lambda sums: 100 * sums[:, 0] / sums[:, 1])
    assert found.word == "syntax helps"
    assert found.over_baseline.difference == pytest.approx(30, abs=3)


def test_what_cannot_be_is_refused():
    side = scores(60, 1)
    with pytest.raises(ValueError, match="at least this row"):
        conclude(side, side, tested=0)
    with pytest.raises(ValueError, match="6 of 5 runs of the row"):
        conclude(side, side, still_learning=(6, 0, 0))
    with pytest.raises(ValueError, match="baseline 4"):
        conclude(side, side[:4], few_items=True)


def test_the_words_are_those_of_the_page():
    assert len(set(WORDS)) == 9
