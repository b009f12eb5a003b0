"""Paired tests of significance between two methods that were scored on the same test set.

Two kinds of metric need two kinds of test. Both take the seeds of a method together and treat the
lines of the test set as the random sample, so a line is exchanged or resampled with all its
seeds. Exchanging pairs of one line and one seed would count a line once a seed, as if three seeds
were three test sets, and find differences too easily.

Metrics that judge each line (exact match): `sign_flip`, exact for any number of lines.
Metrics of a corpus (BLEU, chrF, TER, F1 over parts of trees): the mean over seeds of the corpus
score, by `randomisation`, which decides, and `bootstrap`, which many papers report; it finds
differences more easily than it should (Riezler & Maxwell 2005).

Sources: McNemar 1947; Noreen 1989, Computer-intensive methods for testing hypotheses; Holm 1979, A
simple sequentially rejective multiple test procedure; Koehn 2004, Statistical significance tests
for machine translation evaluation; Riezler & Maxwell 2005, On some pitfalls in automatic evaluation
and significance testing for MT; Post 2018 (sacreBLEU).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from treesyntax.metrics.trees import micro_f1

if TYPE_CHECKING:  # sacreBLEU is loaded by those who score with it
    from sacrebleu.metrics.base import Metric

Sums = NDArray[np.float64]
Score = Callable[[Sums], float]

SEED = 12345
"""sacreBLEU's own default, so that its command line draws the same samples."""
SHUFFLES = 10000
RESAMPLES = 1000
TOLERANCE = 1e-9
"""Scores that are closer are equal; the order of additions moves their last digits."""
BLOCK = 1000


def sign_flip(differences: Sequence[int]) -> float:
    """Two-sided exact p-value of a sum of differences, one for each line of the test set.

    For line i let d_i be the number of seeds for which the method is right, less the number for
    which the baseline is. If the two do not differ, d_i and -d_i are equally likely, so p is the
    share of all sign patterns with ``|Σ ±d_i| >= |Σ d_i|`` (Fisher's randomisation test; Noreen
    1989). It is not sampled: lines with the same ``|d_i| = k`` add k times a centred binomial
    variable, and the distributions of all k are convolved. With one seed it is McNemar's exact
    test.

    Args:
        differences: d_i.
    """
    sizes = Counter(abs(difference) for difference in differences if difference)
    distribution = np.ones(1)  # over the values -reach, -reach + 1, …, reach
    for size, count in sizes.items():
        steps = np.zeros(2 * size * count + 1)
        steps[:: 2 * size] = _coin_flips(count)
        distribution = np.convolve(distribution, steps)
    reach = len(distribution) // 2
    far = np.abs(np.arange(-reach, reach + 1)) >= abs(sum(differences))
    return min(1.0, float(distribution[far].sum()))


def _coin_flips(count: int) -> NDArray[np.float64]:
    """The probabilities of 0 to ``count`` heads."""
    logs = [
        math.lgamma(count + 1) - math.lgamma(heads + 1) - math.lgamma(count - heads + 1)
        for heads in range(count + 1)
    ]
    return np.exp(np.array(logs) - count * math.log(2))


def line_statistics(metric: Metric, hypotheses: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """What the corpus score of each seed is a function of, line by line.

    Args:
        metric: one of sacreBLEU, which was given the references.
        hypotheses: the lines of each seed.

    Returns:
        [lines, seeds, numbers], to be summed over lines.
    """
    found = [metric._extract_corpus_statistics(lines, None) for lines in hypotheses]
    return np.array(found, dtype=np.float64).transpose(1, 0, 2)


class MeanBleu:
    """:func:`mean_score` of sacreBLEU's BLEU with its default smoothing, of many samples at once.

    One by one, the samples of a study of 1,000 runs take minutes.

    Args:
        orders: longest n-grams.
    """

    def __init__(self, orders: int) -> None:
        self.orders = orders

    def __call__(self, sums: Sums) -> float:
        """Of [seeds, numbers]."""
        return float(self.of_all(sums[None])[0])

    def of_all(self, samples: Sums) -> NDArray[np.float64]:
        """[samples] of [samples, seeds, numbers]: lengths of system and reference, n-grams that
        are right, and all of them, by n."""
        system, reference = samples[..., 0], samples[..., 1]
        right, total = samples[..., 2 : 2 + self.orders], samples[..., 2 + self.orders :]
        halvings = 2.0 ** np.cumsum(right == 0, axis=-1)
        found = np.where(right == 0, 1 / halvings, right) / np.maximum(total, 1)
        logs = np.log(100 * found).sum(-1) / self.orders
        brevity = np.exp(np.minimum(0.0, 1 - reference / np.maximum(system, 1)))
        scored = right.any(-1) & total.all(-1) & (system > 0)
        return np.where(scored, brevity * np.exp(logs), 0.0).mean(-1)


def mean_score(metric: Metric) -> Score:
    """The mean over seeds of the corpus score, as a function of sums over lines."""
    from sacrebleu.metrics import BLEU

    if isinstance(metric, BLEU) and metric.smooth_method == "exp" and not metric.effective_order:
        return MeanBleu(metric.max_ngram_order)

    def score(sums: Sums) -> float:
        values = [metric._compute_score_from_stats(row).score for row in sums.tolist()]
        return math.fsum(values) / len(values)

    return score


def mean_f1(sums: Sums) -> float:
    """The mean over seeds of the F1 of summed parts [seeds, 2], see `treesyntax.metrics.trees`."""
    return math.fsum(micro_f1(*row) for row in sums.tolist()) / len(sums)


def _scores(score: Score, samples: Sums) -> NDArray[np.float64]:
    """The scores [samples] of [samples, seeds, numbers]."""
    if isinstance(score, MeanBleu):
        return score.of_all(samples)
    return np.array([score(sums) for sums in samples])


def randomisation(
    method: NDArray[np.float64], baseline: NDArray[np.float64], score: Score,
    shuffles: int = SHUFFLES,
) -> float:  # fmt: skip
    """Two-sided p-value by approximate randomisation (Noreen 1989; Riezler & Maxwell 2005).

    Each shuffle exchanges method and baseline on about half of the lines. With r the number of
    shuffles whose difference of scores is at least the one that was found, p is
    ``(r + 1) / (shuffles + 1)``; where there are no more than ``shuffles`` ways to exchange the
    lines that differ, all are tried and p is their share. sacreBLEU draws the same shuffles but
    counts only larger differences, not equal ones: the same p unless differences tie, and a p far
    too small where the outputs differ in a few lines only.

    Args:
        method: statistics as of `line_statistics`.
        baseline: the same of the baseline, of the same shape.
        score: of sums over lines, see `mean_score`.
        shuffles: how many to draw at most.
    """
    moved, first, second = method - baseline, baseline.sum(0), method.sum(0)
    found = abs(score(second) - score(first))
    different = np.flatnonzero(moved.any(axis=(1, 2)))
    complete = 2 ** len(different) <= shuffles if len(different) < 64 else False
    if complete:
        moved = moved[different]
        keep = _all_patterns(len(different))
    else:
        keep = np.random.default_rng(SEED).integers(2, size=(shuffles, len(moved)), dtype=bool)
    as_far = 0
    for chosen in _blocks(keep):
        change = _weighted_sums(chosen, moved)
        gaps = np.abs(_scores(score, first + change) - _scores(score, second - change))
        as_far += int((gaps >= found - TOLERANCE).sum())
    return as_far / len(keep) if complete else (as_far + 1) / (shuffles + 1)


def bootstrap(
    method: NDArray[np.float64], baseline: NDArray[np.float64], score: Score,
    resamples: int = RESAMPLES,
) -> float:  # fmt: skip
    """Two-sided p-value by paired bootstrap resampling (Koehn 2004), as sacreBLEU has it.

    Lines are drawn with replacement, the same for method and baseline. With D the absolute
    difference of scores in a sample, d the one that was found and r the number of samples with
    ``D - mean(D) > d``, p is ``(r + 1) / (resamples + 1)``. With one seed this is
    ``sacrebleu --paired-bs``, number by number. Equal scores are no difference: 1.

    Args:
        method: statistics as of `line_statistics`.
        baseline: the same of the baseline, of the same shape.
        score: of sums over lines, see `mean_score`.
        resamples: how many to draw.
    """
    found = abs(score(method.sum(0)) - score(baseline.sum(0)))
    if found <= TOLERANCE:
        return 1.0
    lines = len(method)
    drawn = np.random.default_rng(SEED).choice(lines, size=(resamples, lines), replace=True)
    counts = np.stack([np.bincount(row, minlength=lines) for row in drawn])
    gaps = np.concatenate([
        np.abs(
            _scores(score, _weighted_sums(block, method))
            - _scores(score, _weighted_sums(block, baseline))
        )
        for block in _blocks(counts)
    ])  # fmt: skip
    return (int((gaps - gaps.mean() > found).sum()) + 1) / (resamples + 1)


def _all_patterns(size: int) -> NDArray[np.bool_]:
    """All subsets of ``size`` lines, [2 ** size, size]."""
    numbers = np.arange(2**size)[:, None]
    return (numbers >> np.arange(size)) % 2 == 1


def _blocks(weights: NDArray) -> list[NDArray]:
    """Rows in blocks, since their products with the statistics are 64-bit."""
    return [weights[start : start + BLOCK] for start in range(0, len(weights), BLOCK)]


def _weighted_sums(weights: NDArray, statistics: NDArray[np.float64]) -> NDArray[np.float64]:
    """[samples, lines] and [lines, seeds, numbers] to [samples, seeds, numbers]."""
    lines, *shape = statistics.shape
    sums = weights.astype(np.float64) @ statistics.reshape(lines, math.prod(shape))
    return sums.reshape(len(weights), *shape)


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values corrected for their number (Holm 1979), in the order given.

    Sorted upwards, the i-th of m (from 0) is multiplied by m - i; none may be less than one before
    it, nor more than 1. Rejecting where the result is below 0.05 keeps the chance of any false
    finding among all m below 0.05, however the tests depend on each other.
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, p_values[index] * (len(p_values) - rank)))
        corrected[index] = highest
    return corrected
