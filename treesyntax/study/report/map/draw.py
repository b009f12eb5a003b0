"""A map drawn: a heat map, and the same as a table."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from treesyntax.study.report.map.cells import Cell, grey, read_cells
from treesyntax.study.report.table_notes import WOULD_FIND
from treesyntax.study.results.figure_files import write_figure_files

if TYPE_CHECKING:  # matplotlib is loaded by those who draw
    from matplotlib.figure import Figure

SIGNIFICANT = "†"
STRONGEST = "strongest sequence"
GREY = "0.88"
WIDEST = 60.0
"""Points of difference with the deepest colour."""

LEGEND = (
    "Conclusion on each row and its difference to the strongest plain row, in points with 95 % interval. Coloured and "
    f"{SIGNIFICANT}: holds after correction over the row's test sets. Grey: tells nothing. Blank: not tested."
)


def draw_file(path: Path) -> Path:
    """Draw a map.csv as map.svg beside it; returns that file.

    Raises:
        InputError: as :func:`treesyntax.study.report.map.cells.read_cells`.
    """
    drawing = path.with_suffix(".svg")
    write_figure_files(draw_map(read_cells(path)), drawing)
    return drawing


def order_of(cells: Sequence[Cell]) -> tuple[list[str], list[str]]:
    """Rows and test sets in the order of their first cells."""
    tests = list(dict.fromkeys(cell.test_set for cell in cells))
    rows = list(dict.fromkeys(cell.row for cell in cells))
    return rows, tests


def draw_map(cells: Sequence[Cell]) -> Figure:
    """Test sets across, rows down. At least one cell."""
    from matplotlib import colormaps
    from matplotlib.colors import TwoSlopeNorm
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    rows, tests = order_of(cells)
    find, flat = _would_find(cells), grey(cells)
    last = len(rows) + 1 if any(find.values()) else len(rows)
    figure = Figure(
        figsize=(1.6 + 1.25 * len(tests), 0.9 + 0.56 * (last + 1)), layout="constrained"
    )
    figure.patch.set_facecolor("white")
    panel = figure.subplots()
    colours, norm = colormaps["PuOr"], TwoSlopeNorm(0, -WIDEST, WIDEST)
    for x, name in enumerate(tests):
        if name in flat:
            panel.add_patch(
                Rectangle((x - 0.5, -0.5), 1, last + 1, facecolor=GREY, edgecolor="none")
            )
        if last > len(rows):
            panel.text(x, last, find[name], ha="center", va="center", fontsize=7)
    for cell in cells:
        x, y = tests.index(cell.test_set), rows.index(cell.row) + 1
        if cell.difference is None:
            panel.text(
                x, 0, f"{_spread(cell)}\n{cell.baseline}", ha="center", va="center", fontsize=7
            )
            panel.text(x, y, "=", ha="center", va="center", fontsize=8, color="0.4")
        if cell.p is None:
            panel.text(x, y, cell.conclusion, ha="center", va="center", fontsize=6, color="0.45")
            continue
        marked = cell.significant and cell.test_set not in flat
        if marked:
            face = colours(norm(max(-WIDEST, min(WIDEST, cell.difference or 0.0))))
            panel.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=face, edgecolor="none"))
        dark = marked and abs(cell.difference or 0.0) > 0.6 * WIDEST
        colour = "white" if dark else "black" if marked else "0.45"
        panel.text(x, y - 0.22, f"{cell.difference:+.1f}{SIGNIFICANT if marked else ''}",
                   ha="center", va="center", fontsize=8, color=colour)  # fmt: skip
        interval = "" if cell.low is None else f"{cell.low:+.1f} to {cell.high:+.1f}"
        panel.text(x, y + 0.3, cell.conclusion, ha="center", va="center", fontsize=6, color=colour)
        panel.text(x, y + 0.05, interval, ha="center", va="center", fontsize=6, color=colour)
    panel.set_xlim(-0.5, len(tests) - 0.5)
    panel.set_ylim(last + 0.5, -0.5)
    panel.set_xticks(range(len(tests)), [name.replace("_", "\n", 1) for name in tests], fontsize=8)
    panel.set_yticks(
        range(last + 1), [STRONGEST, *rows, *[WOULD_FIND] * (last - len(rows))], fontsize=8
    )
    panel.xaxis.tick_top()
    panel.tick_params(length=0)
    panel.set_xticks([x - 0.5 for x in range(1, len(tests))], minor=True)
    panel.set_yticks([y + 0.5 for y in range(last)], minor=True)
    panel.grid(which="minor", color="0.9")
    panel.tick_params(which="minor", length=0)
    panel.spines[:].set_visible(False)
    return figure


def table_rows(cells: Sequence[Cell]) -> list[list[str]]:
    """The same as a table with a header: means of the plain row first, then differences with intervals."""
    rows, tests = order_of(cells)
    found = {(cell.row, cell.test_set): cell for cell in cells}
    plain = {cell.test_set: cell for cell in cells if cell.difference is None}
    table = [["row", *tests]]
    table.append([STRONGEST, *(_mean(plain[name]) if name in plain else "" for name in tests)])
    flat = grey(cells)
    table += [[row, *(_text(found.get((row, name)), flat) for name in tests)] for row in rows]
    find = _would_find(cells)
    return table + [[WOULD_FIND, *map(find.__getitem__, tests)]] * any(find.values())


def _would_find(cells: Sequence[Cell]) -> dict[str, str]:
    """By test set the smallest differences that 80 % of such studies find; "" where none is known."""
    find = dict.fromkeys((cell.test_set for cell in cells), "")
    for name in find:
        known = [
            cell.smallest for cell in cells if cell.test_set == name if cell.smallest is not None
        ]
        ends = dict.fromkeys(f"{end:.1f}" for end in (min(known), max(known))) if known else ()
        find[name] = " to ".join(ends)
    return find


def _mean(cell: Cell) -> str:
    return f"{_spread(cell)} ({cell.baseline}, {cell.runs} runs)"


def _spread(cell: Cell) -> str:
    return f"{cell.mean:.1f} ± {cell.sd or 0.0:.1f}"


def _text(cell: Cell | None, flat: Collection[str]) -> str:
    if cell is None or cell.p is None:
        return "=" if cell and cell.difference is None else cell.conclusion if cell else ""
    mark = SIGNIFICANT if cell.significant and cell.test_set not in flat else ""
    interval = "" if cell.low is None else f" [{cell.low:+.1f}, {cell.high:+.1f}]"
    return f"{cell.difference:+.1f}{mark}{interval} {cell.conclusion}".rstrip()
