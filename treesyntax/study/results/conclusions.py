"""What each row of a study shows, in a word, from its comparisons with its baseline and with its controls.

The words and the rule are those of :mod:`treesyntax.metrics.conclusions`. Of several controls the one counts
that the row is least shown to be better than. P-values of controls are corrected as those of baselines are:
over the rows of a table, and in a map over the tasks of each method.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import inf, isnan

from treesyntax.metrics import LOWER_IS_BETTER, plain_name
from treesyntax.metrics.conclusions import (
    AT_THE_CEILING,
    MOST_LEARNING,
    NOTHING_TO_COMPARE,
    ON_THE_FLOOR,
    STILL_LEARNING,
    TOO_FEW_RUNS,
    WORDS,
    no_verdict,
    verdict,
)
from treesyntax.metrics.runs import RunComparison, compare_runs
from treesyntax.metrics.statistics import holm
from treesyntax.study.results.item_scores import ItemScores

NO_VERDICT = (STILL_LEARNING, TOO_FEW_RUNS, ON_THE_FLOOR, AT_THE_CEILING, NOTHING_TO_COMPARE)
HIGHEST_SCORE = 100.0


@dataclass(frozen=True)
class Conclusion:
    """The conclusion on a row: a word, its reason, and the comparisons behind it.

    Attributes:
        word: one of :data:`treesyntax.metrics.conclusions.WORDS`.
        why: the reason, in one sentence.
        control: the control that counts; "" where the row has none.
        control_difference: mean less that of the control, in points; None without one.
        control_low: lower end of the 95 % interval of that; None with too few runs, too.
        control_high: its upper end.
        control_p: of no difference from the control, corrected.
        updates: after how many updates, where the recipe's budget is fixed; else None.
    """

    word: str
    why: str
    control: str = ""
    control_difference: float | None = None
    control_low: float | None = None
    control_high: float | None = None
    control_p: float | None = None
    updates: int | None = None

    def __str__(self) -> str:
        """The word, and of a fixed budget after how many updates."""
        return self.word if self.updates is None else f"{self.word} after {self.updates:,} updates"

    @property
    def is_verdict(self) -> bool:
        """Whether it says something of the method."""
        return self.word not in NO_VERDICT


@dataclass(frozen=True)
class Evidence:
    """All that the conclusion on a row needs but the correction of its p-values.

    Attributes:
        over_baseline: the row against its baseline.
        baseline_p: p of that, corrected.
        over_control: the row against the control that counts; None without one.
        control: its name.
        open: the word and the reason where there is no verdict; both "" where there is one.
        lower: whether a lower score is better.
        updates: as of `Conclusion`.
    """

    over_baseline: RunComparison
    baseline_p: float
    over_control: RunComparison | None
    control: str
    open: tuple[str, str]
    lower: bool
    updates: int | None


def weigh(
    scores: ItemScores,
    row: str,
    baseline: str,
    controls: Sequence[str],
    metric: str,
    baseline_p: float,
    no_trees: str = "",
) -> Evidence:
    """Compare a row with its baseline and the control that counts.

    Args:
        scores: of all rows.
        row: its name.
        baseline: that of its baseline.
        controls: those of its controls; without runs they do not count.
        metric: that decides.
        baseline_p: p against the baseline, corrected; NaN for none.
        no_trees: the row or the baseline if none of its outputs is a tree; "" otherwise.
    """
    lower = plain_name(metric) in LOWER_IS_BETTER
    copies = scores.copies(baseline, metric)
    own, other = (scores.table(name, baseline, metric) for name in (row, baseline))
    tested = [
        (compare_runs(own, scores.table(name, baseline, metric), copies, few_items=True), name)
        for name in controls
        if scores.lines.seeds(name, metric)
    ]
    over_control, control = max(tested, key=lambda one: _doubt(one[0], lower), default=(None, ""))
    names = [row, baseline, *([control] if control else [])]
    tables = [own, other, *([scores.table(control, baseline, metric)] if control else [])]
    first, second, *third = (scores.still_learning(name, metric) for name in names)
    limits = (-inf, inf) if lower else (0.0, HIGHEST_SCORE)
    over_baseline = compare_runs(own, other, copies, few_items=True)
    open_word = no_verdict(tables, copies, (first, second, sum(third)), limits)
    if no_trees:
        open_word = NOTHING_TO_COMPARE, f"none of the outputs of {no_trees} is a tree"
    return Evidence(
        over_baseline, baseline_p, over_control, control, open_word, lower, scores.updates(names)
    )


def _doubt(comparison: RunComparison, lower: bool) -> tuple[bool, bool, float]:
    """How little a row is shown to be better than a control: worse, too few runs, then by p."""
    worse = comparison.difference > 0 if lower else comparison.difference < 0
    return worse, isnan(comparison.p), comparison.p


def conclude_all(evidence: Sequence[Evidence], families: Sequence[Hashable]) -> list[Conclusion]:
    """The conclusion on each row.

    Args:
        evidence: of the rows.
        families: of each row the family in which p-values of controls are corrected.
    """
    control_p: dict[int, float] = {}
    for family in dict.fromkeys(families):
        own = [
            (at, one.over_control.p)
            for at, one in enumerate(evidence)
            if families[at] == family and one.over_control and not isnan(one.over_control.p)
        ]
        corrected = holm([p for _, p in own])
        control_p |= {at: p for (at, _), p in zip(own, corrected, strict=True)}
    return [_concluded(one, control_p.get(at)) for at, one in enumerate(evidence)]


def _concluded(one: Evidence, control_p: float | None) -> Conclusion:
    word, why = one.open
    if not word:
        word, why = verdict(
            one.over_baseline,
            one.over_control,
            one.baseline_p,
            float("nan") if control_p is None else control_p,
            one.lower,
        )
    over = one.over_control
    return Conclusion(
        word,
        why,
        one.control,
        None if over is None else over.difference,
        None if over is None or isnan(over.low) else over.low,
        None if over is None or isnan(over.high) else over.high,
        control_p,
        one.updates,
    )


def is_still_learning(learning: Sequence[int], runs: Sequence[int]) -> bool:
    """Whether too many runs of a side of a comparison were still learning for a mark."""
    return any(count > MOST_LEARNING * of for count, of in zip(learning, runs, strict=True))


def in_order(words: Sequence[str]) -> list[str]:
    """Words, each once, in the order of :data:`treesyntax.metrics.conclusions.WORDS`."""
    return sorted(set(words), key=WORDS.index)
