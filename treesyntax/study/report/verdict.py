"""The verdict of a study: the difference of each row to its baseline in the primary metric."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treesyntax.metrics import LOWER_IS_BETTER, UNSEEN
from treesyntax.metrics.runs import FEWEST_RUNS
from treesyntax.study.report.pictures import Section, write_picture
from treesyntax.study.results.comparisons import Comparison

if TYPE_CHECKING:  # matplotlib is loaded by those who draw
    from matplotlib.figure import Figure

BETTER, WORSE, OPEN = "#0072B2", "#D55E00", "#666666"


def make_verdict(folder: Path, comparisons: Sequence[Comparison]) -> Section | None:
    """What the study says of each row in its primary metric; None before anything is compared."""
    primary = [one for one in comparisons if one.primary]
    if not primary:
        return None
    section = Section("verdict", "Verdict", verdict_text(primary))
    if (figure := draw_verdict(primary)) is not None:
        caption, numbers = verdict_caption(primary), verdict_numbers(primary)
        section.pictures.append(write_picture(folder, "verdict", figure, numbers, caption))
    return section


def verdict_text(primary: Sequence[Comparison]) -> str:
    """The rows that are better, worse and not shown to differ, and those without a verdict."""
    kinds: dict[str, list[str]] = {}
    for one in primary:
        if one.low is None:
            kind = f"No verdict, with fewer than {FEWEST_RUNS} runs of the row or its baseline"
        elif one.significant:
            kind = "Better than the baseline" if one.better else "Worse than the baseline"
        else:
            kind = "Not shown to differ, which is no proof of equality"
        kinds.setdefault(kind, []).append(one.method)
    return " ".join(f"{kind}: {', '.join(rows)}." for kind, rows in kinds.items())


def verdict_caption(primary: Sequence[Comparison]) -> str:
    """How to read the figure."""
    tested = sum(one.low is not None for one in primary)
    return (
        f"Difference of each row to its baseline in {_metrics(primary)}, with its 95 % interval "
        f"over training runs and test items. Filled: differs after Holm's correction for {tested} "
        "rows. The intervals are not corrected, so one of several may miss 0 by chance."
    )


def draw_verdict(primary: Sequence[Comparison]) -> Figure | None:
    """A line a row, the first on top; None where no row has an interval.

    Rows with too few runs for one stay blank.
    """
    from matplotlib.figure import Figure

    if all(one.low is None for one in primary):
        return None
    figure = Figure(figsize=(7, 0.9 + 0.32 * len(primary)), layout="constrained")
    panel = figure.subplots()
    panel.axvline(0, color="0.2", linewidth=1)
    for place, one in enumerate(primary):
        if one.low is None or one.high is None:
            continue
        colour = OPEN if not one.significant else BETTER if one.better else WORSE
        panel.hlines(place, one.low, one.high, color=colour, linewidth=2)
        fill = colour if one.significant else "white"
        panel.plot(one.difference, place, "o", color=colour, markerfacecolor=fill, markersize=7)
    panel.set_yticks(range(len(primary)), _labels(primary))
    panel.set_ylim(len(primary) - 0.5, -0.5)
    lower = {one.metric.removesuffix(UNSEEN) in LOWER_IS_BETTER for one in primary}
    ways = [": ← better, worse →" if one else ": ← worse, better →" for one in lower]
    better = ways[0] if len(ways) == 1 else ""
    panel.set_xlabel(f"difference in {_metrics(primary)} (points){better}")
    panel.grid(alpha=0.25, axis="x")
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.tick_params(axis="y", length=0)
    return figure


def _metrics(primary: Sequence[Comparison]) -> str:
    return " or ".join(dict.fromkeys(one.metric for one in primary))


def _labels(primary: Sequence[Comparison]) -> list[str]:
    """The rows, with their baselines where these are several, and the runs where they are too few."""
    several = len({one.baseline for one in primary}) > 1
    return [
        one.method
        + (f" − {one.baseline}" if several else "")
        + (f" ({min(one.runs)} of {one.seeds} runs)" if one.low is None else "")
        for one in primary
    ]


def verdict_numbers(primary: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Everything in the figure as plain values."""
    names = ("method", "baseline", "metric", "difference", "low", "high", "holm_p", "significant")
    return [{name: getattr(one, name) for name in names} for one in primary]
