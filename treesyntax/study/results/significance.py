"""Which rows of a study differ from their baseline, over training runs and test items.

All runs of a row are compared with all runs of its baseline (`treesyntax.metrics.compare_runs`).
P-values are corrected after Holm in two families: the recipe's primary metric over its rows, and all
other metrics. Metrics that judge every output alike are one test, and well-formedness is not tested
where search holds outputs to whole trees. Comparisons are kept in ``significance.json``, and made
anew where hypotheses, references or the code of scores changed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from treesyntax.jobs.terminal import tracked
from treesyntax.metrics import CORPUS_METRICS, ITEM_METRICS, PART_METRICS, UNSEEN
from treesyntax.metrics.runs import checkpoint_p, compare_runs
from treesyntax.metrics.statistics import holm
from treesyntax.study.recipe.fairness import writes_whole_trees
from treesyntax.study.recipe.recipe import Method
from treesyntax.study.results.comparisons import Comparison
from treesyntax.study.results.item_scores import ItemScores, Scores
from treesyntax.study.results.results import Result
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import located

WELLFORMED = "wellformed:"


def is_tested(metric: str) -> bool:
    """Whether there is a test for a metric."""
    plain = metric.removesuffix(UNSEEN)
    return any(plain in kind for kind in (ITEM_METRICS, PART_METRICS, CORPUS_METRICS))


def compare(
    plan: Plan, folder: Path, results: Sequence[Result], known: Sequence[Comparison] = ()
) -> list[Comparison]:
    """Compare each row of a study with its baseline, as far as there are results."""
    recipe, scores = plan.recipe, ItemScores(plan, folder, results)
    stored = {one.key: one for one in known}
    rows = [
        (method, baseline, metric)
        for metric in sorted(recipe.score, key=lambda metric: metric not in recipe.primary)
        for method in recipe.methods
        if is_tested(metric)
        and (baseline := recipe.baseline_of(method)) is not None
        and not (metric.startswith(WELLFORMED) and writes_whole_trees(recipe, method))
    ]
    shown = tracked(rows, "testing rows")
    found = [one for row in shown if (one := _comparison(scores, stored, *row)) is not None]
    return corrected(found)


def corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The same with p-values corrected in each family; metrics with the same scores count once."""
    first: dict[tuple[str, str, str], Comparison] = {}
    # On another test set an earlier metric may be the primary one.
    for one in sorted(comparisons, key=lambda one: not one.primary):
        first.setdefault((one.method, one.baseline, one.scores), one)
    by_test: dict[tuple[str, str, str], float] = {}
    for primary in (True, False):
        family = {
            test: one.p
            for test, one in first.items()
            if one.primary is primary and one.p is not None
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


def _comparison(
    scores: ItemScores,
    known: Mapping[str, Comparison],
    method: Method,
    baseline: Method,
    metric: str,
) -> Comparison | None:
    """The row against its baseline; None where there is nothing to compare."""
    recipe, rows = scores.plan.recipe, (method, baseline)
    runs = [scores.runs(row, metric) for row in rows]
    other_data = (method.source, method.target) != (baseline.source, baseline.target)
    if not all(runs) or not scores.has_references(baseline) or (
        other_data and metric.endswith(UNSEEN)  # other lines are unseen
    ):  # fmt: skip
        return None
    key = scores.key(runs, metric)
    one = known.get(key) or compare_rows(scores, method.name, baseline.name, metric, key)
    return replace(
        one,
        method=method.name,
        baseline=baseline.name,
        seeds=len(recipe.seeds),
        primary=metric == method.primary,
    )


def compare_rows(scores: Scores, row: str, baseline: str, metric: str, key: str) -> Comparison:
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
        scores=sha256(own.tobytes() + other.tobytes()).hexdigest(), key=key, error=error,
        floor=found.floor, lopsided=found.lopsided,
    )  # fmt: skip
