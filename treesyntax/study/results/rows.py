"""The rows of a study that have results, and what each is compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from treesyntax.metrics import LOWER_IS_BETTER, UNSEEN, is_readable, plain_name
from treesyntax.metrics.runs import FEWEST_RUNS
from treesyntax.study.recipe.fairness import writes_whole_trees
from treesyntax.study.recipe.recipe import SPLITS, Method, Recipe
from treesyntax.study.results.current import Comparable
from treesyntax.study.results.domains import Domain, find_domains
from treesyntax.study.results.outputs import Outputs
from treesyntax.study.results.results import Result

WELLFORMED = "wellformed:"
Pair = tuple[str, str]
"""A row and a metric."""


@dataclass(frozen=True)
class ItemRow:
    """A row and what it is compared with.

    Attributes:
        test_set: as in `treesyntax.study.results.domains.Domain`; "" in a study with one.
        system: the name of the row without that.
        primary: the metric that decides.
        baseline: the row that the table compares it with; "" for none.
        tested: in which metrics.
        strongest: the row that the map compares it with, in ``primary``; "" for none.
        asked: the baseline of the recipe, which may be in another part; a baseline's own name, and ""
            in files from before it was kept.
        controls: the rows over trees without syntax that it has to be better than; they need not have run.
        other_code: those of them that it may not be compared with, since they are of other code.
        other_lines: those of them of which ``primary`` counts other test lines.
        control_of: the row that it is a control of; "" for none. On controls there is no conclusion.
        curve: the name that the row has at all numbers of training pairs; "" where only one was trained.
        no_trees: the row, if trees are wanted and none of its outputs is one; "" otherwise. Older files name its
            baseline where that has none.
    """

    row: str
    test_set: str
    system: str
    primary: str
    baseline: str
    tested: tuple[str, ...]
    strongest: str
    asked: str = ""
    controls: tuple[str, ...] = ()
    control_of: str = ""
    curve: str = ""
    no_trees: str = ""
    other_code: tuple[str, ...] = ()
    other_lines: tuple[str, ...] = ()

    def compared(self) -> list[Pair]:
        """The scores by item that its comparisons need, but those of controls, which need not be there."""
        tested = [(row, metric) for metric in self.tested for row in (self.row, self.baseline)]
        rows = (self.row, self.strongest) if self.strongest else ()
        return tested + [(row, self.primary) for row in rows]


def without_trees(rows: Iterable[ItemRow], row: str, other: str) -> str:
    """The row, or the other that it is compared with, if that wrote no tree though trees are wanted; "" for neither."""
    names = {of.no_trees for of in rows}
    return next((name for name in (row, other) if name in names), "")


def is_tested(metric: str) -> bool:
    """Whether there is a test for a metric."""
    return is_readable(metric)


def make_rows(
    outputs: Outputs, results: Sequence[Result], may_compare: Comparable
) -> tuple[ItemRow, ...]:
    """The rows of a study that have results.

    Args:
        outputs: of the study.
        results: of its runs.
        may_compare: whether two rows may be compared, which those of different code may not.
    """
    recipe, scored = outputs.plan.recipe, {result.method for result in results}
    domains, strongest = find_domains(recipe), _strongest_rows(outputs, results, may_compare)
    curves = _curves(recipe)
    rows = []
    for method in (method for method in recipe.methods if method.name in scored):
        baseline = recipe.baseline_of(method)
        tested: tuple[str, ...] = ()
        if baseline is not None and may_compare(method.name, baseline.name):
            tested = tuple(_tested(outputs, method, baseline))
        rows.append(ItemRow(
            method.name, *domains.get(method.name, Domain("", method.name)), method.primary,
            baseline.name if baseline and tested else "", tested, strongest.get(method.name, ""),
            (baseline or method).name, method.controls,
            method.control_of, curves.get(method.name, ""),
            method.name if outputs.has_no_tree(method.name) else "",
            tuple(name for name in method.controls if not may_compare(method.name, name)),
            tuple(
                name for name in method.controls
                if not counts_alike(method, outputs.methods[name], method.primary)
            ),
        ))  # fmt: skip
    return tuple(rows)


def counts_alike(row: Method, other: Method, metric: str) -> bool:
    """Whether a metric surely counts the same test lines of two rows: those that training lacks are of its data."""
    return UNSEEN not in metric or (row.source, row.target) == (other.source, other.target)


def _tested(outputs: Outputs, method: Method, baseline: Method) -> list[str]:
    """The metrics in which a row is compared with its baseline, primary ones first.

    Well-formedness is not tested where search holds outputs to whole trees, nor unseen lines where those
    of the two rows are different ones.
    """
    recipe = outputs.plan.recipe
    return [
        metric
        for metric in sorted(recipe.score, key=lambda metric: metric not in recipe.primary)
        if is_tested(metric)
        and not (metric.startswith(WELLFORMED) and writes_whole_trees(recipe, method))
        and counts_alike(method, baseline, metric)
        and all(outputs.seeds(row.name, metric) for row in (method, baseline))
    ]


def _curves(recipe: Recipe) -> dict[str, str]:
    """By row its name without the axis that changes its training pairs, but neither valid nor test set."""

    def held_out(row: Method) -> list[str]:
        return [getattr(side, split) for side in (row.source, row.target) for split in SPLITS[1:]]

    groups: dict[tuple[str, str], list[Method]] = {}
    for axis in recipe.axes:
        for row in (row for row in recipe.methods if axis.name in dict(row.point)):
            rest = (f"{name}={label}" for name, label in row.point if name != axis.name)
            groups.setdefault((axis.name, "-".join([row.base, *rest])), []).append(row)
    return {
        row.name: curve
        for (_, curve), rows in groups.items()
        for row in rows
        if len({(member.source.train, member.target.train) for member in rows}) == len(rows) > 1
        and all(held_out(member) == held_out(row) for member in rows)
    }


def _strongest_rows(
    outputs: Outputs, results: Sequence[Result], may_compare: Comparable
) -> dict[str, str]:
    """By row of the map the strongest plain row on its test set, of those on which one has 3 runs."""
    recipe = outputs.plan.recipe
    domains = find_domains(recipe)
    strongest: dict[str, str] = {}
    for test_set in dict.fromkeys(domain.name for domain in domains.values()):
        rows = [
            method
            for method in recipe.methods
            if domains[method.name].name == test_set and outputs.seeds(method.name, method.primary)
        ]
        best = _strongest(recipe, rows, results)
        if best is None or len(outputs.seeds(best.name, best.primary)) < FEWEST_RUNS:
            continue
        strongest |= {
            row.name: best.name
            for row in rows
            if row is best
            or (may_compare(row.name, best.name) and counts_alike(row, best, row.primary))
        }
    return strongest


def _strongest(recipe: Recipe, rows: Sequence[Method], results: Sequence[Result]) -> Method | None:
    """The plain row with the best mean score; one with few runs only if all have."""
    names = recipe.strongest or (recipe.baseline,)
    plain = [row for row in rows if row.base in names or row.name in names]

    def rank(row: Method) -> tuple[bool, float]:
        better = -1 if plain_name(row.primary) in LOWER_IS_BETTER else 1
        values = [
            result.value
            for result in results
            if (result.method, result.metric) == (row.name, row.primary)
        ]
        return len(values) >= FEWEST_RUNS, better * fmean(values)

    return max(plain, key=rank, default=None)
