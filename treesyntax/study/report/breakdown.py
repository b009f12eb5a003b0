"""Scores of the test set by length of the source and by depth of the tree.

The lines of the test set are put into a few bins of about equal size, the same for all methods, and
each metric is computed over the lines of a bin, as over a whole test set.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from treesyntax.data.token_files import TokenData, find_prefix
from treesyntax.errors import TreeSyntaxError
from treesyntax.files import read_lines
from treesyntax.metrics import is_readable, plain_name, score_of_lines
from treesyntax.study.report.curves import Lines
from treesyntax.study.results.outputs import Outputs, notation_of
from treesyntax.study.results.results import Result
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import Run, located
from treesyntax.trees.formats import get_format, read_trees
from treesyntax.trees.tree import Tree

if TYPE_CHECKING:  # matplotlib is loaded by those who draw
    from matplotlib.figure import Figure

BINS = 5
SPLIT = "test"
MARK, LETTER = 0.5, 0.085
"""Width of a legend's mark and of a letter, in inches."""
SPREAD = 0.5
"""Width over which the marks of one bin are spread, of the distance between bins."""


@dataclass(frozen=True)
class Quantity:
    """A number for each line of the test set.

    Attributes:
        name: part of a file's name.
        label: of the horizontal axis.
        values: the numbers.
        names: of categories, which have no order: a value is then the index of one.
    """

    name: str
    label: str
    values: tuple[int, ...]
    names: tuple[str, ...] = ()

    @cached_property
    def bins(self) -> list[tuple[int, int]]:
        """First and last value of each bin."""
        if self.names:
            return [(place, place) for place in range(len(self.names))]
        return make_bins(self.values)

    def bin_name(self, place: int) -> str:
        """A bin in words."""
        low, high = self.bins[place]
        if self.names:
            return self.names[place]
        return str(low) if low == high else f"{low}–{high}"

    def lines(self, place: int) -> list[int]:
        """Numbers of the lines in a bin."""
        low, high = self.bins[place]
        return [line for line, value in enumerate(self.values) if low <= value <= high]


@dataclass(frozen=True)
class Breakdown:
    """The scores of all runs, bin by bin.

    Attributes:
        quantity: what bins are of.
        metrics: in the order of the recipe.
        scores: by method, for each seed the scores [bins] by metric.
        runs: by run its scores [bins] by metric.
    """

    quantity: Quantity
    metrics: tuple[str, ...]
    scores: Mapping[str, Sequence[Mapping[str, Sequence[float]]]]
    runs: Mapping[str, Mapping[str, Sequence[float]]]

    def means(self, method: str, metric: str) -> list[float]:
        """Of each bin over the seeds."""
        return [fmean(column) for column in self._columns(method, metric)]

    def ranges(self, method: str, metric: str) -> list[tuple[float, float]]:
        """Of each bin the lowest and the highest seed."""
        return [(min(column), max(column)) for column in self._columns(method, metric)]

    def _columns(self, method: str, metric: str) -> list[tuple[float, ...]]:
        return list(zip(*(seed[metric] for seed in self.scores[method]), strict=True))

    def numbers(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            "quantity": self.quantity.label,
            "bins": [
                {
                    **({"name": self.quantity.names[place]} if self.quantity.names else {}),
                    "from": low,
                    "to": high,
                    "lines": len(self.quantity.lines(place)),
                }
                for place, (low, high) in enumerate(self.quantity.bins)
            ],
            "mean": {
                method: {metric: self.means(method, metric) for metric in self.metrics}
                for method in self.scores
            },
            "runs": {name: {"scores": own} for name, own in self.runs.items()},
        }


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

    Lengths are tokens as the first row reads them. Source trees are read as the first row with
    trees does, target trees as binarize or a metric names their notation.
    """
    first = plan.recipe.methods[0]
    references = located(first.target.test, folder)
    if not references.is_file():
        return []
    size = sum(1 for _ in read_lines(references))
    found = []
    data = plan.data_folder(first, folder)
    try:
        sizes = TokenData(find_prefix(data, SPLIT, "source")).sizes
        label = f"length of the source (tokens of {first.name})"
        found.append(Quantity("source_length", label, tuple((sizes - 1).tolist())))
    except TreeSyntaxError:
        pass
    for side in ("source", "target"):
        notation = notation_of(plan, side)
        path = located(getattr(first, side).test, folder)
        depths = _depths(path, notation, side) if notation else []
        found.append(Quantity(f"{side}_depth", f"depth of the {side} tree (edges)", tuple(depths)))
    return [one for one in found if len(one.values) == size and len(one.bins) > 1]


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


def break_down(outputs: Outputs, results: Sequence[Result], quantity: Quantity) -> Breakdown | None:
    """The scores of all runs with results, bin by bin; None if there are none."""
    plan = outputs.plan
    # A metric of some lines says the same of fewer lines: here it is of all of them.
    scored = {result.metric for result in results}
    known = [one for one in plan.recipe.score if one in scored and is_readable(one)]
    recorded = {plain_name(one): one for one in sorted(known, key=len, reverse=True)}
    metrics = tuple(dict.fromkeys(map(plain_name, known)))
    first = plan.recipe.methods[0].target.test  # which the quantity is of
    runs: dict[str, dict[str, list[float]]] = {}
    by_row: dict[str, list[dict[str, list[float]]]] = {}
    bins = [quantity.lines(place) for place in range(len(quantity.bins))]
    for method in plan.recipe.methods if metrics else ():
        if method.target.test != first:
            continue
        for seed in outputs.seeds(method.name, recorded[metrics[0]]):
            run, size = Run(method, seed), len(quantity.values)
            if {len(outputs.references(method.name)), len(outputs.text(outputs.output(run)))} != {
                size
            }:
                continue
            own = {}
            for metric in metrics:
                statistics = outputs.statistics(method.name, seed, metric)
                own[metric] = [score_of_lines(metric, statistics[lines]) for lines in bins]
            runs[run.name] = own
            by_row.setdefault(method.name, []).append(own)
    return Breakdown(quantity, metrics, by_row, runs) if by_row else None


def draw_breakdowns(
    shown: Sequence[tuple[Breakdown, str]], lines: Lines, names: Mapping[str, str]
) -> Figure:
    """A panel for each breakdown and metric: means over seeds by bin, the range of seeds as a bar.

    Args:
        shown: at least one; all have the same rows.
        lines: how methods are drawn, see :func:`treesyntax.study.report.curves.lines_of`.
        names: what methods are called in the legend, if not by their names.
    """
    from matplotlib.figure import Figure

    across = min(3 if len(shown) == 3 else 2, len(shown))
    down = -(-len(shown) // across)
    most = max(len(found.quantity.names) for found, _ in shown)
    wide, high = (max(4.2, 0.3 * most), 4.2) if most else (4.2, 3.0)
    figure = Figure(figsize=(wide * across + 0.6, high * down + 0.6), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False)
    for panel in axes.flat[len(shown) :]:
        panel.set_visible(False)
    for panel, (found, metric) in zip(axes.flat, shown, strict=False):
        _draw_panel(panel, found, metric, lines)
    handles, found_names = axes.flat[0].get_legend_handles_labels()
    labels = [names.get(name, name) for name in found_names]
    fitting = int(figure.get_figwidth() / (MARK + LETTER * max(map(len, labels))))
    columns = max(1, min(2 * across, fitting))
    figure.legend(handles, labels, loc="outside upper left", ncols=columns, frameon=False)
    return figure


def _draw_panel(panel: Any, found: Breakdown, metric: str, lines: Lines) -> None:
    quantity = found.quantity
    between = " " if quantity.names else "\n"
    names = [
        f"{quantity.bin_name(place)}{between}({len(quantity.lines(place))})"
        for place in range(len(quantity.bins))
    ]
    for number, method in enumerate(found.scores):
        shift = SPREAD * ((number + 0.5) / len(found.scores) - 0.5)
        places = [place + shift for place in range(len(names))]
        style = lines[method]
        if quantity.names:  # nothing lies between two categories
            style = {**style, "linestyle": "none"}
        lows, highs = zip(*found.ranges(method, metric), strict=True)
        panel.vlines(places, lows, highs, color=style["color"], linewidth=1)
        panel.plot(places, found.means(method, metric), **style, markersize=5, label=method)
    panel.set_xticks(range(len(names)), names, rotation=90 if quantity.names else 0)
    panel.set_xlabel(f"{quantity.label}, (lines)")
    panel.set_ylabel(metric)
    panel.set_ylim(0, max(1.0, panel.get_ylim()[1]))
    panel.grid(alpha=0.25, axis="y")
    panel.spines[["top", "right"]].set_visible(False)
