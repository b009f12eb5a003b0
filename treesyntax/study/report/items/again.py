"""The tables of a study, and the figure of its verdict, from results.jsonl and items.jsonl alone, without
data or outputs."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from treesyntax.errors import InputError
from treesyntax.files import write_text
from treesyntax.metrics import columns_of
from treesyntax.metrics.line_file import unpack
from treesyntax.study.report.categories import CategoryScore, score_category
from treesyntax.study.report.curves import lines_by_row
from treesyntax.study.report.domains import Domain
from treesyntax.study.report.items.file import (
    ITEMS_FILE,
    REMEDY,
    ItemFile,
    ItemRun,
    Pair,
    unpack_items,
)
from treesyntax.study.report.items.parts import Part, join, only_comparable, read_part
from treesyntax.study.report.map.cells import MAP_FILE, Cell, corrected_cells, csv_rows, make_cell
from treesyntax.study.report.speed import Speed
from treesyntax.study.report.table import (
    Row,
    Spread,
    StudyTable,
    make_console,
    print_line,
    print_table,
)
from treesyntax.study.report.table_files import categories_csv, csv_text, table_csv
from treesyntax.study.report.verdict import draw_verdict
from treesyntax.study.results.comparisons import Comparison
from treesyntax.study.results.current import comparable
from treesyntax.study.results.figure_files import write_figure_files
from treesyntax.study.results.item_scores import CLOSE, points
from treesyntax.study.results.results import RESULTS_FILE, Result
from treesyntax.study.results.significance import compare_rows, corrected, is_tested


class StoredScores:
    """Scores as those of `ItemScores`, from a file of them.

    Raises:
        InputError: if the file holds others than the results.
    """

    def __init__(self, part: Part) -> None:
        self.paths, self.stored = part.paths, part.stored
        self.results = {result.key: result for result in part.results}
        self.some = next(iter(part.paths.values()), Path(ITEMS_FILE))
        stored = part.stored
        self.category = ""  # all lines
        self.categories = {one.name: one for one in stored.categories}
        self.runs: dict[Pair, dict[int, ItemRun]] = {}
        for run in stored.runs:
            known = self.runs.setdefault((run.row, run.metric), {})
            if (run.row, run.seed, run.metric) not in self.results or run.seed in known:
                raise self._refused(run, f"which {RESULTS_FILE} lacks, or has them twice")
            if not is_tested(run.metric) or run.copies not in stored.copies:
                raise self._refused(run, "which is no metric with a test, or lacks its copies")
            if run.categories and run.categories not in self.categories:
                raise self._refused(run, "whose categories are lacking")
            known[run.seed] = run
        for name, metric in (pair for row in stored.rows for pair in row.compared()):
            if (name, metric) not in self.runs:
                cause = f"lacks the scores of {name} in {metric}"
                raise InputError(part.paths.get(name, self.some), None, cause, REMEDY)

    def of_category(self, category: str) -> StoredScores:
        """Those of the lines of a category alone."""
        found = copy(self)
        found.category = category
        return found

    def copies(self, baseline: str, metric: str) -> NDArray[np.intp]:
        """As of `ItemScores`."""
        items = self._items(baseline, metric)
        if self.category:
            items = renumbered(items[self.in_category(baseline, metric)])
        return np.bincount(items)

    def table(self, name: str, baseline: str, metric: str) -> NDArray[np.float64]:
        """As of `ItemScores`."""
        items, runs = self._items(baseline, metric), self.runs[name, metric].values()
        columns = columns_of(metric)
        by_line = []
        for run in runs:
            try:
                by_line.append(unpack(run.scores, len(items), columns))
            except ValueError as error:
                raise self._refused(run, f"which are damaged: {error}") from None
        stacked = np.stack(by_line, axis=1)
        if self.category:  # recorded scores are of the whole test set, and checked there
            chosen = self.in_category(baseline, metric)
            return points(metric, stacked[chosen], renumbered(items[chosen]))
        table, copies = points(metric, stacked, items), np.bincount(items)
        for run, score in zip(runs, (copies @ table / copies.sum()).tolist(), strict=True):
            recorded = self.results[run.row, run.seed, run.metric].value
            if not abs(recorded - score) <= CLOSE:
                raise self._refused(run, f"{score:.2f}, but {RESULTS_FILE} has {recorded:.2f}")
        return table

    def names(self, row: str, metric: str) -> tuple[str, ...]:
        """The categories of the lines that a row is scored on, if it is and they are known."""
        for run in self.runs.get((row, metric), {}).values():
            if run.categories:
                return self.categories[run.categories].names
        return ()

    def in_category(self, row: str, metric: str) -> NDArray[np.bool_]:
        """Which lines that a row is scored on are of the category."""
        run = next(iter(self.runs[row, metric].values()))
        own = self.categories[run.categories]
        try:
            place = own.names.index(self.category)
            found: NDArray[np.bool_] = unpack(own.places, self._lines(run), 1)[:, 0] == place
        except ValueError as error:
            raise self._refused(run, f"whose categories are damaged: {error}") from None
        return found

    def _lines(self, run: ItemRun) -> int:
        return self.results[run.row, run.seed, run.metric].n

    def _items(self, baseline: str, metric: str) -> NDArray[np.intp]:
        run = next(iter(self.runs[baseline, metric].values()))
        try:
            return unpack_items(self.stored.copies[run.copies], self._lines(run))
        except ValueError as error:
            raise self._refused(run, f"whose copies are damaged: {error}") from None

    def _refused(self, run: ItemRun, why: str) -> InputError:
        cause = f"has scores of {run.row}-{run.seed} in {run.metric}, {why}"
        return InputError(self.paths.get(run.row, self.some), None, cause, REMEDY)


def renumbered(items: NDArray[np.intp]) -> NDArray[np.intp]:
    """Indices from 0, in the order of their first lines."""
    places: dict[int, int] = {}
    return np.array([places.setdefault(item, len(places)) for item in items.tolist()])


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
    stored, scores = part.stored, StoredScores(part)
    notes = (_code_note(apart, mix_versions),) if apart else ()
    table = replace(_table(stored, part.results, _comparisons(stored, scores)), notes=notes)
    texts = {"table.csv": table_csv(table)}
    if cells := _cells(stored, scores):
        texts[MAP_FILE] = csv_text([*csv_rows(cells)])
    console = make_console()
    print_table(table, console)
    if found := _categories(stored, scores):
        texts["categories.csv"] = categories_csv(found)
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
        "compared all the same, as asked (--mix-versions)"
        if mixed
        else "not tested (--mix-versions tests them)"
    )
    return f"Of other code than the row that they are compared with, and {done}: {', '.join(rows)}"


def _comparisons(stored: ItemFile, scores: StoredScores) -> list[Comparison]:
    """As `treesyntax.study.results.significance.compare` finds them."""
    return corrected([
        replace(
            compare_rows(scores, row.row, row.baseline, metric, ""),
            seeds=len(stored.seeds),
            primary=metric == row.primary,
        )
        for metric in sorted(stored.score, key=lambda metric: metric not in stored.primary)
        for row in stored.rows
        if metric in row.tested
    ])  # fmt: skip


def _cells(stored: ItemFile, scores: StoredScores) -> list[Cell]:
    """As `treesyntax.study.report.map.cells.make_cells` finds them."""
    domains, rows = _domains(stored), {row.row: row for row in stored.rows}
    return corrected_cells([
        make_cell(scores, name, rows[name].strongest, rows[name].primary, domains)
        for name in domains
        if rows[name].strongest
    ])  # fmt: skip


def _categories(stored: ItemFile, scores: StoredScores) -> list[CategoryScore]:
    """As `treesyntax.study.report.categories.score_categories` finds them, on each test set."""
    metrics = [metric for metric in stored.score if is_tested(metric)]
    found = []
    for test_set in dict.fromkeys(row.test_set for row in stored.rows):
        rows = [row for row in stored.rows if row.test_set == test_set]
        names = [scores.names(row.row, metric) for row in rows for metric in metrics]
        for category in dict.fromkeys(name for some in names for name in some):
            own = scores.of_category(category)
            for metric in metrics:
                for row in rows:
                    if scores.names(row.row, metric) and own.in_category(row.row, metric).any():
                        known = (row.baseline, metric) in scores.runs
                        baseline = row.baseline if known else ""
                        found.append(score_category(own, category, row.row, baseline, metric))
    return found


def _domains(stored: ItemFile) -> dict[str, Domain]:
    """The rows of each test set after each other; empty in a study with one."""
    sets = dict.fromkeys(row.test_set for row in stored.rows)
    return {
        row.row: Domain(row.test_set, row.system)
        for name in (sets if any(sets) else ())
        for row in stored.rows
        if row.test_set == name
    }


def _table(
    stored: ItemFile, results: Sequence[Result], comparisons: Sequence[Comparison]
) -> StudyTable:
    rows = []
    for row in stored.rows:
        own = [result for result in results if result.method == row.row]
        values = {
            metric: [result.value for result in own if result.metric == metric]
            for metric in stored.score
        }
        seeds = len({result.seed for result in own})
        rows.append(Row(
            row.row, row.primary, {metric: Spread.of(found) for metric, found in values.items() if found},
            own[0].parameters if own else None, Speed.of(own), f"{seeds} of {len(stored.seeds)}", "",
            {one.metric: one for one in comparisons if one.method == row.row},
        ))  # fmt: skip
    title = results[0].recipe if results else ""
    return StudyTable(
        title,
        stored.score,
        tuple(rows),
        (),
        (),
        tuple(comparisons),
        stored.primary,
        _domains(stored),
    )
