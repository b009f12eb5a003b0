"""Corpus scores as functions of sums over lines, and the correction of p-values for their number.

Sources: Holm 1979, A simple sequentially rejective multiple test procedure; Post 2018 (sacreBLEU).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from treesyntax.metrics.runs import CorpusScore

if TYPE_CHECKING:  # sacreBLEU is loaded by those who score with it
    from sacrebleu.metrics.base import Metric


def line_statistics(metric: Metric, hypotheses: Sequence[str]) -> NDArray[np.float64]:
    """What the corpus score of one run is a function of, line by line.

    Args:
        metric: one of sacreBLEU, which was given the references.
        hypotheses: the lines of the run.

    Returns:
        [lines, numbers], to be summed over lines.
    """
    return np.array(metric._extract_corpus_statistics(hypotheses, None), dtype=np.float64)


def corpus_score(metric: Metric) -> CorpusScore:
    """The corpus score as a function from sums [samples, numbers] to scores [samples]."""
    from sacrebleu.metrics import BLEU

    if isinstance(metric, BLEU) and metric.smooth_method == "exp" and not metric.effective_order:
        return lambda sums: _bleu(sums, metric.max_ngram_order)
    return lambda sums: np.array(
        [metric._compute_score_from_stats(row).score for row in sums.tolist()]
    )


def _bleu(sums: NDArray[np.float64], orders: int) -> NDArray[np.float64]:
    """sacreBLEU's BLEU with its default smoothing; one by one, leaving out each line takes minutes.

    Args:
        sums: [samples, numbers]: lengths of system and reference, right n-grams, all n-grams.
        orders: the longest n-grams.
    """
    system, reference = sums[:, 0], sums[:, 1]
    right, total = sums[:, 2 : 2 + orders], sums[:, 2 + orders :]
    halvings = 2.0 ** np.cumsum(right == 0, axis=-1)
    precisions = np.where(right == 0, 1 / halvings, right) / np.maximum(total, 1)
    logs = np.log(100 * precisions).sum(-1) / orders
    brevity = np.exp(np.minimum(0.0, 1 - reference / np.maximum(system, 1)))
    scored = right.any(-1) & total.all(-1) & (system > 0)
    return np.where(scored, brevity * np.exp(logs), 0.0)


def f1_score(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """F1 in percent of the parts [samples, 2] that are common and that both have.

    See `treesyntax.metrics.trees`.
    """
    common, total = sums[:, 0], sums[:, 1]
    return np.where(total > 0, 200 * common / np.maximum(total, 1e-9), 100.0)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number (Holm 1979), in the order given.

    Sorted upwards, the i-th of m (from 0) is multiplied by m - i; none may be less than one before
    it, nor more than 1. Rejecting where the result is below 0.05 keeps the chance of any false
    finding among all m below 0.05, however the tests depend on each other. NaN is no test: it stays, and does
    not count among the m.

    Raises:
        ValueError: if one is below 0 or above 1.
    """
    corrected = list(p_values)
    highest = 0.0
    tests = [index for index, p in enumerate(p_values) if not isnan(p)]
    for rank, index in enumerate(sorted(tests, key=lambda index: p_values[index])):
        if not 0 <= p_values[index] <= 1:
            raise ValueError(f"{p_values[index]} is no p-value, which is from 0 to 1")
        highest = max(highest, min(1.0, p_values[index] * (len(tests) - rank)))
        corrected[index] = highest
    return corrected
