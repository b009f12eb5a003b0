"""The cells of a map: each row on each test set against the strongest plain row there.

A baseline that is weaker than it need be makes any row look good. A recipe names its plain rows under
``strongest``, and on each test set the others are compared with the one that scores highest there.
Such hindsight can only favour the plain side, so a row that is better is better than all plain rows.
One that is worse is not thereby worse than each. Validation loss would be no judge: where training leaves the
rule open, plain rows with the same loss are 50 points apart.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, astuple, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treesyntax.errors import InputError
from treesyntax.metrics import LOWER_IS_BETTER, plain_name
from treesyntax.metrics.conclusions import WORDS
from treesyntax.metrics.runs import LEVEL
from treesyntax.study.report.table import Spread
from treesyntax.study.report.table_notes import (
    HIGHEST,
    LOWEST,
    SIGNIFICANT,
    WOULD_FIND,
    ends_of,
)
from treesyntax.study.results.comparisons import (
    NO_VERDICT,
    Comparison,
    compare_rows,
    concluded,
    holm_by_family,
)
from treesyntax.study.results.domains import short_name
from treesyntax.study.results.figure_files import write_figure_files
from treesyntax.study.results.item_scores import ItemScores
from treesyntax.study.results.rows import ItemRow, without_trees
from treesyntax.study.results.table_text import Table

if TYPE_CHECKING:  # matplotlib is loaded by those who draw
    from matplotlib.figure import Figure

MAP_FILE = "map.csv"


@dataclass(frozen=True)
class Cell:
    """A row on a test set.

    Attributes:
        test_set: its name in the study's axes.
        row: the name of the row without that.
        metric: the primary one; mean, deviation and difference are in its points.
        runs: training runs of the row.
        baseline: the strongest plain row on this test set.
        baseline_runs: its training runs.
        difference: mean less that of the baseline; None for the baseline itself.
        low: lower end of the 95 % interval of the difference over runs and items; None as ``p``, and
            where nothing varies.
        high: its upper end.
        p: of no difference, uncorrected; None for the baseline and with fewer than 3 runs a side.
        holm_p: ``p``, corrected for all test sets of the row.
        items: distinct test items.
        smallest: the true difference that this many runs and items find in 80 % of cases; None as ``low``.
        conclusion: what the row shows here, in a word; "" for the baseline, for controls and in older files.
        why: the reason.
        control: the row that decided whether syntax helps, "" for none.
        control_difference: mean less that of the control; None without one.
        control_p: of no difference from the control, corrected for all test sets of the row.
        no_verdict: the word where scores or runs allow no verdict, of a control too; "" in older files.
    """

    test_set: str
    row: str
    metric: str
    mean: float
    sd: float | None
    runs: int
    baseline: str
    baseline_runs: int
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    holm_p: float | None
    items: int
    smallest: float | None = None
    conclusion: str = ""
    why: str = ""
    control: str = ""
    control_difference: float | None = None
    control_p: float | None = None
    no_verdict: str = ""

    @property
    def tested(self) -> bool:
        """Whether there is a verdict."""
        without = self.no_verdict or self.conclusion.startswith(NO_VERDICT)
        return self.p is not None and not without

    @property
    def significant(self) -> bool:
        """Whether there is a verdict and the difference holds after correction for all test sets."""
        return self.tested and self.holm_p is not None and self.holm_p < LEVEL


def make_cells(scores: ItemScores, rows: Sequence[ItemRow]) -> list[Cell]:
    """The cells of a study that has several test sets, of those on which a plain row has 3 runs.

    P-values are corrected for the test sets of each row: one family for each method.
    """
    shown = [
        row
        for test_set in dict.fromkeys(row.test_set for row in rows)
        for row in rows
        if row.strongest and row.test_set == test_set
    ]
    compared = [
        compare_rows(scores, row.row, row.strongest, row.primary, row.control_of) for row in shown
    ]
    p_values = [
        None if row.row == row.strongest else comparison.p
        for row, comparison in zip(shown, compared, strict=True)
    ]
    holm_p = holm_by_family([row.system for row in shown], p_values)
    tested = [
        replace(
            comparison,
            no_trees=without_trees(rows, row.row, row.strongest),
            p=p,
            holm_p=corrected,
        )
        for row, comparison, p, corrected in zip(shown, compared, p_values, holm_p, strict=True)
    ]
    compared = concluded(
        scores,
        tested,
        rows,
        ["" if row.row == row.strongest or row.control_of else row.system for row in shown],
    )
    systems = {row.row: row.system for row in rows}
    return [
        _cell(scores, row, comparison, systems)
        for row, comparison in zip(shown, compared, strict=True)
    ]


def _cell(
    scores: ItemScores, row: ItemRow, comparison: Comparison, systems: Mapping[str, str]
) -> Cell:
    spread = Spread.of(scores.values(row.row, row.strongest, row.primary))
    cell = Cell(
        test_set=short_name(row.test_set), row=row.system, metric=row.primary,
        mean=spread.mean, sd=spread.sd, runs=comparison.runs[0],
        baseline=systems[row.strongest], baseline_runs=comparison.runs[1],
        difference=comparison.difference, low=comparison.low, high=comparison.high,
        p=comparison.p, holm_p=comparison.holm_p,
        items=comparison.items, smallest=comparison.smallest, no_verdict=comparison.no_verdict,
    )  # fmt: skip
    if row.row == row.strongest:
        return replace(cell, difference=None, low=None, high=None, smallest=None)
    if (word := comparison.conclusion) is None:
        return cell
    return replace(
        cell, conclusion=str(word), why=word.why, control=systems.get(word.control, ""),
        control_difference=word.control_difference, control_p=word.control_p,
    )  # fmt: skip


def method_lines(cells: Sequence[Cell]) -> list[str]:
    """For each method in a line on which test sets it shows what."""
    lines = []
    for name in dict.fromkeys(cell.row for cell in cells):
        row_cells = [cell for cell in cells if cell.row == name and cell.conclusion]
        words = sorted({cell.conclusion for cell in row_cells}, key=_order)
        texts = [
            f"{word} on {', '.join(cell.test_set for cell in row_cells if cell.conclusion == word)}"
            for word in words
        ]
        if texts:
            lines.append(f"{name}: {'; '.join(texts)}")
    return lines


def _order(text: str) -> int:
    """The place of a conclusion, which may say after how many updates, in the order of words."""
    return next((at for at, word in enumerate(WORDS) if text.startswith(word)), len(WORDS))


def grey(cells: Sequence[Cell]) -> set[str]:
    """The test sets on which all rows are on the floor or at the ceiling, which tells nothing of methods."""
    columns: dict[str, list[float]] = {}
    for cell in cells:
        if plain_name(cell.metric) not in LOWER_IS_BETTER:
            columns.setdefault(cell.test_set, []).append(cell.mean)
    return {name for name, means in columns.items() if max(means) < LOWEST or min(means) > HIGHEST}


def csv_rows(cells: Sequence[Cell]) -> Iterator[tuple[object, ...]]:
    """A header and a line a cell, in full; empty where there is nothing."""
    yield tuple(field.name for field in fields(Cell))
    yield from map(astuple, cells)


def read_cells(path: Path) -> list[Cell]:
    """The cells that a report wrote.

    Raises:
        InputError: if the file is not the map of a report.
    """
    remedy = f"give the {MAP_FILE} that treesyntax report wrote"
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            lines = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(path, None, f"cannot be read: {error}", remedy) from None
    cells = []
    for number, line in enumerate(lines, start=2):
        try:
            cells.append(
                Cell(
                    **{
                        field.name: _value(field.type, line[field.name])
                        for field in fields(Cell)
                        if field.name in line or field.default is MISSING
                    }
                )
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(path, number, f"is no cell of a map: {error}", remedy) from None
    if not cells:
        raise InputError(path, None, "holds no cell of a map", remedy)
    return cells


def _value(kind: object, text: str) -> Any:
    if kind == "float | None" and not text:
        return None
    return {"str": str, "int": int}.get(str(kind), float)(text)


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
        InputError: as :func:`treesyntax.study.report.map.read_cells`.
    """
    drawing = path.with_suffix(".svg")
    write_figure_files(draw_map(read_cells(path)), drawing)
    return drawing


def order_of(cells: Sequence[Cell]) -> tuple[list[str], list[str]]:
    """Rows and test sets in the order of their first cells; without the rows that are the baseline wherever they stand."""
    tests = list(dict.fromkeys(cell.test_set for cell in cells))
    rows = list(dict.fromkeys(cell.row for cell in cells if cell.difference is not None))
    return rows, tests


def _baseline_name(cells: Sequence[Cell]) -> str:
    """The name of the first line: the baseline's where there is one alone."""
    names = {cell.baseline for cell in cells}
    return names.pop() if len(names) == 1 else STRONGEST


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
    first = _baseline_name(cells)
    colours, norm = colormaps["PuOr"], TwoSlopeNorm(0, -WIDEST, WIDEST)
    for x, name in enumerate(tests):
        if name in flat:
            panel.add_patch(
                Rectangle((x - 0.5, -0.5), 1, last + 1, facecolor=GREY, edgecolor="none")
            )
        if last > len(rows):
            panel.text(x, last, find[name], ha="center", va="center", fontsize=7)
    for cell in cells:
        x = tests.index(cell.test_set)
        if cell.difference is None:
            text = f"{_spread(cell)}\n{cell.baseline}" if first == STRONGEST else _spread(cell)
            panel.text(x, 0, text, ha="center", va="center", fontsize=7)
            if cell.row not in rows:
                continue
            panel.text(
                x, rows.index(cell.row) + 1, "=", ha="center", va="center", fontsize=8, color="0.4"
            )
        y = rows.index(cell.row) + 1
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
        range(last + 1), [first, *rows, *[WOULD_FIND] * (last - len(rows))], fontsize=8
    )
    panel.xaxis.tick_top()
    panel.tick_params(length=0)
    panel.set_xticks([x - 0.5 for x in range(1, len(tests))], minor=True)
    panel.set_yticks([y + 0.5 for y in range(last)], minor=True)
    panel.grid(which="minor", color="0.9")
    panel.tick_params(which="minor", length=0)
    panel.spines[:].set_visible(False)
    return figure


def map_table(cells: Sequence[Cell]) -> Table:
    """The same as a table: means of the plain row first, then differences with intervals."""
    rows, tests = order_of(cells)
    cell_of = {(cell.row, cell.test_set): cell for cell in cells}
    plain = {cell.test_set: cell for cell in cells if cell.difference is None}
    lines = [
        [_baseline_name(cells), *(_mean(plain[name]) if name in plain else "" for name in tests)]
    ]
    flat = grey(cells)
    lines += [[row, *(_text(cell_of.get((row, name)), flat) for name in tests)] for row in rows]
    find = _would_find(cells)
    lines += [[WOULD_FIND, *map(find.__getitem__, tests)]] * any(find.values())
    return Table("", ["row", *tests], lines)


def _would_find(cells: Sequence[Cell]) -> dict[str, str]:
    """By test set the smallest differences that 80 % of such studies find, without controls as in the table; "" for
    none. Older files do not tell controls: there all count."""
    ranges = {}
    for name in dict.fromkeys(cell.test_set for cell in cells):
        column = [cell for cell in cells if cell.test_set == name]
        compared = [cell for cell in column if cell.conclusion] or column
        ranges[name] = ends_of([cell.smallest for cell in compared], 1)
    return ranges


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
