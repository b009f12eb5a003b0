"""The differences of rows from their baselines as texts: intervals, p, runs, items."""

from __future__ import annotations

from treesyntax.study.results.comparisons import Comparison

COMPARISON_HEADER = (
    "row", "baseline", "metric", "difference", "95 % interval", "p after Holm", "runs", "items",
    "found in 80 %", "p on other lines",
)  # fmt: skip


def comparison_cells(one: Comparison) -> list[str]:
    """A line of the table; what there is no verdict on is a dash."""
    interval = "–" if one.low is None else f"{one.low:+.2f} to {one.high:+.2f}"
    items = str(one.items) if one.items == one.lines else f"{one.items} ({one.lines} lines)"
    return [
        one.method, one.baseline, one.metric, f"{one.difference:+.2f}", interval,
        "–" if one.holm_p is None else _p(one.holm_p), f"{one.runs[0]} and {one.runs[1]}", items,
        "–" if one.smallest is None else f"{one.smallest:.2f}", _p(one.checkpoint_p),
    ]  # fmt: skip


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
