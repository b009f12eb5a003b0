"""What all analyses share: how a figure and its numbers are written, and how a fault is told."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from treesyntax.errors import TreeSyntaxError
from treesyntax.files import atomic_file

SEQUENTIAL = "viridis"
DIVERGING = "PuOr_r"
"""Both are told apart with every kind of colour blindness."""

OKABE_ITO = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000",
)  # fmt: skip

PANEL_COLUMNS = 3


def run_analysis(name: str, work: Callable[[], None]) -> int:
    """The exit status of an analysis: a user's fault is one line on stderr and status 2."""
    try:
        work()
    except TreeSyntaxError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    return 0


def write_figure(figure: Figure, folder: Path, name: str) -> None:
    """Write ``name.svg``.

    Raises:
        InputError: if the folder cannot be written.
    """
    # Text as text, not as outlines: it can be read, searched and scaled. A fixed salt and no date
    # make the file the same each time.
    with (
        matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}),
        atomic_file(folder / f"{name}.svg") as staged,
    ):
        figure.savefig(staged, format="svg", metadata={"Date": None})


def write_numbers(numbers: dict[str, Any], folder: Path, name: str) -> None:
    """Write ``name.json``; arrays become lists, and numbers that are none become null.

    Raises:
        InputError: if the folder cannot be written.
    """
    content = {key: _plain(value) for key, value in numbers.items()}
    with atomic_file(folder / f"{name}.json") as staged:
        staged.write_text(
            json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False), encoding="utf-8"
        )


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def head_panels(
    values: NDArray[np.float64],
    columns: Sequence[str],
    rows: Sequence[str],
    scale: tuple[str, float, float],
    labels: tuple[str, str],
) -> Figure:
    """A heat map a layer.

    Args:
        values: [layers, rows, columns], NaN where there is none.
        columns: name of each column.
        rows: name of each row, heads for the most part.
        scale: name of the palette, lowest and highest value.
        labels: of the horizontal axis and of the colour bar.
    """
    layers = len(values)
    across = min(layers, PANEL_COLUMNS)
    down = -(-layers // across)
    size = (3.6 * across + 0.9, (max(0.3 * len(rows), 1.4) + 1.6) * down + 0.3)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(down, across, squeeze=False, sharey=True)
    for layer, panel in enumerate(axes.flat):
        if layer >= layers:
            panel.set_visible(False)
            continue
        image = heat_map(panel, values[layer], scale)
        panel.set_title(f"layer {layer + 1}")
        name_ticks(panel, columns)
        panel.set_yticks(range(len(rows)), rows)
        panel.set_xlabel(labels[0])
    for panel in axes[:, 0]:
        panel.set_ylabel("head")
    colour_bar(figure, image, axes, labels[1])
    return figure


def heat_map(panel: Any, values: NDArray[np.float64], scale: tuple[str, float, float]) -> Any:
    """One heat map on an axes, hatched where values are NaN."""
    palette, low, high = scale
    rows, columns = values.shape
    panel.patch.set(facecolor="white", edgecolor="0.6", hatch="////")
    # Cells as shapes, not as a picture; lines of their own colour close the gaps between them.
    cells = panel.pcolormesh(
        np.arange(columns + 1) - 0.5,
        np.arange(rows + 1) - 0.5,
        np.ma.masked_invalid(values),
        cmap=palette,
        vmin=low,
        vmax=high,
        edgecolor="face",
        linewidth=0.3,
    )
    panel.set_ylim(rows - 0.5, -0.5)
    return cells


def colour_bar(figure: Figure, cells: Any, panels: Any, label: str) -> None:
    """The scale of heat maps, beside them; it too as shapes."""
    bar = figure.colorbar(cells, ax=panels, shrink=0.9)
    solids: Any = bar.solids
    solids.set(rasterized=False, edgecolor="face")
    bar.set_label(label)


def name_ticks(panel: Any, names: Sequence[str]) -> None:
    """Slanted names under the columns of a heat map."""
    panel.set_xticks(range(len(names)), names)
    for label in panel.get_xticklabels():
        label.set(rotation=55, ha="right", rotation_mode="anchor")
