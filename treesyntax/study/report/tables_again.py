"""The tables of a study, and the figures of map and verdict, from its results and items.jsonl alone, without data or
outputs; also of parts that were trained in different folders or on different machines, taken as one."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from treesyntax.errors import InputError, misfit
from treesyntax.files import write_text
from treesyntax.metrics import LOWER_IS_BETTER, UNSEEN, columns_of, plain_name
from treesyntax.metrics.line_file import unpack
from treesyntax.study.recipe.recipe import FIXED
from treesyntax.study.recipe.rows import run_name
from treesyntax.study.report.curves import lines_by_row
from treesyntax.study.report.groups import score_categories
from treesyntax.study.report.items import (
    ITEMS_FILE,
    REMEDY,
    ItemFile,
    ItemRun,
    read_items,
    unpack_items,
)
from treesyntax.study.report.sections import category_section, map_section, worth_section
from treesyntax.study.report.table import (
    StudyTable,
    find_coinciding,
    make_console,
    make_row,
    print_line,
    print_table,
)
from treesyntax.study.report.table_files import table_csv
from treesyntax.study.report.table_notes import coinciding_notes, unknown_endings
from treesyntax.study.report.unequal_parts import unequal_notes
from treesyntax.study.report.verdict import make_verdict
from treesyntax.study.results.comparisons import compare
from treesyntax.study.results.current import Comparable, comparable, each_once
from treesyntax.study.results.domains import TASK, Domain
from treesyntax.study.results.figure_files import FORMATS, write_figure_files
from treesyntax.study.results.item_scores import ItemScores
from treesyntax.study.results.outputs import NO_CATEGORIES, Categories
from treesyntax.study.results.results import RESULTS_FILE, Result, read_results, results_file
from treesyntax.study.results.rows import WELLFORMED, ItemRow, Pair, is_tested
from treesyntax.study.results.table_text import csv_text

TABLES = "tables"
Value = TypeVar("Value")


@dataclass(frozen=True)
class Part:
    """A file of scores by item, and the results that it goes with.

    Attributes:
        paths: the file that each row is from.
        stored: the file.
        results: the results of its rows, seeds and metrics.
    """

    paths: dict[str, Path]
    stored: ItemFile
    results: list[Result]


def read_part(path: Path) -> Part:
    """An items.jsonl, with the results beside it, or one folder above as in a study's folder.

    Raises:
        InputError: if one of the files is missing or damaged.
    """
    stored, folder = read_items(path), path.parent
    if not results_file(folder).is_file() and results_file(folder.parent).is_file():
        folder = folder.parent
    rows, file = {row.row for row in stored.rows}, results_file(folder)
    try:
        results = [
            completed(result, stored.completed)
            for result in read_results(file)
            if result.hash == stored.hash
            and result.method in rows
            and result.seed in stored.seeds
            and result.metric in stored.score
            and (not stored.outputs or result.run in stored.outputs)
        ]
    except (TypeError, ValueError) as error:
        cause = f"says of a run what cannot be: {misfit(error)}"
        raise InputError(path, None, cause, REMEDY) from None
    return Part({row.row: path for row in stored.rows}, stored, each_once(results, file))


def completed(result: Result, known: Mapping[str, str]) -> Result:
    """A result with what the study's logs told of its run.

    Raises:
        ValueError: if that is no JSON of the kind.
    """
    text = known.get(run_name(result.method, result.seed))
    if text is None:
        return result
    ended, seconds = json.loads(text)
    return replace(result, ended=ended, seconds=dict(seconds))


def join(studies: Sequence[Part]) -> Part:
    """Parts with different rows, or studies of different tasks, as one study.

    Studies with the same rows and one test set each, which is another in each, are columns of a map, named after
    their folders. On each test set the strongest plain row is the strongest of all parts, and rows of a part without the
    baseline are compared with that of another part.

    Raises:
        InputError: if two parts have the same row, a test set differs between parts, or nothing says
            what a row is compared with.
    """
    studies, paths = _columns(studies), dict[str, Path]()
    for study in studies:
        for row, path in study.paths.items():
            if row in paths:
                cause = f"has runs of {row}, as {paths[row]} has"
                raise InputError(path, None, cause, "give parts with different rows")
            paths[row] = path
    for number, study in enumerate(studies):
        for other in studies[:number]:
            _check(study, other)
    budgets = [study.stored.budget for study in studies]
    for study, budget in zip(studies, budgets, strict=True):
        if budget != budgets[0]:
            path = next(iter(study.paths.values()))
            cause = f"is of a study with budget: {budget}, others with budget: {budgets[0]}"
            remedy = "give parts of one budget, or each alone"
            raise InputError(path, None, cause, remedy)
    given = [row for study in studies for row in study.stored.rows]
    results = [result for study in studies for result in study.results]
    scored = {(run.row, run.metric) for study in studies for run in study.stored.runs}
    rows = [
        row
        for name in dict.fromkeys(row.test_set for row in given)
        for row in _compared_anew(
            [row for row in given if row.test_set == name], results, scored, paths
        )
    ]
    stored = replace(
        studies[0].stored,
        score=_all(study.stored.score for study in studies),
        primary=_all(study.stored.primary for study in studies),
        seeds=max((study.stored.seeds for study in studies), key=len),
        rows=tuple(rows),
        copies={name: text for study in studies for name, text in study.stored.copies.items()},
        runs=_all(study.stored.runs for study in studies),
        categories=_all(study.stored.categories for study in studies),
        outputs=_all(study.stored.outputs for study in studies),
    )
    return Part(paths, stored, results)


def _columns(studies: Sequence[Part]) -> Sequence[Part]:
    """The parts; if several have the same rows over different data, each with the name of its folder as test set.

    A study of one task has no strongest plain row: its baseline, fixed beforehand, stands there.
    """
    alone = [study for study in studies if not any(row.test_set for row in study.stored.rows)]
    rows = [row for study in alone for row in study.paths]
    data = [_test_sets(study).get("") for study in alone]
    if (
        len(alone) < len(studies)
        or len(set(rows)) == len(rows)
        or any(test_sets == earlier for at, test_sets in enumerate(data) for earlier in data[:at])
    ):
        return studies
    tasks = [_task(study) for study in studies]
    for at, task in enumerate(tasks):
        if task in tasks[:at]:
            path, other = (next(iter(studies[of].paths.values())) for of in (at, tasks.index(task)))
            cause = f"has other data than {other}, in a folder of the same name, {task}"
            remedy = "rename a folder: the columns of the map are named after the folders"
            raise InputError(path, None, cause, remedy)
    return [_column(study, task) for study, task in zip(studies, tasks, strict=True)]


def _task(study: Part) -> str:
    """The name of a part's folder, or of the study's folder that its tables are in."""
    folder = next(iter(study.paths.values())).resolve().parent
    return (folder.parent if folder.name == TABLES else folder).name


def _column(study: Part, task: str) -> Part:
    """A part whose rows stand on the test set of a task, as those of an axis do."""
    point = f"{TASK}={task}"
    names = {row: f"{row}-{point}" for row in study.paths} | {"": ""}

    def column(row: ItemRow) -> ItemRow:
        return replace(
            row, row=names[row.row], test_set=point, baseline=names[row.baseline],
            strongest=names.get(row.asked or row.baseline or row.row, ""),
            asked=names.get(row.asked, f"{row.asked}-{point}"),
            controls=tuple(names.get(name, f"{name}-{point}") for name in row.controls),
            other_code=tuple(names.get(name, f"{name}-{point}") for name in row.other_code),
            other_lines=tuple(names.get(name, f"{name}-{point}") for name in row.other_lines),
            control_of=names.get(row.control_of, row.control_of),
            curve=f"{row.curve}-{point}" if row.curve else "",
            no_trees=names.get(row.no_trees, ""),
        )  # fmt: skip

    stored = replace(
        study.stored,
        rows=tuple(map(column, study.stored.rows)),
        runs=tuple(replace(run, row=names[run.row]) for run in study.stored.runs),
    )
    results = [replace(result, method=names[result.method]) for result in study.results]
    return Part({names[row]: path for row, path in study.paths.items()}, stored, results)


def _all(groups: Iterable[Iterable[Value]]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(value for group in groups for value in group))


def _check(study: Part, other: Part) -> None:
    """Refuse test sets that are not the same in both."""
    ours, theirs = _test_sets(study), _test_sets(other)
    for name in ours:
        if name in theirs and not ours[name] & theirs[name]:
            where = f" on {name}" if name else ""
            path = next(iter(study.paths.values()))
            cause = f"has scores{where} of other data, or another primary metric, than "
            cause += str(next(iter(other.paths.values())))
            raise InputError(path, None, cause, "give parts of one study over the same data")
    _check_lines(study, other)


def _check_lines(study: Part, other: Part) -> None:
    """Refuse metrics that count other lines of a test set in another part, or have them in other categories."""
    ours, theirs = _lines(study), _lines(other)
    for (test_set, metric), lines in ours.items():
        pairs = zip(lines, theirs.get((test_set, metric), lines), strict=True)
        if any("" not in pair and len(set(pair)) > 1 for pair in pairs):
            where = f" on {test_set}" if test_set else ""
            path, than = (next(iter(side.paths.values())) for side in (study, other))
            cause = (
                f"has {metric}{where} of other lines, or of other categories of lines, than {than}"
            )
            remedy = (
                "give both studies the same categories and run them again, which only scores anew"
            )
            raise InputError(path, None, cause, remedy)


def _lines(study: Part) -> dict[tuple[str, str], tuple[str, ...]]:
    """By test set and metric how many lines are counted, hashes of which, and their categories; "" for unknown.

    Those that training does not have differ between rows, see `_compared_anew`.
    """
    test_sets = {row.row: row.test_set for row in study.stored.rows}
    sizes = {result.key: result.n for result in study.results}
    return {
        (test_sets.get(run.row, ""), run.metric): (
            str(sizes.get((run.row, run.seed, run.metric), "")),
            run.counted,
            run.categories,
        )
        for run in study.stored.runs
        if UNSEEN not in run.metric
    }


def _test_sets(study: Part) -> dict[str, set[tuple[str, str]]]:
    """Of each test set hashes of its data and its primary metric, whichever metrics have scores."""
    rows = {row.row: row for row in study.stored.rows}
    test_sets: dict[str, set[tuple[str, str]]] = {}
    for result in study.results:
        row = rows[result.method]
        test_sets.setdefault(row.test_set, set()).add((result.data_sha256, row.primary))
    return test_sets


def only_comparable(study: Part, may_compare: Comparable) -> tuple[Part, list[str]]:
    """A part without comparisons of rows that may not be compared, and the names of these rows."""
    rows = []
    for row in study.stored.rows:
        if row.baseline and not may_compare(row.row, row.baseline):
            row = replace(row, baseline="", tested=())
        if row.strongest not in ("", row.row) and not may_compare(row.row, row.strongest):
            row = replace(row, strongest="")
        row = replace(
            row, other_code=tuple(name for name in row.controls if not may_compare(row.row, name))
        )
        rows.append(row)
    apart = [row.row for row, was in zip(rows, study.stored.rows, strict=True) if row != was]
    return replace(study, stored=replace(study.stored, rows=tuple(rows))), apart


def _compared_anew(
    rows: Sequence[ItemRow],
    results: Sequence[Result],
    scored: Container[Pair],
    paths: Mapping[str, Path],
) -> list[ItemRow]:
    """The rows of a test set, each with its baseline and all with the same strongest row.

    With a baseline of another part they are compared in the metrics of the others, but not in those in which their
    own part may not have been: well-formedness, and lines that training does not have where that was another.
    """

    def mean(name: str) -> float:
        primary = rows[0].primary
        better = -1 if plain_name(primary) in LOWER_IS_BETTER else 1
        pairs = ((result.method, result.metric, result.value) for result in results)
        return better * fmean(value for *pair, value in pairs if pair == [name, primary])

    strongest = max(
        dict.fromkeys(row.strongest for row in rows if row.strongest), key=mean, default=""
    )
    metrics = _all(row.tested for row in rows) or (rows[0].primary,)
    baselines = list(dict.fromkeys(row.baseline for row in rows if row.baseline))
    data = {result.method: result.data_sha256 for result in results}
    anew = []
    for row in rows:
        baseline = _baseline_of(row, baselines, paths)
        alike = data.get(row.row) == data.get(baseline)
        tested = row.tested or tuple(
            metric
            for metric in metrics
            if baseline and (row.row, metric) in scored and (baseline, metric) in scored
            if not metric.startswith(WELLFORMED) and (alike or UNSEEN not in metric)
        )
        alike = data.get(row.row) == data.get(strongest) or UNSEEN not in row.primary
        best = strongest if alike and (row.row, row.primary) in scored else ""
        anew.append(
            replace(row, baseline=baseline if tested else "", tested=tested, strongest=best)
        )
    return anew


def _baseline_of(row: ItemRow, baselines: Sequence[str], paths: Mapping[str, Path]) -> str:
    """The row that one is compared with; "" for one that others are compared with."""
    if row.asked:
        return row.asked if row.asked != row.row else ""
    if row.baseline or row.row in baselines:
        return row.baseline
    if len(baselines) > 1:
        cause = f"does not say which of {', '.join(baselines)} the row {row.row} is compared with"
        raise InputError(paths[row.row], None, cause, "write the part's report again")
    return next(iter(baselines), "")


class StoredLines:
    """The line statistics of a file, as :class:`treesyntax.study.results.item_scores.LineStatistics`.

    Raises:
        InputError: if the file holds others than the results.
    """

    def __init__(self, study: Part) -> None:
        self.paths, self.stored = study.paths, study.stored
        self.sizes = {result.key: result.n for result in study.results}
        self.some = next(iter(study.paths.values()), Path(ITEMS_FILE))
        self.kinds = {kind.name: kind for kind in study.stored.categories}
        self.runs: dict[Pair, dict[int, ItemRun]] = {}
        for run in study.stored.runs:
            known = self.runs.setdefault((run.row, run.metric), {})
            if (run.row, run.seed, run.metric) not in self.sizes or run.seed in known:
                raise self._refused(run, f"which {RESULTS_FILE} lacks, or has them twice")
            if not is_tested(run.metric) or run.copies not in self.stored.copies:
                raise self._refused(run, "which is no metric with a test, or lacks its copies")
            if run.categories and run.categories not in self.kinds:
                raise self._refused(run, "whose categories are lacking")
            known[run.seed] = run
        for name, metric in (pair for row in study.stored.rows for pair in row.compared()):
            if (name, metric) not in self.runs:
                cause = f"lacks the scores of {name} in {metric}"
                raise InputError(study.paths.get(name, self.some), None, cause, REMEDY)

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
            indices = unpack(kind.places, self.sizes[row, seed, metric], 1)[:, 0].astype(np.intp)
        except ValueError as error:
            raise self._refused(run, f"whose categories are damaged: {error}") from None
        return kind.names, indices

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
        paths: files of scores by item, with runs.jsonl beside them or one folder above.
        out: the folder that is written to; None for that of the only file.
        mix_versions: compare rows of different code too.

    Raises:
        InputError: if one of the files is damaged, or they do not go together.
    """
    studies = [read_part(path) for path in paths]
    study, folder = studies[0] if len(studies) == 1 else join(studies), out or paths[0].parent
    same, apart = only_comparable(study, comparable(study.results))
    study = study if mix_versions else same
    stored, scores = (
        study.stored,
        ItemScores(StoredLines(study), study.results, study.stored.budget == FIXED),
    )
    comparisons = compare(scores, stored.rows, stored.score, len(stored.seeds))
    rows = tuple(
        make_row(row.row, row.primary, stored.score, len(stored.seeds), study.results, comparisons)
        for row in stored.rows
    )
    coinciding = find_coinciding(stored.score, stored.primary, rows)
    table = StudyTable(
        study.results[0].recipe if study.results else "",
        stored.score,
        rows,
        (
            *((_code_note(apart, mix_versions),) if apart else ()),
            *unknown_endings(study.results, comparisons, scores.fixed),
            *coinciding_notes(coinciding),
            *unequal_notes(study.results, _across_parts(study)),
            *_without_baseline(stored.rows),
        ),
        (),
        tuple(comparison for comparison in comparisons if comparison.metric not in coinciding),
        stored.primary,
        {row.row: Domain(row.test_set, row.system) for row in stored.rows}
        if any(row.test_set for row in stored.rows)
        else {},
        coinciding,
    )
    lines = lines_by_row({row.row: Domain(row.test_set, row.system) for row in stored.rows})
    sections = [
        map_section(scores, stored.rows),
        worth_section(scores, stored.rows, study.results),
        category_section(score_categories(scores, stored.rows, stored.score)),
    ]
    console = make_console()
    print_table(table, console)
    for line in (line for section in sections for line in section.lines):
        print_line(console, line)
    begun = (folder / "table.csv").is_file()  # by this command; else what lies there is not of it
    texts = {"table.csv": table_csv(table)}
    texts |= {name: csv_text(rows) for section in sections for name, rows in section.tables.items()}
    for name, text in texts.items():
        write_text(folder / name, text)
        print_line(console, f"table: {folder / name}")
    sections += filter(None, [make_verdict(table.comparisons, lines)])
    drawn = {drawing.name for section in sections for drawing in section.drawings}
    stems = ("verdict",) if out is None else ("map", "worth", "verdict")
    for stale in _stale(folder, stems, {*texts, *drawn}) if begun else ():
        stale.unlink(missing_ok=True)
    for drawing in (drawing for section in sections for drawing in section.drawings):
        file = folder / f"{drawing.name}.svg"
        write_figure_files(drawing.figure, file)
        print_line(console, f"figure: {file}")


def _stale(folder: Path, stems: Sequence[str], written: Container[str]) -> Iterator[Path]:
    """The tables and figures that other parts, or rows compared in spite of their code, have left in a folder.

    In a study's own folder map and worth are kept, and categories anywhere: older files of scores by item lack them.
    """
    for stem in stems:
        if f"{stem}.csv" not in written:
            yield folder / f"{stem}.csv"
        if stem not in written:
            yield from (folder / f"{stem}.{suffix}" for suffix in FORMATS)


def _across_parts(study: Part) -> dict[str, list[str]]:
    """By row the rows of other parts that it is compared with: its baseline, the strongest plain row, its controls."""
    compared = {row.row: (row.baseline, row.strongest, *row.controls) for row in study.stored.rows}
    return {
        row: [
            other
            for other in dict.fromkeys(others)
            if study.paths.get(other, study.paths[row]) != study.paths[row]
        ]
        for row, others in compared.items()
    }


def _without_baseline(rows: Sequence[ItemRow]) -> list[str]:
    """The rows that are not compared, since what they are compared with is not among them."""
    lost = {row.row: row.asked for row in rows if row.asked not in ("", *(of.row for of in rows))}
    return [
        f"Not compared with {baseline}, which none of these files has: "
        + ", ".join(row for row, name in lost.items() if name == baseline)
        for baseline in dict.fromkeys(lost.values())
    ]


def _code_note(rows: Sequence[str], mixed: bool) -> str:
    done = (
        "compared as you asked (--mix-versions)"
        if mixed
        else "not tested (--mix-versions tests them)"
    )
    return f"Of other code than the row that they are compared with, and {done}: {', '.join(rows)}"
