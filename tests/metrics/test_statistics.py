"""Tests of significance against enumeration, the binomial distribution and sacreBLEU's own."""

from __future__ import annotations

import itertools
import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from treesyntax.metrics.statistics import (
    bootstrap,
    holm,
    line_statistics,
    mean_score,
    randomisation,
    sign_flip,
)

WORDS = ["the", "a", "cat", "dog", "tree", "grows", "sleeps", "under", "near", "old", "green"]
SACREBLEU = [BLEU, CHRF, TER]


def sentences(seed: int, count: int = 60) -> list[str]:
    choose = random.Random(seed)
    return [" ".join(choose.choices(WORDS, k=choose.randint(4, 12))) for _ in range(count)]


def noisy(lines: list[str], rate: float, seed: int) -> list[str]:
    choose = random.Random(seed)
    return [
        " ".join(choose.choice(WORDS) if choose.random() < rate else word for word in line.split())
        for line in lines
    ]


REFERENCES = sentences(1)
WORSE = [noisy(REFERENCES, 0.4, seed) for seed in (2, 3, 4)]
BETTER = [noisy(REFERENCES, 0.34, seed) for seed in (5, 6, 7)]


# Metrics that judge each line


def enumerated_sign_flip(differences: list[int]) -> float:
    """The definition: all sign patterns, one after the other."""
    found = abs(sum(differences))
    sums = [
        abs(sum(sign * difference for sign, difference in zip(signs, differences, strict=True)))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    return sum(value >= found for value in sums) / len(sums)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.integers(-4, 4), max_size=10))
def test_sign_flip_is_the_share_of_all_sign_patterns(differences: list[int]):
    expected = enumerated_sign_flip(differences)
    assert sign_flip(differences) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("won", "lost"), [(0, 0), (5, 0), (9, 2), (14, 14), (700, 610)])
def test_with_one_seed_sign_flip_is_mcnemars_exact_test(won: int, lost: int):
    size, least = won + lost, min(won, lost)
    tail = sum(math.comb(size, count) for count in range(least + 1)) * 2
    expected = min(1.0, tail / 2**size)  # whole numbers: exact
    found = sign_flip([1] * won + [-1] * lost + [0] * 50)
    assert found == pytest.approx(expected, rel=1e-9)


def test_seeds_that_agree_do_not_count_as_further_lines():
    wins = [1] * 6 + [-1]
    assert sign_flip([3 * win for win in wins]) == pytest.approx(sign_flip(wins))
    assert sign_flip(wins * 3) < sign_flip(wins)


def test_large_test_sets_are_exact_too():
    differences = [random.Random(1).randint(-5, 5) for _ in range(10)] * 300
    sd = math.sqrt(sum(d * d for d in differences))
    normal = math.erfc((abs(sum(differences)) - 0.5) / sd / math.sqrt(2))
    assert sign_flip(differences) == pytest.approx(normal, rel=0.05)


# Metrics of a corpus


def corpus_score(metric: type, lines: list[list[str]], references: list[str]) -> float:
    """The mean over seeds by the front door of sacreBLEU."""
    return float(np.mean([metric().corpus_score(one, [references]).score for one in lines]))


@pytest.mark.parametrize("metric", SACREBLEU)
def test_the_statistic_is_the_mean_corpus_score(metric: type):
    statistics = line_statistics(metric(references=[REFERENCES]), WORSE)
    assert statistics.shape[:2] == (len(REFERENCES), 3)
    found = mean_score(metric())(statistics.sum(0))
    assert found == pytest.approx(corpus_score(metric, WORSE, REFERENCES))


def paired_test(metric: type, kind: str, samples: int, one: list[str], other: list[str]) -> float:
    systems = [("baseline", one), ("method", other)]
    test = PairedTest(systems, {"m": metric()}, [REFERENCES], kind, n_samples=samples)
    _, scores = test()
    (name,) = set(scores) - {"System"}
    return scores[name][1].p_value


@pytest.mark.parametrize("metric", SACREBLEU)
@pytest.mark.parametrize("pair", [0, 1, 2])
def test_one_seed_agrees_with_sacrebleu(metric: type, pair: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    one, other = WORSE[pair], BETTER[pair]
    statistics = [
        line_statistics(metric(references=[REFERENCES]), [lines]) for lines in (other, one)
    ]
    score = mean_score(metric())
    found = bootstrap(*statistics, score)
    assert found == paired_test(metric, "bs", 1000, one, other)
    assert 0 < found < 1
    drawn = randomisation(*statistics, score, 500)
    theirs = paired_test(metric, "ar", 500, one, other)
    # Edits are whole numbers over one length, so differences of TER tie.
    assert drawn >= theirs if metric is TER else drawn == theirs


@pytest.mark.parametrize("metric", SACREBLEU)
def test_randomisation_of_few_lines_is_enumeration(metric: type):
    """The definition: hypotheses are exchanged, all their seeds at once, and scored anew."""
    size = 6
    lines = REFERENCES[:size]
    one = [[*seed[: size - 1], lines[-1]] for seed in WORSE]
    other = [[*seed[: size - 1], lines[-1]] for seed in BETTER]

    def gap(exchanged: tuple[bool, ...]) -> float:
        mixed = [
            [
                [b if swap else a for a, b, swap in zip(first, second, exchanged, strict=True)]
                for first, second in zip(left, right, strict=True)
            ]
            for left, right in ((one, other), (other, one))
        ]
        scores = [corpus_score(metric, system, lines) for system in mixed]
        return abs(scores[0] - scores[1])

    found = gap((False,) * size)
    gaps = [gap(pattern) for pattern in itertools.product((False, True), repeat=size)]
    expected = sum(value >= found - 1e-9 for value in gaps) / len(gaps)
    statistics = [line_statistics(metric(references=[lines]), system) for system in (other, one)]
    assert randomisation(*statistics, mean_score(metric())) == pytest.approx(expected)
    # Drawn instead of enumerated, it comes close.
    drawn = randomisation(*statistics, mean_score(metric()), shuffles=31)
    assert drawn == pytest.approx(expected, abs=0.25)


def test_a_difference_in_one_line_is_never_significant():
    """sacreBLEU counts larger differences only, and finds p = 1/10001 here."""
    changed = [BETTER[0][0], *WORSE[0][1:]]
    assert changed != WORSE[0]
    statistics = [
        line_statistics(BLEU(references=[REFERENCES]), [lines]) for lines in (changed, WORSE[0])
    ]
    assert randomisation(*statistics, mean_score(BLEU())) == 1.0


def test_equal_outputs_do_not_differ():
    statistics = line_statistics(BLEU(references=[REFERENCES]), WORSE)
    assert randomisation(statistics, statistics, mean_score(BLEU())) == 1.0
    assert bootstrap(statistics, statistics, mean_score(BLEU())) == 1.0


def test_a_clear_difference_is_found_and_order_does_not_matter():
    good = line_statistics(BLEU(references=[REFERENCES]), [noisy(REFERENCES, 0.05, 9)] * 2)
    bad = line_statistics(BLEU(references=[REFERENCES]), WORSE[:2])
    score = mean_score(BLEU())
    assert randomisation(good, bad, score, 400) == 1 / 401
    assert randomisation(bad, good, score, 400) == 1 / 401
    assert bootstrap(good, bad, score, 400) == 1 / 401


# Several tests


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.5))
def test_holm_rejects_as_the_step_down_procedure(p_values: list[float], level: float):
    rejected: set[int] = set()
    for index in sorted(range(len(p_values)), key=p_values.__getitem__):
        if p_values[index] * (len(p_values) - len(rejected)) >= level:
            break
        rejected.add(index)
    corrected = holm(p_values)
    assert {i for i, p in enumerate(corrected) if p < level} == rejected
    assert all(p <= new <= 1 for p, new in zip(p_values, corrected, strict=True))
