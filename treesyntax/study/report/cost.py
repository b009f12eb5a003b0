"""Scores of methods against their costs: parameters, speed and memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from treesyntax.palette import plain_panel
from treesyntax.study.report.curves import Lines, told_apart
from treesyntax.study.report.table import Spread
from treesyntax.study.results.results import Result

if TYPE_CHECKING:  # matplotlib is loaded by those who draw
    from matplotlib.figure import Figure

AXES = {
    "parameters": "parameters",
    "pairs_per_second": "pairs/s in training",
    "peak_memory": "peak memory in training (MiB)",
}
"""The costs that are drawn where they are known, and their labels."""


@dataclass(frozen=True)
class Cost:
    """One method.

    Attributes:
        score: over seeds.
        costs: by the names of :data:`AXES`, means over those seeds where it is known.
    """

    score: Spread
    costs: Mapping[str, float]


def compute_costs(
    results: Sequence[Result], methods: Sequence[str], metric: str
) -> dict[str, Cost]:
    """The cost of each method that has results in a metric."""
    by_method: dict[str, list[Result]] = {}
    for result in results:
        if result.metric == metric:
            by_method.setdefault(result.method, []).append(result)
    cost_of = {}
    for method in methods:
        method_results = by_method.get(method)
        if not method_results:
            continue
        known = {
            name: [
                value for result in method_results if (value := getattr(result, name)) is not None
            ]
            for name in AXES
        }
        costs = {name: fmean(values) for name, values in known.items() if values}
        cost_of[method] = Cost(Spread.of([result.value for result in method_results]), costs)
    return cost_of


def cost_numbers(costs: Mapping[str, Cost], metric: str) -> dict[str, Any]:
    """Everything in the figure as plain values."""
    return {
        "metric": metric,
        "methods": {
            method: {"score": cost.score.mean, "sd": cost.score.sd, **cost.costs}
            for method, cost in costs.items()
        },
    }


def draw_costs(costs: Mapping[str, Cost], metric: str, lines: Lines) -> Figure:
    """A panel a cost: score over it, with the standard deviation over seeds as a bar.

    Args:
        costs: at least one method.
        metric: of the scores.
        lines: how methods are drawn, see :func:`treesyntax.study.report.curves.lines_of`; all alike
            where they cannot be told apart.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    apart = told_apart(lines, costs, "marker")
    shown = [name for name in AXES if any(name in cost.costs for cost in costs.values())]
    figure = Figure(figsize=(3.2 * len(shown) + 0.6, 3.4), layout="constrained")
    axes = figure.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for panel, name in zip(axes, shown, strict=True):
        known = {method: cost for method, cost in costs.items() if name in cost.costs}
        if not apart:
            _draw(panel, list(known.values()), name, fmt="o", color="0.3")
        else:
            for method, cost in known.items():
                style = {**lines[method], "linestyle": "none"}
                _draw(panel, [cost], name, label=method, **style)
        panel.margins(0.15)
        panel.set_xlabel(AXES[name])
        panel.xaxis.set_major_locator(MaxNLocator(4, integer=True, min_n_ticks=1))
        panel.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        plain_panel(panel)
    axes[0].set_ylabel(metric)
    if apart:
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper left", ncols=len(shown), frameon=False)
    return figure


def _draw(panel: Any, costs: Sequence[Cost], name: str, **style: Any) -> None:
    values = [cost.costs[name] for cost in costs]
    means, bars = ([cost.score.mean for cost in costs], [cost.score.sd or 0.0 for cost in costs])
    panel.errorbar(values, means, yerr=bars, markersize=7, **style)
