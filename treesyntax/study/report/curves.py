"""The learning curves of a study: validation loss by update, a colour a method."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # matplotlib is loaded by those who draw
    from matplotlib.figure import Figure

Curve = Mapping[int, float]
"""Validation loss by update."""

# Okabe and Ito's colours, told apart with every kind of colour blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "--", "-.", ":")
MARKERS = "osD^v<>"


def line_of(number: int) -> dict[str, str]:
    """Colour, marker and style of a method's line by its number in the study.

    Points without lines are told apart by colour and marker, so no two of these pairs are alike.
    """
    again = number // len(COLOURS)
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[(number + again) % len(MARKERS)],
        "linestyle": STYLES[again % len(STYLES)],
    }


def mean_curve(curves: Sequence[Curve]) -> dict[int, float]:
    """The mean over seeds, at those updates that all curves have."""
    shared = set(curves[0]).intersection(*curves[1:]) if curves else set()
    return {update: fmean(curve[update] for curve in curves) for update in sorted(shared)}


def draw_curves(curves: Mapping[str, Sequence[Curve]]) -> Figure:
    """Draw the curves of each method's seeds: the mean as a thick line, each seed as a thin one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.8), layout="constrained")
    panel = figure.subplots()
    for number, (method, seeds) in enumerate(curves.items()):
        colour = COLOURS[number % len(COLOURS)]
        style = STYLES[number // len(COLOURS) % len(STYLES)]
        for curve in seeds:
            panel.plot(*_points(curve), colour, linewidth=0.7, alpha=0.5, linestyle=style)
        mean = mean_curve(seeds)
        panel.plot(*_points(mean), colour, linewidth=2, linestyle=style, label=method)
    panel.set_xlabel("update")
    panel.set_ylabel("validation loss (bits a target token)")
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)
    if 0 < len(curves) <= len(COLOURS) * len(STYLES):  # more cannot be told apart
        panel.legend(frameon=False)
    return figure


def _points(curve: Curve) -> tuple[list[int], list[float]]:
    updates = sorted(curve)
    return updates, [curve[update] for update in updates]


def svg_text(figure: Figure) -> str:
    """A figure as SVG with its text as text."""
    import matplotlib

    stream = io.StringIO()
    # A fixed salt makes the same figure the same file.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "treesyntax"}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def data_uri(svg: bytes) -> str:
    """An SVG file for an ``<img>`` of a page: as an image it runs no script and fetches nothing."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")
