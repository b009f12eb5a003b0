"""Corpus scores as functions of sums against sacreBLEU's own, and Holm's correction."""

from __future__ import annotations

import random
from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER

from treesyntax.metrics.statistics import corpus_score, f1_score, holm, line_statistics
from treesyntax.metrics.trees import micro_f1

WORDS = ["the", "a", "cat", "dog", "tree", "grows", "sleeps", "under", "near", "old", "green"]


def sentences(seed: int, count: int = 60) -> list[str]:
    choose = random.Random(seed)
    return [" ".join(choose.choices(WORDS, k=choose.randint(4, 12))) for _ in range(count)]


@pytest.mark.parametrize("metric", [BLEU, CHRF, TER])
def test_the_sums_of_lines_have_the_corpus_score(metric: type):
    references = sentences(1)
    runs = [[*references[:20], *sentences(seed, 40)] for seed in (2, 3)]
    statistics = [line_statistics(metric(references=[references]), lines) for lines in runs]
    assert statistics[0].shape[0] == len(references)
    found = corpus_score(metric())(np.stack([one.sum(0) for one in statistics]))
    expected = [metric().corpus_score(lines, [references]).score for lines in runs]
    assert found == pytest.approx(expected)


def test_bleu_of_many_samples_is_that_of_sacrebleu():
    generator = np.random.default_rng(1)
    total = np.sort(generator.integers(0, 40, (1000, 4)), axis=-1)[..., ::-1]
    right = np.minimum(generator.integers(0, 30, total.shape), total)
    lengths = generator.integers(0, 60, (1000, 2))
    samples = np.concatenate([lengths, right, total], axis=-1).astype(float)
    metric = BLEU()
    expected = [metric._compute_score_from_stats(row).score for row in samples.tolist()]
    assert corpus_score(metric)(samples) == pytest.approx(np.array(expected), abs=1e-9)


def test_f1_of_many_samples_is_micro_f1():
    samples = np.array([[0, 0], [3, 10], [5, 10], [0, 4]], dtype=float)
    assert f1_score(samples).tolist() == pytest.approx([micro_f1(*row) for row in samples])


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


def test_holm_leaves_out_what_is_no_test():
    """A row with two runs made the p of all rows that were less sure 1."""
    corrected = holm([0.02, nan, 0.01])
    assert (corrected[0], corrected[2]) == pytest.approx((0.02, 0.02))
    assert isnan(corrected[1])
    for p in (-0.01, 5):
        with pytest.raises(ValueError, match=f"^{p} is no p-value, which is from 0 to 1$"):
            holm([0.01, p])


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
