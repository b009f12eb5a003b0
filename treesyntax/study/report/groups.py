"""Scores of the lines of a test set in groups: by length and depth in bins, and by category.

A bin has about as many lines as another, and is the same for all rows. The recipe's ``categories`` names a file
with a category for each line, such as the cases of COGS. The score of a group is that of a test set of its lines
alone. The difference of a row from its baseline has its interval over training runs and the items of the group
(`treesyntax.metrics.compare_runs`). There is one comparison for each group, so intervals are not corrected for
their number and there are no marks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treesyntax.data.token_files import TokenData, find_prefix
from treesyntax.errors import TreeSyntaxError
from treesyntax.files import read_lines
from treesyntax.metrics import plain_name
from treesyntax.palette import plain_panel
from treesyntax.study.report.curves import Lines
from treesyntax.study.report.table import Spread
from treesyntax.study.report.table_notes import counted
from treesyntax.study.results.comparisons import Comparison, compare_rows
from treesyntax.study.results.item_scores import ItemScores, Mask
from treesyntax.study.results.outputs import Outputs, tree_format
from treesyntax.study.results.rows import ItemRow, is_tested
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import located
from treesyntax.trees.formats import get_format, read_trees
from treesyntax.trees.tree import Tree

if TYPE_CHECKING:  # matplotlib is loaded by those who draw
    from matplotlib.figure import Figure

BINS = 5
MARK, LETTER = 0.5, 0.085
"""Width of a legend's mark and of a letter, in inches."""
SPREAD = 0.5
"""Width over which the marks of one group are spread, of the distance between groups."""
CATEGORY_HEADER = (
    "category", "items", "row", "metric", "score", "runs", "difference", "95 % interval",
)  # fmt: skip
CATEGORIES_FILE = "categories.csv"
CATEGORY_COLUMNS = (
    "category", "items", "lines", "method", "metric", "mean", "sd", "seeds", "baseline",
    "difference", "low", "high",
)  # fmt: skip


class GroupScore(NamedTuple):
    """A row's score of the lines of a group.

    Attributes:
        items: distinct pairs of source and reference.
        lines: lines of the test set in which these stand.
        spread: over runs.
        comparison: with the row's baseline; None for a baseline, or where that has no such line.
    """

    group: str
    items: int
    lines: int
    method: str
    metric: str
    spread: Spread
    comparison: Comparison | None

    def cells(self) -> list[str]:
        """The texts of a line of the table."""
        test, items = self.comparison, counted(self.items, self.lines)
        compared = ["–", "–"] if test is None else [f"{test.difference:+.2f}", test.interval]
        runs, score = str(len(self.spread.values)), str(self.spread)
        return [self.group, items, self.method, self.metric, score, runs, *compared]

    def numbers(self) -> list[object]:
        """The values of `CATEGORY_COLUMNS`, in full."""
        test = self.comparison
        compared = (
            [test.baseline, test.difference, test.low, test.high]
            if test
            else ["", None, None, None]
        )
        spread = (self.spread.mean, self.spread.sd, len(self.spread.values))
        return [self.group, self.items, self.lines, self.method, self.metric, *spread, *compared]


@dataclass(frozen=True)
class Breakdown:
    """Scores by groups, as they are drawn.

    Attributes:
        name: part of a file's name.
        label: of the horizontal axis.
        scores: of all rows and metrics.
        bins: first and last value of each bin by its group; none of categories, which have no order.
    """

    name: str
    label: str
    scores: Sequence[GroupScore]
    bins: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def metrics(self) -> list[str]:
        """Those on all lines, if any: a metric of some lines says the same of fewer."""
        return _of_most_lines([score.metric for score in self.scores])

    def numbers(self) -> dict[str, Any]:
        """Everything as plain values: by row and metric means and runs, a group after the other."""
        scores = [score for score in self.scores if score.metric in self.metrics]
        means: dict[str, dict[str, list[float]]] = {}
        runs: dict[str, dict[str, list[Sequence[float]]]] = {}
        for score in scores:
            means.setdefault(score.method, {}).setdefault(score.metric, []).append(
                score.spread.mean
            )
            runs.setdefault(score.method, {}).setdefault(score.metric, []).append(
                score.spread.values
            )
        return {
            "quantity": self.label,
            "bins": [
                {
                    "name": group,
                    **dict(zip(("from", "to"), self.bins.get(group, ()), strict=False)),
                    "lines": lines,
                }
                for group, lines in {score.group: score.lines for score in scores}.items()
            ],
            "mean": means,
            "runs": runs,
        }


def score_groups(
    by_group: Mapping[str, ItemScores], rows: Sequence[ItemRow], metrics: Sequence[str]
) -> list[GroupScore]:
    """The scores of rows in each group, where that has lines that a metric counts.

    Args:
        by_group: by group the scores of its lines.
        rows: of one test set.
        metrics: those without a test are passed over.
    """
    scores = []
    for group, group_scores in by_group.items():
        for metric in filter(is_tested, metrics):
            # All lines of a category may be in the training data.
            for row in (row for row in rows if group_scores.known(row.row, metric)):
                compared = row.baseline and group_scores.known(row.baseline, metric)
                test = (
                    compare_rows(group_scores, row.row, row.baseline, metric) if compared else None
                )
                owner = row.baseline if compared else row.row
                copies = group_scores.copies(owner, metric)
                spread = Spread.of(group_scores.values(row.row, owner, metric))
                size = len(copies), int(copies.sum())
                scores.append(GroupScore(group, *size, row.row, metric, spread, test))
    return scores


def score_categories(
    scores: ItemScores, rows: Sequence[ItemRow], metrics: Sequence[str]
) -> list[GroupScore]:
    """The score of each row in each category and metric, on each test set."""
    category_scores: list[GroupScore] = []
    for test_set in dict.fromkeys(row.test_set for row in rows):
        set_rows = [row for row in rows if row.test_set == test_set]
        names = [
            name
            for metric in filter(is_tested, metrics)
            for row in set_rows
            if scores.lines.seeds(row.row, metric)
            for name in scores.lines.categories(row.row, metric)[0]
        ]
        by_category = {name: scores.of_category(name) for name in names}
        category_scores += score_groups(by_category, set_rows, metrics)
    return category_scores


@dataclass(frozen=True)
class Quantity:
    """A number for each line of the test set.

    Attributes:
        name: part of a file's name.
        label: of the horizontal axis.
        values: the numbers.
    """

    name: str
    label: str
    values: tuple[int, ...]

    @cached_property
    def bins(self) -> list[tuple[int, int]]:
        """First and last value of each bin."""
        return make_bins(self.values)

    def break_down(
        self, outputs: Outputs, scores: ItemScores, rows: Sequence[ItemRow], metrics: Sequence[str]
    ) -> Breakdown:
        """The scores of rows, whose test set it is of, in each bin."""
        values = np.array(self.values)
        bins = {
            str(low) if low == high else f"{low}–{high}": (low, high) for low, high in self.bins
        }

        def between(low: int, high: int) -> Mask:
            chosen = (low <= values) & (values <= high)
            return lambda row, metric: chosen[outputs.counted(row, metric)]

        by_bin = {name: scores.of_lines(between(*ends)) for name, ends in bins.items()}
        groups = score_groups(by_bin, rows, _of_most_lines(metrics))
        return Breakdown(self.name, self.label, groups, bins)


def _of_most_lines(metrics: Sequence[str]) -> list[str]:
    """The metrics of all lines; of some lines where there are no others."""
    whole = [metric for metric in metrics if plain_name(metric) == metric]
    return list(dict.fromkeys(whole or metrics))


def make_bins(values: Sequence[int], most: int = BINS) -> list[tuple[int, int]]:
    """Ranges that hold all values, at most ``most``, of about equally many each."""
    bins: list[tuple[int, int]] = []
    left, held, low = len(values), 0, None
    for value, count in sorted(Counter(values).items()):
        low = value if low is None else low
        held += count
        if held * (most - len(bins)) >= left:
            bins.append((low, value))
            left, held, low = left - held, 0, None
    return bins


def find_quantities(plan: Plan, folder: Path) -> list[Quantity]:
    """Source length and, where there are trees, their depths; what cannot be read is left out.

    Lengths are tokens as the first row reads them.
    """
    first = plan.recipe.methods[0]
    references = located(first.target.test, folder)
    if not references.is_file():
        return []
    size = sum(1 for _ in read_lines(references))
    quantities = []
    try:
        sizes = TokenData(find_prefix(plan.data_folder(first, folder), "test", "source")).sizes
        label = f"length of the source (tokens of {first.name})"
        quantities.append(Quantity("source_length", label, tuple((sizes - 1).tolist())))
    except TreeSyntaxError:
        pass
    for side in ("source", "target"):
        notation = tree_format(plan.recipe, first, side)
        path = located(getattr(first, side).test, folder)
        depths = _depths(path, notation, side) if notation else []
        quantities.append(
            Quantity(f"{side}_depth", f"depth of the {side} tree (edges)", tuple(depths))
        )
    return [
        quantity
        for quantity in quantities
        if len(quantity.values) == size and len(quantity.bins) > 1
    ]


def _depths(path: Path, notation: str, side: str) -> list[int]:
    """The depth of each tree; nothing if the file cannot be read so."""
    try:
        if side == "source":
            return [_depth(tree) for tree in read_trees(path, notation)]
        # Scored line by line, so read line by line.
        return [_depth(get_format(notation).parse(line)) for line in read_lines(path)]
    except TreeSyntaxError:
        return []


def _depth(tree: Tree) -> int:
    return int(tree.depths.max(initial=0))


def draw_breakdowns(
    shown: Sequence[tuple[Breakdown, str]], lines: Lines, names: Mapping[str, str]
) -> Figure:
    """A panel for each breakdown and metric: means over seeds by group, the range of seeds as a bar.

    Args:
        shown: at least one; all have the same rows.
        lines: how methods are drawn, see :func:`treesyntax.study.report.curves.lines_of`.
        names: what methods are called in the legend, if not by their names.
    """
    from matplotlib.figure import Figure

    across = min(3 if len(shown) == 3 else 2, len(shown))
    down = -(-len(shown) // across)
    most = max(
        0 if breakdown.bins else len({score.group for score in breakdown.scores})
        for breakdown, _ in shown
    )
    wide, high = (max(4.2, 0.3 * most), 4.2) if most else (4.2, 3.0)
    figure = Figure(figsize=(wide * across + 0.6, high * down + 0.6), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False)
    for panel in axes.flat[len(shown) :]:
        panel.set_visible(False)
    for panel, (breakdown, metric) in zip(axes.flat, shown, strict=False):
        _draw_panel(panel, breakdown, metric, lines)
    handles, found_names = axes.flat[0].get_legend_handles_labels()
    labels = [names.get(name, name) for name in found_names]
    fitting = int(figure.get_figwidth() / (MARK + LETTER * max(map(len, labels))))
    columns = max(1, min(2 * across, fitting))
    figure.legend(handles, labels, loc="outside upper left", ncols=columns, frameon=False)
    return figure


def _draw_panel(panel: Any, breakdown: Breakdown, metric: str, lines: Lines) -> None:
    scores = [score for score in breakdown.scores if score.metric == metric]
    sizes = {score.group: score.lines for score in scores}
    groups, methods = list(sizes), list(dict.fromkeys(score.method for score in scores))
    for number, method in enumerate(methods):
        shift = SPREAD * ((number + 0.5) / len(methods) - 0.5)
        spreads = {score.group: score.spread for score in scores if score.method == method}
        positions = [groups.index(group) + shift for group in spreads]
        style = lines[method]
        if not breakdown.bins:  # nothing lies between two categories
            style = {**style, "linestyle": "none"}
        lows, highs = ([end(spread.values) for spread in spreads.values()] for end in (min, max))
        panel.vlines(positions, lows, highs, color=style["color"], linewidth=1)
        means = [spread.mean for spread in spreads.values()]
        panel.plot(positions, means, **style, markersize=5, label=method)
    between = "\n" if breakdown.bins else " "
    labels = [f"{group}{between}({size})" for group, size in sizes.items()]
    panel.set_xticks(range(len(labels)), labels, rotation=0 if breakdown.bins else 90)
    panel.set_xlabel(f"{breakdown.label}, (lines)")
    panel.set_ylabel(metric)
    panel.set_ylim(0, max(1.0, panel.get_ylim()[1]))
    plain_panel(panel, "y")
