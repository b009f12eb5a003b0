"""What a row of a study shows, in a word: from its baseline, and from its control.

A control has the same mechanism without the syntax: the same model over random trees, say. A row that
is better than its baseline shows that the mechanism helps. Only one that is better than its control
too shows that syntax does.

*Syntax helps* asks for two findings at once, each at 5 %. Where either is not there, it is found in at
most 5 % of studies, so no correction for the two is needed (the intersection-union test: Berger 1982).
Several rows of a study do need one: both findings of each are corrected for all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from treesyntax.metrics.runs import (
    FEWEST_RUNS,
    LEVEL,
    CorpusScore,
    RunComparison,
    compare_runs,
    pulls,
)

SYNTAX_HELPS, MECHANISM_HELPS = "syntax helps", "mechanism helps"
NOT_SHOWN, HURTS = "not shown", "hurts"
STILL_LEARNING, TOO_FEW_RUNS = "still learning", "too few runs"
ON_THE_FLOOR, AT_THE_CEILING = "on the floor", "at the ceiling"
NOTHING_TO_COMPARE = "nothing to compare"
"""Of a test set with one item, and in a study of a row whose outputs are all no trees."""
WORDS = (
    SYNTAX_HELPS, MECHANISM_HELPS, NOT_SHOWN, HURTS, STILL_LEARNING, TOO_FEW_RUNS, ON_THE_FLOOR,
    AT_THE_CEILING, NOTHING_TO_COMPARE,
)  # fmt: skip
MOST_LEARNING = 1 / 3
"""The share of runs that may have been still learning when they ended."""
FLOOR, CEILING = 0.02, 0.98
"""Shares of the range of scores: rows that are all below the one, or all above the other, tell nothing."""

P_DIGITS, LEAST_SHOWN = 3, 0.001
"""How p-values are printed: digits, and the least that is told."""


class Conclusion(NamedTuple):
    """The conclusion on a row: a word, its reason, and the comparisons behind it.

    Attributes:
        word: one of :data:`WORDS`.
        reason: why, in one sentence.
        over_baseline: the row against its baseline.
        over_control: the row against its control; None without one.
        baseline_p: p of the first, corrected for the rows of the study.
        control_p: p of the second, corrected likewise; NaN without a control or with too few runs of it.
    """

    word: str
    reason: str
    over_baseline: RunComparison
    over_control: RunComparison | None
    baseline_p: float
    control_p: float


def conclude(
    row: ArrayLike,
    baseline: ArrayLike,
    control: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    *,
    score: CorpusScore | None = None,
    tested: int = 1,
    still_learning: tuple[int, int, int] = (0, 0, 0),
    limits: tuple[float, float] | None = None,
    lower_is_better: bool = False,
    few_items: bool = False,
) -> Conclusion:
    """Say in a word what a row of a study shows.

    Args:
        row: scores [items, runs] of the row; with ``score`` what that is a function of, [items, runs,
            numbers].
        baseline: the same of the baseline, of the same items.
        control: the same of the row's control; None if there is none, and then no row can show that
            syntax helps.
        weights: [items], how often each item stands in the test set.
        score: a score of the whole test set, see :func:`treesyntax.metrics.compare_corpus_scores`.
        tested: rows of the study that are concluded on; p-values are multiplied by it (Bonferroni).
        still_learning: runs of row, baseline and control that were still learning at their end.
        limits: lowest and highest possible score; those of the items unless told.
        lower_is_better: whether a lower score is better, as with TER.
        few_items: as of :func:`treesyntax.metrics.compare_runs`.

    Raises:
        ValueError: as :func:`treesyntax.metrics.compare_runs`, and if ``tested`` is below 1 or more
            runs are still learning than there are.
    """
    if tested < 1:
        raise ValueError(f"tested is {tested}, but at least this row is tested")
    compared = [row, baseline] if control is None else [row, baseline, control]
    tables = [
        np.asarray(table, np.float64) if score is None else pulls(table, score, weights)
        for table in compared
    ]
    over_baseline = compare_runs(tables[0], tables[1], weights, few_items=few_items)
    over_control = (
        None
        if control is None
        else compare_runs(tables[0], tables[2], weights, few_items=few_items)
    )
    p_values = [over_baseline.p, float("nan") if over_control is None else over_control.p]
    baseline_p, control_p = (min(1.0, p * tested) if p == p else p for p in p_values)
    word, reason = no_verdict(tables, weights, still_learning, limits, lower_is_better)
    if not word:
        word, reason = verdict(over_baseline, over_control, baseline_p, control_p, lower_is_better)
    return Conclusion(word, reason, over_baseline, over_control, baseline_p, control_p)


def verdict(
    over_baseline: RunComparison,
    over_control: RunComparison | None,
    baseline_p: float,
    control_p: float,
    lower_is_better: bool = False,
    untested: str = "",
) -> tuple[str, str]:
    """The word and its reason, from two comparisons whose p-values are corrected.

    Args:
        over_baseline: the row against its baseline.
        over_control: the row against its control; None without one.
        baseline_p: p of the first, after the correction for all rows of the study.
        control_p: p of the second likewise; NaN if it has none.
        lower_is_better: whether a lower score is better.
        untested: which other control the row has, and why it is not compared with it; "" for none. Without all
            of its controls no row shows that syntax helps.
    """
    sign = -1 if lower_is_better else 1
    if not baseline_p < LEVEL:
        would = (
            f"; this table would have found {over_baseline.smallest:.2f} in 80 % of studies before correction for "
            "several rows"
        )
        would = "" if np.isnan(over_baseline.smallest) else would
        p = p_as_text(baseline_p, "= ")
        return NOT_SHOWN, f"not shown to differ from the baseline (p {p}){would}"
    if sign * over_baseline.difference < 0:
        return HURTS, f"worse than the baseline ({over_baseline.difference:+.2f})"
    better = f"better than the baseline ({over_baseline.difference:+.2f})"
    if over_control is None:
        return (
            MECHANISM_HELPS,
            f"{better}; {untested or 'there is no control'}, so syntax is not tested",
        )
    if np.isnan(control_p):
        few = f"the control has fewer than {FEWEST_RUNS} runs"
        return MECHANISM_HELPS, f"{better}; {few}, so syntax is not tested"
    gap = f"{over_control.difference:+.2f}, p {p_as_text(control_p, '= ')}"
    if control_p < LEVEL and sign * over_control.difference > 0:
        if untested:
            return MECHANISM_HELPS, f"{better}; {untested}, so syntax is not tested against it"
        return SYNTAX_HELPS, f"{better}, and than its control ({gap})"
    return MECHANISM_HELPS, f"{better}, not shown to be better than its control ({gap})"


def no_verdict(
    tables: Sequence[NDArray[np.float64]],
    weights: ArrayLike | None = None,
    still_learning: Sequence[int] = (0, 0, 0),
    limits: tuple[float, float] | None = None,
    lower_is_better: bool = False,
) -> tuple[str, str]:
    """The word for a row on which there is no verdict, and why; both "" where there is one.

    Args:
        tables: scores [items, runs] of row, baseline and, where there is one, control.
        weights: as of :func:`conclude`.
        still_learning: as of :func:`conclude`.
        limits: as of :func:`conclude`.
        lower_is_better: as of :func:`conclude`; nobody can do what has the highest scores.
    """
    names = ("row", "baseline", "control")
    for name, table in zip(names[:2], tables, strict=False):
        if table.shape[1] < FEWEST_RUNS:
            runs = "1 run" if table.shape[1] == 1 else f"{table.shape[1]} runs"
            return TOO_FEW_RUNS, f"the {name} has {runs}, {FEWEST_RUNS} are needed"
    for name, table, count in zip(names, tables, still_learning, strict=False):
        runs = table.shape[1]
        if not 0 <= count <= runs:
            raise ValueError(f"{count} of {runs} runs of the {name} cannot be still learning")
        if count > MOST_LEARNING * runs:
            text = f"{count} of {runs} runs of the {name} were still learning when they ended"
            return STILL_LEARNING, f"{text}: train longer"
    if len(tables[0]) < 2:
        return NOTHING_TO_COMPARE, "there is one test item, on which nothing can be tested"
    copies = None if weights is None else np.asarray(weights, np.float64)
    means = [float(np.average(table, axis=0, weights=copies).mean()) for table in tables]
    if limits is None:
        low, high = min(table.min() for table in tables), max(table.max() for table in tables)
        # No score differs from another: a score of 0 is the lowest.
        low, high = (0.0, abs(high) or 1.0) if low == high else (low, high)
    else:
        low, high = limits
    shares = [(mean - low) / (high - low) for mean in means]
    lowest, highest = ON_THE_FLOOR, AT_THE_CEILING
    if lower_is_better:
        lowest, highest = highest, lowest
    if max(shares) < FLOOR:
        return lowest, f"all are below {FLOOR:.0%} of the highest score"
    if min(shares) > CEILING:
        return highest, f"all are above {CEILING:.0%} of the highest score"
    return "", ""


def p_as_text(p: float, equals: str = "") -> str:
    """A p-value as ``0.012``, or ``< 0.001``; next to 0.05 with the digits that say on which side it is.

    Args:
        p: the value.
        equals: what stands before it where no ``<`` does.
    """
    if p < LEAST_SHOWN:
        return f"< {LEAST_SHOWN}"
    digits = P_DIGITS
    while (float(f"{p:.{digits}f}") < LEVEL) != (p < LEVEL):
        digits += 1
    return f"{equals}{p:.{digits}f}"
