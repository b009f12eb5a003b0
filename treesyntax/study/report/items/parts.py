"""Parts of a study that were trained in different folders or on different machines, taken as one."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TypeVar

from treesyntax.errors import InputError
from treesyntax.metrics import LOWER_IS_BETTER, plain_name
from treesyntax.study.recipe.rows import run_name
from treesyntax.study.report.items.file import REMEDY, ItemFile, read_items
from treesyntax.study.results.current import Comparable
from treesyntax.study.results.results import RESULTS_FILE, Result, read_results
from treesyntax.study.results.rows import ItemRow, Pair

TABLES, TASK = "tables", "task"
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
    """An items.jsonl, with the results.jsonl beside it, or one folder above as in a study's folder.

    Raises:
        InputError: if one of the files is missing or damaged.
    """
    stored, folder = read_items(path), path.parent
    if not (folder / RESULTS_FILE).is_file() and (folder.parent / RESULTS_FILE).is_file():
        folder = folder.parent
    rows = {row.row for row in stored.rows}
    try:
        results = [
            completed(result, stored.completed)
            for result in read_results(folder / RESULTS_FILE)
            if result.hash == stored.hash
            and result.method in rows
            and result.seed in stored.seeds
            and result.metric in stored.score
            and (not stored.outputs or result.run in stored.outputs)
        ]
    except (TypeError, ValueError) as error:
        raise InputError(path, None, f"says of a run what cannot be ({error!r})", REMEDY) from None
    return Part({row.row: path for row in stored.rows}, stored, results)


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


def join(parts: Sequence[Part]) -> Part:
    """Parts with different rows, or studies of different tasks, as one study.

    Studies with the same rows and one test set each, which is another in each, are columns of a map, named after
    their folders. On each test set the strongest plain row is the strongest of all parts, and rows of a part without the
    baseline are compared with that of another part.

    Raises:
        InputError: if two parts have the same row, a test set differs between parts, or nothing says
            what a row is compared with.
    """
    parts, paths = _columns(parts), dict[str, Path]()
    for part in parts:
        for row, path in part.paths.items():
            if row in paths:
                cause = f"has runs of {row}, as {paths[row]} has"
                raise InputError(path, None, cause, "give parts with different rows")
            paths[row] = path
    for number, part in enumerate(parts):
        for other in parts[:number]:
            _check(part, other)
    given = [row for part in parts for row in part.stored.rows]
    results = [result for part in parts for result in part.results]
    scored = {(run.row, run.metric) for part in parts for run in part.stored.runs}
    rows = [
        row
        for name in dict.fromkeys(row.test_set for row in given)
        for row in _compared_anew(
            [row for row in given if row.test_set == name], results, scored, paths
        )
    ]
    stored = replace(
        parts[0].stored,
        score=_all(part.stored.score for part in parts),
        primary=_all(part.stored.primary for part in parts),
        seeds=_all(part.stored.seeds for part in parts),
        rows=tuple(rows),
        copies={name: text for part in parts for name, text in part.stored.copies.items()},
        runs=_all(part.stored.runs for part in parts),
        categories=_all(part.stored.categories for part in parts),
        outputs=_all(part.stored.outputs for part in parts),
    )
    return Part(paths, stored, results)


def _columns(parts: Sequence[Part]) -> Sequence[Part]:
    """The parts; if several have the same rows over different data, each with the name of its folder as test set.

    A study of one task has no strongest plain row: its baseline, fixed beforehand, stands there.
    """
    alone = [part for part in parts if not any(row.test_set for row in part.stored.rows)]
    rows = [row for part in alone for row in part.paths]
    data = [_test_sets(part).get("") for part in alone]
    if (
        len(alone) < len(parts)
        or len(set(rows)) == len(rows)
        or any(one == other for at, one in enumerate(data) for other in data[:at])
    ):
        return parts
    return [_column(part, _task(part)) for part in parts]


def _task(part: Part) -> str:
    """The name of a part's folder, or of the study's folder that its tables are in."""
    folder = next(iter(part.paths.values())).resolve().parent
    return (folder.parent if folder.name == TABLES else folder).name


def _column(part: Part, task: str) -> Part:
    """A part whose rows stand on the test set of a task, as those of an axis do."""
    point = f"{TASK}={task}"
    names = {row: f"{row}-{point}" for row in part.paths} | {"": ""}

    def column(row: ItemRow) -> ItemRow:
        return replace(
            row, row=names[row.row], test_set=point, baseline=names[row.baseline],
            strongest=names[row.asked or row.baseline or row.row], asked=names[row.asked],
            controls=tuple(names[name] for name in row.controls if name in names),
            control_of=names.get(row.control_of, row.control_of),
        )  # fmt: skip

    stored = replace(
        part.stored,
        rows=tuple(map(column, part.stored.rows)),
        runs=tuple(replace(run, row=names[run.row]) for run in part.stored.runs),
    )
    results = [replace(result, method=names[result.method]) for result in part.results]
    return Part({names[row]: path for row, path in part.paths.items()}, stored, results)


def _all(groups: Iterable[Iterable[Value]]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(value for group in groups for value in group))


def _check(part: Part, other: Part) -> None:
    """Refuse test sets that are not the same in both."""
    ours, theirs = _test_sets(part), _test_sets(other)
    for name in ours:
        if name in theirs and not ours[name] & theirs[name]:
            where = f" on {name}" if name else ""
            path = next(iter(part.paths.values()))
            cause = f"has scores{where} of other data, or another primary metric, than "
            cause += str(next(iter(other.paths.values())))
            raise InputError(path, None, cause, "give parts of one study over the same data")


def _test_sets(part: Part) -> dict[str, set[tuple[str, int, str]]]:
    """Of each test set hashes of its data, its lines and its primary metric."""
    rows = {row.row: row for row in part.stored.rows}
    found: dict[str, set[tuple[str, int, str]]] = {}
    for result in part.results:
        row = rows[result.method]
        if result.metric == row.primary:
            facts = (result.data_sha256, result.n, row.primary)
            found.setdefault(row.test_set, set()).add(facts)
    return found


def only_comparable(part: Part, may_compare: Comparable) -> tuple[Part, list[str]]:
    """A part without comparisons of rows that may not be compared, and the names of these rows."""
    rows = []
    for row in part.stored.rows:
        if row.baseline and not may_compare(row.row, row.baseline):
            row = replace(row, baseline="", tested=())
        if row.strongest not in ("", row.row) and not may_compare(row.row, row.strongest):
            row = replace(row, strongest="")
        controls = tuple(name for name in row.controls if may_compare(row.row, name))
        row = replace(row, controls=controls)
        rows.append(row)
    apart = [row.row for row, was in zip(rows, part.stored.rows, strict=True) if row != was]
    return replace(part, stored=replace(part.stored, rows=tuple(rows))), apart


def _compared_anew(
    rows: Sequence[ItemRow],
    results: Sequence[Result],
    scored: Container[Pair],
    paths: Mapping[str, Path],
) -> list[ItemRow]:
    """The rows of a test set, each with its baseline and all with the same strongest row."""

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
    anew = []
    for row in rows:
        baseline = _baseline_of(row, baselines, paths)
        tested = tuple(
            metric
            for metric in metrics
            if baseline and (row.row, metric) in scored and (baseline, metric) in scored
        )
        best = strongest if (row.row, row.primary) in scored else ""
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
