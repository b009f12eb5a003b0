"""The cells of a map: each row on each test set against the strongest plain row there.

A baseline that is weaker than it need be makes any row look good. A recipe names its plain rows under
``strongest``, and on each test set the others are compared with the one that scores highest there.
Such hindsight can only favour the plain side, so a row that is better is better than all plain rows.
One that is worse is not thereby worse than each. Validation loss would be no judge: where training leaves the
rule open, plain rows with the same loss are 50 points apart.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from treesyntax.errors import InputError
from treesyntax.metrics.runs import LEVEL, compare_runs
from treesyntax.metrics.statistics import holm
from treesyntax.study.report.table import Spread
from treesyntax.study.results.domains import Domain, short_name
from treesyntax.study.results.item_scores import ItemScores
from treesyntax.study.results.rows import ItemRow

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
        holm_p: ``p``, corrected for all cells of the map.
        items: distinct test items.
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

    @property
    def significant(self) -> bool:
        """Whether the difference holds over runs and items after correction for all cells."""
        return self.holm_p is not None and self.holm_p < LEVEL


def make_cells(scores: ItemScores, rows: Sequence[ItemRow]) -> list[Cell]:
    """The cells of a study that has several test sets, of those on which a plain row has 3 runs."""
    domains = {row.row: Domain(row.test_set, row.system) for row in rows}
    return corrected_cells([
        make_cell(scores, row.row, row.strongest, row.primary, domains)
        for test_set in dict.fromkeys(row.test_set for row in rows)
        for row in rows
        if row.strongest and row.test_set == test_set
    ])  # fmt: skip


def corrected_cells(cells: Sequence[Cell]) -> list[Cell]:
    """The same with p-values corrected for all cells."""
    tested = [cell.p for cell in cells if cell.p is not None]
    corrected = iter(holm(tested))
    return [cell if cell.p is None else replace(cell, holm_p=next(corrected)) for cell in cells]


def make_cell(
    scores: ItemScores, row: str, baseline: str, metric: str, domains: Mapping[str, Domain]
) -> Cell:
    """The cell of a row, its p-value not yet corrected."""
    copies = scores.copies(baseline, metric)
    own, other = (scores.table(name, baseline, metric) for name in (row, baseline))
    spread = Spread.of((copies @ own / copies.sum()).tolist())
    test = compare_runs(own, other, copies, few_items=True)
    low, high, p = (None if np.isnan(x) else x for x in (test.low, test.high, test.p))
    cell = Cell(
        short_name(domains[row].name), domains[row].system, metric, spread.mean, spread.sd, test.runs[0],
        domains[baseline].system, test.runs[1], test.difference, low, high, p, None, test.items,
    )  # fmt: skip
    alone = row == baseline
    return replace(cell, difference=None, low=None, high=None, p=None) if alone else cell


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
                Cell(**{field.name: _value(field.type, line[field.name]) for field in fields(Cell)})
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
