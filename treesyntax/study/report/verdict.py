"""The verdict of a study: the difference of each row to its baseline in the primary metric, and where
another metric says otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from treesyntax.metrics.conclusions import NOT_SHOWN
from treesyntax.palette import plain_panel
from treesyntax.study.report.curves import Lines
from treesyntax.study.report.pictures import Section
from treesyntax.study.report.table_notes import SIGNIFICANT, listed, sentence
from treesyntax.study.results.comparisons import Comparison, in_order

if TYPE_CHECKING:  # matplotlib is loaded by those who draw
    from matplotlib.figure import Figure

CONTROL = "0.6"
"""The grey of controls."""


def make_verdict(
    comparisons: Sequence[Comparison], lines: Lines, notes: Sequence[str] = ()
) -> Section | None:
    """What the study says of each row; None before anything is compared.

    Args:
        comparisons: in all metrics that are shown.
        lines: how rows are drawn, see :func:`treesyntax.study.report.curves.lines_of`.
        notes: below the figure.
    """
    primary = [comparison for comparison in comparisons if comparison.primary]
    if not primary:
        return None
    section = Section("verdict", "Verdict", verdict_text(comparisons), notes=[*notes])
    section.lines = [sentence(comparison) for comparison in primary if comparison.conclusion]
    if (figure := draw_verdict(primary, lines)) is not None:
        section.draw("verdict", figure, verdict_numbers(primary), verdict_caption(primary))
    return section


def verdict_text(comparisons: Sequence[Comparison]) -> str:
    """The rows with each conclusion in their primary metric, each with the other metrics that say otherwise."""
    concluded = [
        (comparison, comparison.conclusion)
        for comparison in comparisons
        if comparison.primary and comparison.conclusion
    ]
    texts = []
    for word in in_order([conclusion.word for _, conclusion in concluded]):
        for text in dict.fromkeys(
            str(conclusion) for _, conclusion in concluded if conclusion.word == word
        ):
            rows = [comparison for comparison, conclusion in concluded if str(conclusion) == text]
            for metric in dict.fromkeys(comparison.metric for comparison in rows):
                names = [
                    comparison.method + _otherwise(comparison, comparisons)
                    for comparison in rows
                    if comparison.metric == metric
                ]
                no_proof = ", which is no proof of equality" * (word == NOT_SHOWN)
                texts.append(f"{text.capitalize()} on {metric}{no_proof}: {', '.join(names)}.")
    return " ".join(texts)


def _otherwise(comparison: Comparison, comparisons: Sequence[Comparison]) -> str:
    """The differences of a row in other metrics that hold and are not what its primary metric says."""
    others = [
        f"{other.difference:+.2f} {SIGNIFICANT} on {other.metric}"
        for other in comparisons
        if (other.method, other.baseline) == (comparison.method, comparison.baseline)
        and other.significant
        and not other.primary
        and not (comparison.significant and comparison.better == other.better)
    ]
    if not others:
        return ""
    is_primary = "which is not" if len(others) == 1 else "none of which is"
    return f" (but {listed(others)}, {is_primary} the primary metric)"


def verdict_caption(primary: Sequence[Comparison]) -> str:
    """How to read the figure."""
    tested = sum(comparison.in_family and comparison.p is not None for comparison in primary)
    controls = " Grey: controls." if any(comparison.control_of for comparison in primary) else ""
    return (
        f"Difference of each row to its baseline in {_metrics(primary)}, with its 95 % interval. Filled: shown to "
        f"differ, after Holm's correction for {tested} row{'s' * (tested != 1)}.{controls} Intervals are not corrected."
    )


def draw_verdict(primary: Sequence[Comparison], lines: Lines) -> Figure | None:
    """A line a row in its colour with its conclusion, the first on top; None where no row is tested.

    Rows with too few runs stay blank, a row whose scores do not vary at all is a point, and the points of
    those not shown to differ are open. Controls are grey.
    """
    from matplotlib.figure import Figure

    if all(comparison.p is None for comparison in primary):
        return None
    figure = Figure(figsize=(7, 0.9 + 0.32 * len(primary)), layout="constrained")
    panel = figure.subplots()
    panel.axvline(0, color="0.2", linewidth=1)
    for position, comparison in enumerate(primary):
        if comparison.conclusion:
            side: dict[str, Any] = {
                "transform": panel.get_yaxis_transform(),
                "va": "center",
                "fontsize": 8,
            }
            panel.text(1.02, position, str(comparison.conclusion), **side)
        if comparison.p is None:
            continue
        colour = CONTROL if comparison.control_of else lines[comparison.method]["color"]
        if comparison.low is not None and comparison.high is not None:
            panel.hlines(position, comparison.low, comparison.high, color=colour, linewidth=2)
        fill = colour if comparison.significant and comparison.in_family else "white"
        panel.plot(
            comparison.difference, position, "o", color=colour, markerfacecolor=fill, markersize=7
        )
    panel.set_yticks(range(len(primary)), _labels(primary))
    panel.set_ylim(len(primary) - 0.5, -0.5)
    lower = {comparison.lower_is_better for comparison in primary}
    ways = [": ← better, worse →" if is_lower else ": ← worse, better →" for is_lower in lower]
    better = ways[0] if len(ways) == 1 else ""
    panel.set_xlabel(f"difference in {_metrics(primary)} (points){better}")
    plain_panel(panel, "x")
    panel.spines["left"].set_visible(False)
    panel.tick_params(axis="y", length=0)
    return figure


def _metrics(primary: Sequence[Comparison]) -> str:
    return " or ".join(dict.fromkeys(comparison.metric for comparison in primary))


def _labels(primary: Sequence[Comparison]) -> list[str]:
    """The rows, with their baselines where these are several, and the runs where they are too few."""
    several = len({comparison.baseline for comparison in primary}) > 1
    return [
        comparison.method
        + (f" − {comparison.baseline}" if several else "")
        + (f" ({min(comparison.runs)} of {comparison.seeds} runs)" if comparison.p is None else "")
        for comparison in primary
    ]


def verdict_numbers(primary: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Everything in the figure as plain values."""
    names = ("method", "baseline", "metric", "difference", "low", "high", "holm_p", "significant")
    return [
        {name: getattr(comparison, name) for name in names}
        | {"conclusion": comparison.conclusion and asdict(comparison.conclusion)}
        for comparison in primary
    ]
