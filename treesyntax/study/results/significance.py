"""Which rows of a study differ from their baseline, over training runs and test items.

All runs of a row are compared with all runs of its baseline (`treesyntax.metrics.compare_runs`).
P-values are corrected after Holm in two families: the recipe's primary metric over its rows without
controls, and all others. Metrics that judge every output alike are one test. In the first family each row
has a conclusion in words (:mod:`treesyntax.study.results.conclusions`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from treesyntax.jobs.terminal import tracked
from treesyntax.metrics.runs import checkpoint_p, compare_runs
from treesyntax.metrics.statistics import holm
from treesyntax.study.results.comparisons import Comparison
from treesyntax.study.results.conclusions import conclude_all, weigh
from treesyntax.study.results.item_scores import ItemScores
from treesyntax.study.results.rows import ItemRow
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import located

NO_TEST: dict[str, Any] = dict.fromkeys(("low", "high", "p", "smallest", "error"))
"""Of a row that there is nothing to compare of."""


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
    pairs = [
        (row, metric)
        for metric in sorted(metrics, key=lambda metric: metric not in primary)
        for row in rows
        if metric in row.tested and (metric == row.primary or not row.no_trees)
    ]
    by_name = {row.row: row for row in rows}
    comparisons = corrected([
        replace(
            compare_rows(scores, row.row, row.baseline, metric), **(NO_TEST if row.no_trees else {}),
            seeds=seeds, primary=metric == row.primary, control_of=row.control_of,
            no_trees=row.no_trees,
            still_learning=(
                scores.still_learning(row.row, metric), scores.still_learning(row.baseline, metric)
            ),
        )
        for row, metric in tracked(pairs, "testing rows")
    ])  # fmt: skip
    concluded = [one for one in comparisons if one.in_family]
    evidence = [
        weigh(
            scores, one.method, one.baseline, by_name[one.method].controls, one.metric,
            math.nan if one.holm_p is None else one.holm_p, by_name[one.method].no_trees,
        )
        for one in concluded
    ]  # fmt: skip
    found = dict(zip(concluded, conclude_all(evidence, [""] * len(evidence)), strict=True))
    return [replace(one, conclusion=found.get(one)) for one in comparisons]


def corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The same with p-values corrected in each family; metrics with the same scores count once."""
    first: dict[tuple[str, str, str], Comparison] = {}
    # On another test set an earlier metric may be the primary one.
    for one in sorted(comparisons, key=lambda one: not one.in_family):
        first.setdefault((one.method, one.baseline, one.scores), one)
    by_test: dict[tuple[str, str, str], float] = {}
    for primary in (True, False):
        family = {
            test: one.p
            for test, one in first.items()
            if one.in_family is primary and one.p is not None
        }
        by_test |= dict(zip(family, holm(list(family.values())), strict=True))
    found = []
    for one in comparisons:
        test = (one.method, one.baseline, one.scores)
        same = first[test].metric if first[test].metric != one.metric else ""
        found.append(replace(one, holm_p=by_test.get(test), same_as=same))
    return found


def lost_reference(plan: Plan, folder: Path) -> Path | None:
    """A test set that does not exist any more, without which nothing can be tested."""
    files = {located(method.target.test, folder) for method in plan.recipe.methods}
    return next((file for file in sorted(files) if not file.is_file()), None)


def compare_rows(scores: ItemScores, row: str, baseline: str, metric: str) -> Comparison:
    """The test of a row against its baseline; ``seeds``, ``primary`` and the correction are to be set."""
    copies = scores.copies(baseline, metric)
    own, other = (scores.table(name, baseline, metric) for name in (row, baseline))
    found = compare_runs(own, other, copies, few_items=True)
    low, high, p, smallest, error = (
        None if math.isnan(number) else number
        for number in (found.low, found.high, found.p, found.smallest, found.error)
    )
    return Comparison(
        method=row, baseline=baseline, metric=metric, runs=found.runs, seeds=0, items=found.items,
        lines=int(copies.sum()), difference=found.difference, low=low, high=high, p=p, holm_p=p,
        smallest=smallest, checkpoint_p=checkpoint_p(own, other, copies), primary=True, same_as="",
        scores=sha256(own.tobytes() + other.tobytes()).hexdigest(), error=error,
        floor=found.floor, lopsided=found.lopsided,
    )  # fmt: skip
