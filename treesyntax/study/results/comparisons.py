"""Which rows of a study differ from their baseline, over training runs and test items, and what each row shows.

All runs of a row are compared with all runs of its baseline (`treesyntax.metrics.compare_runs`). P-values are
corrected after Holm in two families: the recipe's primary metric over its rows without controls, and all others.
Metrics that judge every output alike are one test. In the first family each row has a conclusion in a word of
:mod:`treesyntax.metrics.conclusions`. Of several controls the one counts that the row is least shown to be better
than. P-values of controls are corrected as those of baselines are: over the rows of a table, and in a map over the
tasks of each method.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from math import inf, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesyntax.jobs.terminal import tracked
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
from treesyntax.metrics.runs import LEVEL, RunComparison, checkpoint_p, compare_runs
from treesyntax.metrics.statistics import holm
from treesyntax.study.results.item_scores import ItemScores
from treesyntax.study.results.rows import ItemRow, without_trees
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import located

NO_VERDICT = (STILL_LEARNING, TOO_FEW_RUNS, ON_THE_FLOOR, AT_THE_CEILING, NOTHING_TO_COMPARE)
HIGHEST_SCORE = 100.0
NO_TEST: dict[str, Any] = dict.fromkeys(("low", "high", "p", "smallest", "error"))
"""Of a row that there is nothing to compare of."""
Array = NDArray[np.float64]


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


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A row against its baseline in one metric.

    Attributes:
        runs: training runs of the row and of the baseline, all that have this score.
        seeds: how many seeds the recipe has.
        items: distinct pairs of source and reference.
        lines: lines of the test set in which these stand.
        difference: mean of the row's runs less that of the baseline's, in points.
        low: lower end of the 95 % interval of the difference; None with fewer than 3 runs a side,
            and where nothing varies between runs or items.
        high: its upper end.
        p: of no difference, over runs and items, uncorrected; None with fewer than 3 runs a side.
        holm_p: ``p``, corrected for the tests of its family.
        smallest: the true difference that this many runs and items find in 80 % of cases.
        checkpoint_p: of no difference between these checkpoints on other lines. It says nothing
            about the methods.
        primary: whether it belongs to the primary metric's family; others are a second one.
        same_as: the primary metric, or an earlier one, with the same score of every item and run, which
            is the same test; "" for none.
        scores: a hash of all scores by item and run.
        error: the standard error of the difference; None as ``low``.
        floor: which part of the variance was estimated below 0 and counts as 0
            (:class:`treesyntax.metrics.runs.RunComparison`).
        lopsided: whether runs of the row or its baseline lie close to the lowest or highest score.
        control_of: the row that this one is a control of; "" for none.
        no_verdict: the word where scores or runs allow no verdict, so there is no mark; "" otherwise.
        conclusion: what the row shows; None in other metrics than the primary one, and for controls.
        no_trees: the row or its baseline, if none of its outputs is a tree and trees are wanted; "" otherwise.
    """

    method: str
    baseline: str
    metric: str
    runs: tuple[int, int]
    seeds: int = 0
    items: int
    lines: int
    difference: float
    low: float | None
    high: float | None
    p: float | None
    holm_p: float | None = None
    smallest: float | None
    checkpoint_p: float | None = None
    primary: bool = True
    same_as: str = ""
    scores: str
    error: float | None = None
    floor: str = ""
    lopsided: bool = False
    control_of: str = ""
    no_verdict: str = ""
    conclusion: Conclusion | None = None
    no_trees: str = ""

    @property
    def tested(self) -> bool:
        """Whether there is a verdict: enough runs that were at rest, and scores between floor and ceiling."""
        if self.conclusion is not None and not self.conclusion.is_verdict:
            return False
        return self.p is not None and not self.no_verdict

    @property
    def shown_p(self) -> float | None:
        """``holm_p`` where there is a verdict, as a small one would be read as one."""
        return self.holm_p if self.tested else None

    @property
    def significant(self) -> bool:
        """Whether there is a verdict, and the difference holds over runs and items after correction."""
        return self.shown_p is not None and self.shown_p < LEVEL

    @property
    def interval(self) -> str:
        """The interval of the difference as text; a dash where there is none."""
        return "–" if self.low is None else f"{self.low:+.2f} to {self.high:+.2f}"

    @property
    def in_family(self) -> bool:
        """Whether it is of the first family: rows that are concluded on, in their primary metrics."""
        return self.primary and not self.control_of

    @property
    def lower_is_better(self) -> bool:
        """Whether a lower score is better."""
        return plain_name(self.metric) in LOWER_IS_BETTER

    @property
    def better(self) -> bool:
        """Whether the row is on the better side of its baseline."""
        return self.difference < 0 if self.lower_is_better else self.difference > 0

    @property
    def complete(self) -> bool:
        """Whether every seed of the recipe is in it, on both sides."""
        return min(self.runs) == self.seeds


def compare(
    scores: ItemScores, rows: Sequence[ItemRow], metrics: Sequence[str], seeds: int
) -> list[Comparison]:
    """Compare each row of a study with its baseline.

    Args:
        scores: of all rows.
        rows: those with results.
        metrics: of the study.
        seeds: of the study.
    """
    primary = {row.primary for row in rows}
    no_trees = {row.row: without_trees(rows, row.row, row.baseline) for row in rows}
    pairs = [
        (row, metric)
        for metric in sorted(metrics, key=lambda metric: metric not in primary)
        for row in rows
        if metric in row.tested and (metric == row.primary or not no_trees[row.row])
    ]
    comparisons = corrected([
        replace(
            compare_rows(scores, row.row, row.baseline, metric, row.control_of),
            **(NO_TEST if no_trees[row.row] else {}),
            no_trees=no_trees[row.row],
            seeds=seeds,
            primary=metric == row.primary,
            checkpoint_p=checkpoint_p(*_tables(scores, row.row, row.baseline, metric)),
        )
        for row, metric in tracked(pairs, "testing rows")
    ])  # fmt: skip
    return concluded(
        scores, comparisons, rows, [comparison.in_family for comparison in comparisons]
    )


def _tables(
    scores: ItemScores, row: str, baseline: str, metric: str
) -> tuple[Array, Array, NDArray[np.intp]]:
    """The scores of both [items, runs], and how often each item stands in the test set."""
    row_scores, baseline_scores = (scores.table(name, baseline, metric) for name in (row, baseline))
    return row_scores, baseline_scores, scores.copies(baseline, metric)


def compare_rows(
    scores: ItemScores, row: str, baseline: str, metric: str, control_of: str = ""
) -> Comparison:
    """Test a row against its baseline; p is not corrected."""
    row_scores, baseline_scores, copies = _tables(scores, row, baseline, metric)
    test = compare_runs(row_scores, baseline_scores, copies, few_items=True)
    without, _ = _no_verdict(scores, (row, baseline), baseline, metric)
    return Comparison(
        method=row, baseline=baseline, metric=metric, runs=test.runs, items=test.items,
        lines=int(copies.sum()), difference=test.difference, low=_known(test.low), high=_known(test.high),
        p=_known(test.p), smallest=_known(test.smallest), error=_known(test.error),
        scores=sha256(row_scores.tobytes() + baseline_scores.tobytes()).hexdigest(),
        floor=test.floor, lopsided=test.lopsided, control_of=control_of, no_verdict=without,
    )  # fmt: skip


def _no_verdict(
    scores: ItemScores, rows: Sequence[str], baseline: str, metric: str
) -> tuple[str, str]:
    """Why there is no verdict on a row, its baseline and perhaps its control: a word and a reason, or nothing."""
    lower = plain_name(metric) in LOWER_IS_BETTER
    return no_verdict(
        [scores.table(name, baseline, metric) for name in rows],
        scores.copies(baseline, metric),
        [scores.still_learning(name, metric) for name in rows],
        (-inf, inf) if lower else (0.0, HIGHEST_SCORE),
    )


def _known(number: float) -> float | None:
    return None if isnan(number) else number


def corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The same with p-values corrected in each family; metrics with the same scores count once."""
    first: dict[tuple[str, str, str], Comparison] = {}
    # On another test set an earlier metric may be the primary one.
    for comparison in sorted(comparisons, key=lambda comparison: not comparison.in_family):
        first.setdefault((comparison.method, comparison.baseline, comparison.scores), comparison)
    families = [comparison.in_family for comparison in first.values()]
    by_test = dict(
        zip(
            first,
            holm_by_family(families, [comparison.p for comparison in first.values()]),
            strict=True,
        )
    )
    whole = []
    for comparison in comparisons:
        test = (comparison.method, comparison.baseline, comparison.scores)
        same = first[test].metric if first[test].metric != comparison.metric else ""
        whole.append(replace(comparison, holm_p=by_test[test], same_as=same))
    return whole


def holm_by_family(
    families: Sequence[Hashable], p_values: Sequence[float | None]
) -> list[float | None]:
    """P-values corrected after Holm, each in its family; None is no test."""
    pairs = list(zip(families, p_values, strict=True))
    left = {
        family: iter(holm([p for of, p in pairs if of == family and p is not None]))
        for family in set(families)
    }
    return [None if p is None else next(left[family]) for family, p in pairs]


def concluded(
    scores: ItemScores,
    comparisons: Sequence[Comparison],
    rows: Sequence[ItemRow],
    families: Sequence[Hashable],
) -> list[Comparison]:
    """The same with what each row shows.

    Args:
        scores: of all rows.
        comparisons: with corrected p-values.
        rows: with their controls.
        families: of each comparison the family in which p-values of controls are corrected; one that is false
            has no conclusion.
    """
    by_name = {row.row: row for row in rows}
    over = [
        _over_control(scores, comparison, by_name[comparison.method]) if family else (None, "", "")
        for comparison, family in zip(comparisons, families, strict=True)
    ]
    control_p = holm_by_family(families, [test and _known(test.p) for test, *_ in over])
    return [
        replace(comparison, conclusion=_conclusion(scores, comparison, *control, p))
        if family
        else comparison
        for comparison, family, control, p in zip(
            comparisons, families, over, control_p, strict=True
        )
    ]


def _over_control(
    scores: ItemScores, comparison: Comparison, row: ItemRow
) -> tuple[RunComparison | None, str, str]:
    """A row against the control that it is least shown to be better than, its name, and which others it could not
    be compared with, and why."""

    def doubt(tested: tuple[RunComparison, str]) -> tuple[bool, bool, bool, bool, float]:
        """How little the row is shown to be better: not, than one that was still learning, worse, too few runs, by p."""
        test, name = tested
        worse = test.difference > 0 if comparison.lower_is_better else test.difference < 0
        unsure = worse or not test.p < LEVEL
        learning = scores.still_learning(name, comparison.metric) > MOST_LEARNING * test.runs[1]
        # Where it is not shown to be better than one at rest, that is what there is to say.
        return unsure, learning != unsure, worse, isnan(test.p), test.p

    why = dict.fromkeys(row.other_lines, "counts other test lines")
    why |= dict.fromkeys(row.other_code, "is of other code")
    row_scores, _, copies = _tables(
        scores, comparison.method, comparison.baseline, comparison.metric
    )
    tested = [
        (
            compare_runs(
                row_scores,
                scores.table(name, comparison.baseline, comparison.metric),
                copies,
                few_items=True,
            ),
            name,
        )
        for name in row.controls
        if name not in why and scores.lines.seeds(name, comparison.metric)
    ]
    names = [name for _, name in tested]
    untested = [
        f"its control {name} {why.get(name, 'has no runs')}"
        for name in row.controls
        if name not in names
    ]
    return *max(tested, key=doubt, default=(None, "")), " and ".join(untested)


def _conclusion(
    scores: ItemScores,
    comparison: Comparison,
    over_control: RunComparison | None,
    control: str,
    untested: str,
    control_p: float | None,
) -> Conclusion:
    names = [comparison.method, comparison.baseline, *([control] if control else [])]
    tables = [scores.table(name, comparison.baseline, comparison.metric) for name in names]
    word, why = _no_verdict(scores, names, comparison.baseline, comparison.metric)
    if comparison.no_trees:
        word, why = NOTHING_TO_COMPARE, f"none of the outputs of {comparison.no_trees} is a tree"
    if not word and control and np.array_equal(tables[0], tables[2]):
        blind = "so its method sees nothing of the trees"
        word, why = NOTHING_TO_COMPARE, f"each run scores every line as {control} does, {blind}"
    if not word:
        smallest = nan if comparison.smallest is None else comparison.smallest
        over = RunComparison(
            comparison.difference, nan, nan, nan, comparison.runs, comparison.items, smallest
        )
        baseline_p, against = (nan if p is None else p for p in (comparison.holm_p, control_p))
        word, why = verdict(
            over, over_control, baseline_p, against, comparison.lower_is_better, untested
        )
    learning, runs = scores.best_last(names, comparison.metric)
    if scores.fixed and word not in NO_VERDICT and learning > runs * MOST_LEARNING:
        why += f"; {learning} of {runs} trainings were best at their end, so more updates may change this"
    gap, low, high = over_control[:3] if over_control else (nan, nan, nan)
    ends = (_known(gap), _known(low), _known(high))
    return Conclusion(word, why, control, *ends, control_p, scores.updates(names))


FACTS = (
    "baseline", "difference", "low", "high", "p", "holm_p", "smallest", "items", "baseline_runs",
    "checkpoint_p", "conclusion", "why", "control", "control_difference", "control_low",
    "control_high", "control_p",
)  # fmt: skip
"""What tables keep of a comparison, and of its conclusion; ``holm_p`` only where there is a verdict."""


def facts_of(comparison: Comparison | None) -> dict[str, Any]:
    """The values of `FACTS`; None is what there is not."""
    if comparison is None:
        return dict.fromkeys(FACTS)
    facts = {name: getattr(comparison, name) for name in FACTS[:8]} | {"holm_p": comparison.shown_p}
    facts |= {"baseline_runs": comparison.runs[1], "checkpoint_p": comparison.checkpoint_p}
    if (words := comparison.conclusion) is None:
        return dict.fromkeys(FACTS) | facts
    facts |= {"conclusion": str(words), "why": words.why, "control": words.control or None}
    return facts | {name: getattr(words, name) for name in FACTS[-4:]}


def in_order(words: Sequence[str]) -> list[str]:
    """Words, each once, in the order of :data:`treesyntax.metrics.conclusions.WORDS`."""
    return sorted(set(words), key=WORDS.index)


def lost_reference(plan: Plan, folder: Path) -> Path | None:
    """A test set that does not exist any more, without which nothing can be tested."""
    files = {located(method.target.test, folder) for method in plan.recipe.methods}
    return next((file for file in sorted(files) if not file.is_file()), None)
