"""The colours, markers and styles of all figures, told apart with every kind of colour blindness."""

from __future__ import annotations

from typing import Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Of lines and points, by Okabe and Ito."""
AREAS = (*COLOURS[:6], "#F0E442", COLOURS[6], "#999999")
"""Of areas, which may be yellow."""
STYLES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (9, 3)), (0, (5, 1, 1, 1, 1, 1)), (0, (1, 4)))
MARKERS = "osD^v<>"
SEQUENTIAL = "viridis"
DIVERGING = "PuOr_r"


def line_of(number: int) -> dict[str, Any]:
    """Colour, marker and style of a line by its number; the colours recur, with other markers and styles.

    Points without lines are told apart by colour and marker, so no two of these pairs are alike.
    """
    again = number // len(COLOURS)
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[(number + again) % len(MARKERS)],
        "linestyle": STYLES[again % len(STYLES)],
    }


def plain_panel(panel: Any, grid: str = "both") -> None:
    """Give a panel the style of all figures: a faint grid, and no frame above and on the right."""
    panel.grid(alpha=0.25, axis=grid)
    panel.spines[["top", "right"]].set_visible(False)
