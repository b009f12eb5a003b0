"""The tables of a study, and the figure of its verdict, from results.jsonl and items.jsonl alone, without
data or outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from treesyntax.errors import InputError
from treesyntax.files import write_text
from treesyntax.metrics import CORPUS_METRICS, PART_METRICS, UNSEEN
from treesyntax.metrics.statistics import line_statistics
from treesyntax.study.report.curves import lines_by_row
from treesyntax.study.report.domains import Domain
from treesyntax.study.report.items.file import (
    ITEMS_FILE,
    REMEDY,
    ItemFile,
    ItemRun,
    Pair,
    unpack,
    unpack_items,
)
from treesyntax.study.report.items.parts import Part, join, read_part
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
from treesyntax.study.report.table_files import csv_text, table_csv
from treesyntax.study.report.verdict import draw_verdict
from treesyntax.study.results.comparisons import Comparison
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
        self.runs: dict[Pair, dict[int, ItemRun]] = {}
        for run in stored.runs:
            known = self.runs.setdefault((run.row, run.metric), {})
            if (run.row, run.seed, run.metric) not in self.results or run.seed in known:
                raise self._refused(run, f"which {RESULTS_FILE} lacks, or has them twice")
            if not is_tested(run.metric) or run.copies not in stored.copies:
                raise self._refused(run, "which is no metric with a test, or lacks its copies")
            known[run.seed] = run
        for name, metric in (pair for row in stored.rows for pair in row.compared()):
            if (name, metric) not in self.runs:
                cause = f"lacks the scores of {name} in {metric}"
                raise InputError(part.paths.get(name, self.some), None, cause, REMEDY)

    def copies(self, baseline: str, metric: str) -> NDArray[np.intp]:
        """As of `ItemScores`."""
        return np.bincount(self._items(baseline, metric))

    def table(self, name: str, baseline: str, metric: str) -> NDArray[np.float64]:
        """As of `ItemScores`."""
        items, runs = self._items(baseline, metric), self.runs[name, metric].values()
        columns = _columns(metric)
        by_line = []
        for run in runs:
            try:
                by_line.append(unpack(run.scores, len(items), columns))
            except ValueError as error:
                raise self._refused(run, f"which are damaged: {error}") from None
        table = points(metric, np.stack(by_line, axis=1), items)
        copies = np.bincount(items)
        for run, score in zip(runs, (copies @ table / copies.sum()).tolist(), strict=True):
            recorded = self.results[run.row, run.seed, run.metric].value
            if not abs(recorded - score) <= CLOSE:
                raise self._refused(run, f"{score:.2f}, but {RESULTS_FILE} has {recorded:.2f}")
        return table

    def _items(self, baseline: str, metric: str) -> NDArray[np.intp]:
        run = next(iter(self.runs[baseline, metric].values()))
        lines = self.results[run.row, run.seed, run.metric].n
        try:
            return unpack_items(self.stored.copies[run.copies], lines)
        except ValueError as error:
            raise self._refused(run, f"whose copies are damaged: {error}") from None

    def _refused(self, run: ItemRun, why: str) -> InputError:
        cause = f"has scores of {run.row}-{run.seed} in {run.metric}, {why}"
        return InputError(self.paths.get(run.row, self.some), None, cause, REMEDY)


def _columns(metric: str) -> int:
    """How many numbers a line has."""
    plain = metric.removesuffix(UNSEEN)
    if plain in CORPUS_METRICS:
        return line_statistics(CORPUS_METRICS[plain](references=[["a"]]), ["a"]).shape[1]
    return 2 if plain in PART_METRICS else 1


def tables_again(paths: Sequence[Path], out: Path | None = None) -> None:
    """Print the table, and write table.csv, verdict.svg if any row has an interval, and map.csv if there is a
    map, of one items.jsonl or several.

    Args:
        paths: files of scores by item, with results.jsonl beside them or one folder above.
        out: the folder that is written to; None for that of the only file.

    Raises:
        InputError: if one of the files is damaged, or they do not go together.
    """
    parts = [read_part(path) for path in paths]
    part, folder = parts[0] if len(parts) == 1 else join(parts), out or paths[0].parent
    stored, scores = part.stored, StoredScores(part)
    table = _table(stored, part.results, _comparisons(stored, scores))
    texts = {"table.csv": table_csv(table)}
    if cells := _cells(stored, scores):
        texts[MAP_FILE] = csv_text([*csv_rows(cells)])
    console = make_console()
    print_table(table, console)
    for name, text in texts.items():
        write_text(folder / name, text)
        print_line(console, f"table: {folder / name}")
    lines = lines_by_row({row.row: Domain(row.test_set, row.system) for row in stored.rows})
    figure = draw_verdict([one for one in table.comparisons if one.primary], lines)
    if figure is not None:
        write_figure_files(figure, folder / "verdict.svg")
        print_line(console, f"figure: {folder / 'verdict.svg'}")


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
