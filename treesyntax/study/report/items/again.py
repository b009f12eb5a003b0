"""The tables of a study, and the figure of its verdict, from results.jsonl and items.jsonl alone, without
data or outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from treesyntax.errors import InputError
from treesyntax.files import write_text
from treesyntax.metrics import columns_of
from treesyntax.metrics.line_file import unpack
from treesyntax.study.recipe.recipe import FIXED
from treesyntax.study.report.categories import score_categories
from treesyntax.study.report.curves import lines_by_row
from treesyntax.study.report.items.file import ITEMS_FILE, REMEDY, ItemRun, unpack_items
from treesyntax.study.report.items.parts import Part, join, only_comparable, read_part
from treesyntax.study.report.map.cells import MAP_FILE, csv_rows, make_cells, method_lines
from treesyntax.study.report.table import (
    StudyTable,
    make_console,
    make_row,
    print_line,
    print_table,
)
from treesyntax.study.report.table_files import categories_csv, csv_text, table_csv
from treesyntax.study.report.table_notes import unknown_endings
from treesyntax.study.report.verdict import draw_verdict
from treesyntax.study.report.worth import (
    WORTH_COLUMNS,
    WORTH_FILE,
    draw_worth,
    find_worth,
    worth_lines,
)
from treesyntax.study.results.current import comparable
from treesyntax.study.results.domains import Domain
from treesyntax.study.results.figure_files import write_figure_files
from treesyntax.study.results.item_scores import ItemScores
from treesyntax.study.results.outputs import NO_CATEGORIES, Categories
from treesyntax.study.results.results import RESULTS_FILE
from treesyntax.study.results.rows import Pair, is_tested
from treesyntax.study.results.significance import compare


class StoredLines:
    """The line statistics of a file, as :class:`treesyntax.study.results.item_scores.LineStatistics`.

    Raises:
        InputError: if the file holds others than the results.
    """

    def __init__(self, part: Part) -> None:
        self.paths, self.stored = part.paths, part.stored
        self.sizes = {result.key: result.n for result in part.results}
        self.some = next(iter(part.paths.values()), Path(ITEMS_FILE))
        self.kinds = {kind.name: kind for kind in part.stored.categories}
        self.runs: dict[Pair, dict[int, ItemRun]] = {}
        for run in part.stored.runs:
            known = self.runs.setdefault((run.row, run.metric), {})
            if (run.row, run.seed, run.metric) not in self.sizes or run.seed in known:
                raise self._refused(run, f"which {RESULTS_FILE} lacks, or has them twice")
            if not is_tested(run.metric) or run.copies not in self.stored.copies:
                raise self._refused(run, "which is no metric with a test, or lacks its copies")
            if run.categories and run.categories not in self.kinds:
                raise self._refused(run, "whose categories are lacking")
            known[run.seed] = run
        for name, metric in (pair for row in part.stored.rows for pair in row.compared()):
            if (name, metric) not in self.runs:
                cause = f"lacks the scores of {name} in {metric}"
                raise InputError(part.paths.get(name, self.some), None, cause, REMEDY)

    def seeds(self, row: str, metric: str) -> list[int]:
        """As of `LineStatistics`."""
        return [*self.runs.get((row, metric), ())]

    def statistics(self, row: str, seed: int, metric: str) -> NDArray[np.float64]:
        """As of `LineStatistics`."""
        run, columns = self.runs[row, metric][seed], columns_of(metric)
        try:
            return unpack(run.scores, self.sizes[row, seed, metric], columns)
        except ValueError as error:
            raise self._refused(run, f"which are damaged: {error}") from None

    def items(self, row: str, metric: str) -> NDArray[np.intp]:
        """As of `LineStatistics`."""
        seed, run = next(iter(self.runs[row, metric].items()))
        try:
            return unpack_items(self.stored.copies[run.copies], self.sizes[row, seed, metric])
        except ValueError as error:
            raise self._refused(run, f"whose copies are damaged: {error}") from None

    def categories(self, row: str, metric: str) -> Categories:
        """As of `LineStatistics`."""
        seed, run = next(iter(self.runs[row, metric].items()))
        if not run.categories:
            return NO_CATEGORIES
        kind = self.kinds[run.categories]
        try:
            places = unpack(kind.places, self.sizes[row, seed, metric], 1)[:, 0].astype(np.intp)
        except ValueError as error:
            raise self._refused(run, f"whose categories are damaged: {error}") from None
        return kind.names, places

    def refused(self, row: str, seed: int, metric: str, why: str) -> InputError:
        """As of `LineStatistics`."""
        return self._refused(self.runs[row, metric][seed], why)

    def _refused(self, run: ItemRun, why: str) -> InputError:
        cause = f"has scores of {run.row}-{run.seed} in {run.metric}, {why}"
        return InputError(self.paths.get(run.row, self.some), None, cause, REMEDY)


def tables_again(
    paths: Sequence[Path], out: Path | None = None, mix_versions: bool = False
) -> None:
    """Print the table, and write table.csv, verdict.svg if any row has an interval, map.csv if there is a
    map, and categories.csv if lines have categories, of one items.jsonl or several.

    Args:
        paths: files of scores by item, with results.jsonl beside them or one folder above.
        out: the folder that is written to; None for that of the only file.
        mix_versions: compare rows of different code too.

    Raises:
        InputError: if one of the files is damaged, or they do not go together.
    """
    parts = [read_part(path) for path in paths]
    part, folder = parts[0] if len(parts) == 1 else join(parts), out or paths[0].parent
    same, apart = only_comparable(part, comparable(part.results))
    part = part if mix_versions else same
    stored, scores = (
        part.stored,
        ItemScores(StoredLines(part), part.results, part.stored.budget == FIXED),
    )
    comparisons = compare(scores, stored.rows, stored.score, len(stored.seeds))
    table = StudyTable(
        part.results[0].recipe if part.results else "",
        stored.score,
        tuple(
            make_row(
                row.row, row.primary, stored.score, len(stored.seeds), part.results, comparisons
            )
            for row in stored.rows
        ),
        (
            *((_code_note(apart, mix_versions),) if apart else ()),
            *unknown_endings(part.results, comparisons, scores.fixed),
        ),
        (),
        tuple(comparisons),
        stored.primary,
        {row.row: Domain(row.test_set, row.system) for row in stored.rows}
        if any(row.test_set for row in stored.rows)
        else {},
    )
    texts = {"table.csv": table_csv(table)}
    if cells := make_cells(scores, stored.rows):
        texts[MAP_FILE] = csv_text([*csv_rows(cells)])
    console = make_console()
    print_table(table, console)
    for line in method_lines(cells):
        print_line(console, line)
    if by_category := score_categories(scores, stored.rows, stored.score):
        texts["categories.csv"] = categories_csv(by_category)
    if worth := find_worth(scores, stored.rows, part.results):
        numbers = [line for one in worth for line in one.numbers()]
        texts[WORTH_FILE] = csv_text([WORTH_COLUMNS, *numbers])
        for line in worth_lines(worth):
            print_line(console, line)
        write_figure_files(draw_worth(worth), folder / "worth.svg")
    for name, text in texts.items():
        write_text(folder / name, text)
        print_line(console, f"table: {folder / name}")
    lines = lines_by_row({row.row: Domain(row.test_set, row.system) for row in stored.rows})
    figure = draw_verdict([one for one in table.comparisons if one.primary], lines)
    if figure is not None:
        write_figure_files(figure, folder / "verdict.svg")
        print_line(console, f"figure: {folder / 'verdict.svg'}")


def _code_note(rows: Sequence[str], mixed: bool) -> str:
    done = (
        "compared as you asked (--mix-versions)"
        if mixed
        else "not tested (--mix-versions tests them)"
    )
    return f"Of other code than the row that they are compared with, and {done}: {', '.join(rows)}"
