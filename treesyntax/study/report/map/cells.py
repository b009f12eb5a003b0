"""The cells of a map: each row on each test set against the strongest plain row there.

A baseline that is weaker than it need be makes any row look good. A recipe names its plain rows under
``strongest``, and on each test set the others are compared with the one that scores highest there.
Such hindsight can only favour the plain side, so a row that is better is better than all plain rows.
One that is worse is not thereby worse than each. Validation loss would be no judge: where training leaves the
rule open, plain rows with the same loss are 50 points apart.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, astuple, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from treesyntax.errors import InputError
from treesyntax.metrics import LOWER_IS_BETTER, plain_name
from treesyntax.metrics.conclusions import WORDS
from treesyntax.metrics.runs import LEVEL, compare_runs
from treesyntax.metrics.statistics import holm
from treesyntax.study.report.table import Spread
from treesyntax.study.report.table_notes import HIGHEST, LOWEST
from treesyntax.study.results.conclusions import NO_VERDICT, conclude_all, weigh
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
        holm_p: ``p``, corrected for all test sets of the row.
        items: distinct test items.
        smallest: the true difference that this many runs and items find in 80 % of cases; None as ``low``.
        conclusion: what the row shows here, in a word; "" for the baseline, for controls and in older files.
        why: the reason.
        control: the row that decided whether syntax helps, "" for none.
        control_difference: mean less that of the control; None without one.
        control_p: of no difference from the control, corrected for all test sets of the row.
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

    @property
    def tested(self) -> bool:
        """Whether there is a verdict."""
        return self.p is not None and not self.conclusion.startswith(NO_VERDICT)

    @property
    def significant(self) -> bool:
        """Whether there is a verdict and the difference holds after correction for all test sets."""
        return self.tested and self.holm_p is not None and self.holm_p < LEVEL


def make_cells(scores: ItemScores, rows: Sequence[ItemRow]) -> list[Cell]:
    """The cells of a study that has several test sets, of those on which a plain row has 3 runs."""
    domains = {row.row: Domain(row.test_set, row.system) for row in rows}
    shown = [
        row
        for test_set in dict.fromkeys(row.test_set for row in rows)
        for row in rows
        if row.strongest and row.test_set == test_set
    ]
    cells = corrected_cells([
        make_cell(scores, row.row, row.strongest, row.primary, domains) for row in shown
    ])  # fmt: skip
    concluded = [
        at for at, row in enumerate(shown) if row.row != row.strongest and not row.control_of
    ]
    evidence = [
        weigh(
            scores, shown[at].row, shown[at].strongest, shown[at].controls, shown[at].primary,
            math.nan if (p := cells[at].holm_p) is None else p, shown[at].no_trees,
        )
        for at in concluded
    ]  # fmt: skip
    words = conclude_all(evidence, [cells[at].row for at in concluded])
    for at, word in zip(concluded, words, strict=True):
        control = domains[word.control].system if word.control else ""
        cells[at] = replace(
            cells[at], conclusion=str(word), why=word.why, control=control,
            control_difference=word.control_difference, control_p=word.control_p,
        )  # fmt: skip
    return cells


def corrected_cells(cells: Sequence[Cell]) -> list[Cell]:
    """The same with p-values corrected for the test sets of each row: one family for each method."""
    by_row: dict[str, Iterator[float]] = {
        name: iter(holm([cell.p for cell in cells if cell.row == name and cell.p is not None]))
        for name in {cell.row for cell in cells}
    }
    return [
        cell if cell.p is None else replace(cell, holm_p=next(by_row[cell.row])) for cell in cells
    ]


def method_lines(cells: Sequence[Cell]) -> list[str]:
    """For each method in a line on which test sets it shows what."""
    lines = []
    for name in dict.fromkeys(cell.row for cell in cells):
        own = [cell for cell in cells if cell.row == name and cell.conclusion]
        words = sorted({cell.conclusion for cell in own}, key=_place)
        texts = [
            f"{word} on {', '.join(cell.test_set for cell in own if cell.conclusion == word)}"
            for word in words
        ]
        if texts:
            lines.append(f"{name}: {'; '.join(texts)}")
    return lines


def _place(text: str) -> int:
    """The place of a conclusion, which may say after how many updates, in the order of words."""
    return next((at for at, word in enumerate(WORDS) if text.startswith(word)), len(WORDS))


def grey(cells: Sequence[Cell]) -> set[str]:
    """The test sets on which all rows are on the floor or at the ceiling, which tells nothing of methods."""
    columns: dict[str, list[float]] = {}
    for cell in cells:
        if plain_name(cell.metric) not in LOWER_IS_BETTER:
            columns.setdefault(cell.test_set, []).append(cell.mean)
    return {name for name, means in columns.items() if max(means) < LOWEST or min(means) > HIGHEST}


def make_cell(
    scores: ItemScores, row: str, baseline: str, metric: str, domains: Mapping[str, Domain]
) -> Cell:
    """The cell of a row, its p-value not yet corrected."""
    copies = scores.copies(baseline, metric)
    own, other = (scores.table(name, baseline, metric) for name in (row, baseline))
    spread = Spread.of((copies @ own / copies.sum()).tolist())
    test = compare_runs(own, other, copies, few_items=True)
    low, high, p, smallest = (
        None if np.isnan(x) else x for x in (test.low, test.high, test.p, test.smallest)
    )
    cell = Cell(
        short_name(domains[row].name), domains[row].system, metric, spread.mean, spread.sd, test.runs[0],
        domains[baseline].system, test.runs[1], test.difference, low, high, p, None, test.items, smallest,
    )  # fmt: skip
    alone = row == baseline
    return (
        replace(cell, difference=None, low=None, high=None, p=None, smallest=None)
        if alone
        else cell
    )


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
