"""The parts of figures that several analyses draw, and how figures, numbers and tables are written."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from treesyntax.files import atomic_file, write_text
from treesyntax.study.results.figure_files import write_figure_files
from treesyntax.study.results.table_text import Table, latex_file

PANEL_COLUMNS = 3
_only_numbers: ContextVar[bool] = ContextVar("only_numbers", default=False)


@contextmanager
def numbers_only(wanted: bool) -> Iterator[None]:
    """Leave out the figures that are written inside, where that is wanted."""
    token = _only_numbers.set(wanted)
    try:
        yield
    finally:
        _only_numbers.reset(token)


FEW_NAMES = 10
"""With more names under a panel, three panels side by side have no room for them in a paper."""


def columns_for(names: Sequence[str]) -> int:
    """Panels side by side, with these names under each."""
    return PANEL_COLUMNS if len(names) <= FEW_NAMES else 2


def panel_grid(
    count: int,
    panel: tuple[float, float],
    margin: tuple[float, float],
    sharex: bool = False,
    columns: int = PANEL_COLUMNS,
) -> tuple[Figure, Any]:
    """A figure of ``count`` panels.

    Args:
        count: how many.
        panel: width and height of one, in inches.
        margin: width and height beside them.
        sharex: whether all have one horizontal axis; they always share the vertical one.
        columns: the most panels side by side.

    Returns:
        The figure and its axes, an array of rows and columns.
    """
    across = min(count, columns)
    down = -(-count // across)
    size = (panel[0] * across + margin[0], panel[1] * down + margin[1])
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(down, across, sharex=sharex, sharey=True, squeeze=False)
    for unused in axes.flat[count:]:
        unused.set_visible(False)
    return figure, axes


def write_figure(figure: Figure, folder: Path, name: str) -> None:
    """Write ``name.svg``, and PDF and PNG where they are asked for.

    Raises:
        InputError: if the folder cannot be written.
    """
    if not _only_numbers.get():
        write_figure_files(figure, folder / f"{name}.svg", name)


def write_numbers(numbers: dict[str, Any], folder: Path, name: str) -> None:
    """Write ``name.json``; arrays become lists, and NaN and infinity become null.

    Raises:
        InputError: if the folder cannot be written.
    """
    content = {key: _plain(value) for key, value in numbers.items()}
    with atomic_file(folder / f"{name}.json") as staged:
        staged.write_text(
            json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False), encoding="utf-8"
        )


def signed(value: float, plus: bool = False) -> str:
    """A figure of a table with two digits and a real minus; ``plus`` for that of a difference."""
    return (f"{value:+.2f}" if plus else f"{value:.2f}").replace("-", "−")


def write_table(table: Table, folder: Path, name: str) -> None:
    """Write a table for a page and for a paper, ``name.md`` and ``name.tex``.

    Raises:
        InputError: if the folder cannot be written.
    """
    write_text(folder / f"{name}.md", "\n".join(table.markdown()) + "\n")
    write_text(folder / f"{name}.tex", latex_file(table.latex()))


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
        values: [layers, rows, columns], NaN where there is no value.
        columns: name of each column.
        rows: name of each row, such as the heads.
        scale: name of the palette, lowest and highest value.
        labels: of the horizontal axis and of the colour bar.
    """
    height = max(0.3 * len(rows), 1.4) + 1.6
    figure, axes = panel_grid(len(values), (3.6, height), (0.9, 0.3))
    for layer, panel in zip(range(len(values)), axes.flat, strict=False):
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
    # Cells as vector shapes; lines of their own colour close the gaps between them.
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
    """The colour scale of heat maps, as vector shapes too."""
    bar = figure.colorbar(cells, ax=panels, shrink=0.9)
    solids: Any = bar.solids
    solids.set(rasterized=False, edgecolor="face")
    bar.set_label(label)


def name_ticks(panel: Any, names: Sequence[str]) -> None:
    """Slanted names under the columns of a heat map."""
    panel.set_xticks(range(len(names)), names)
    for label in panel.get_xticklabels():
        label.set(rotation=55, ha="right", rotation_mode="anchor")
