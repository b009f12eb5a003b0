"""Input files of ``treesyntax binarize``: counted first, then handed out in batches to workers."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple, TypeVar

from treesyntax.data.binarize.batch import Batch
from treesyntax.data.binarize.options import BinarizeOptions, SideOptions
from treesyntax.data.binarize.records import Records, count_of, records_of
from treesyntax.data.encoding import CONLLU, TEXT, Encoding
from treesyntax.errors import InputError, TreeSyntaxError
from treesyntax.jobs import begin_worker
from treesyntax.trees.formats import conllu, get_format, parse_record

TITLES = {"conllu": "CoNLL-U", "ptb": "one tree in Penn brackets a line", "jsonl": "JSON lines"}
MOST_CHECKED = 100_000
"""Trees of a file that are read to find why it has another number of sentences than the file beside it."""
_SENT_ID = re.compile(r"^# ?sent_id ?= ?(\S+)", re.MULTILINE)
BATCH_SENTENCES = 2000
# Batches on their way for each other worker: enough to keep it busy while this process has one.
BATCHES_AHEAD = 2


class Task(NamedTuple):
    """A batch of one side and split, to encode."""

    side: SideOptions
    split: str
    batch: Batch


Encoded = TypeVar("Encoded")
BatchFunction = Callable[[Encoding, Batch], Encoded]
BatchMap = Callable[[BatchFunction, Iterable[Task]], Iterator[tuple[Task, Encoded]]]


def survey(options: BinarizeOptions) -> dict[str, int]:
    """Count every file's records; the number of sentences of each split."""
    return {split: _survey_split(options, split) for split in options.source.files}


def _survey_split(options: BinarizeOptions, split: str) -> int:
    counts: list[tuple[Path, int]] = []
    for side in options.sides:
        path = side.files[split]
        counts.append((path, _count(path, side.encoding.format_name)))
        if split in side.offsets and not side.offsets[split].exists():
            cause = "does not exist; with the raw text of brackets it says where their words stand"
            remedy = f"parse the text with treesyntax parse, which writes it, or leave out --{side.role}-text"
            raise InputError(side.offsets[split], None, cause, remedy)
        beside = [paths[split] for paths in side.beside if split in paths]
        counts += [(path, _count(path, TEXT)) for path in beside]
    first, expected = counts[0]
    for path, count in counts[1:]:
        if count != expected:
            for side in options.sides:
                _check_format(side, split)
            raise InputError(
                path,
                None,
                f"has {count} sentences, but {first} has {expected}",
                "aligned files have the same number; an empty line stands for an empty sentence",
            )
    if not expected:
        raise InputError(first, None, "has no sentences", "leave the split out")
    if all(side.encoding.format_name == CONLLU for side in options.sides):
        _check_order(*(side.files[split] for side in options.sides))
    return expected


def _check_order(source: Path, target: Path) -> None:
    """Refuse treebanks of which a sentence has its translation elsewhere, by the names of both.

    Parallel treebanks give both one ``sent_id``, which may end in ``/LANGUAGE``. Numbers are no names: tools count
    sentences anew.
    """
    names = [
        [(record.line, _name_of(record.text)) for record in conllu.records(path)]
        for path in (source, target)
    ]
    numbers: dict[str, list[int]] = {}
    for number, (_, name) in enumerate(names[1], start=1):
        numbers.setdefault(name, []).append(number)
    for number, (line, name) in enumerate(names[0], start=1):
        elsewhere = numbers.get(name, []) if name else []
        if elsewhere and number not in elsewhere:
            cause = f"sentence {number} is named {name[:40]!r}, which in {target} is sentence {elsewhere[0]}"
            remedy = "put both into the same order, or take the comments sent_id out if they name no pairs"
            raise InputError(source, line, cause, remedy)


def _name_of(record: str) -> str:
    match = _SENT_ID.search(record)
    name = match[1].partition("/")[0] if match else ""
    return "" if name.isdecimal() else name


def _check_format(side: SideOptions, split: str) -> None:
    """Refuse a file that is not in its format, or has a fault, from which other counts may come."""
    name, path = side.encoding.format_name, side.files[split]
    if not side.has_trees:
        return
    tree_format = get_format(name)
    for number, record in enumerate(islice(tree_format.records(path), MOST_CHECKED)):
        try:
            parse_record(tree_format, path, record)
        except InputError as error:
            if number or error.line != record.line:
                raise
            raise _other_format(side, error) from None


def _other_format(side: SideOptions, error: InputError) -> InputError:
    """The error for a file whose first line is already at fault."""
    name = side.encoding.format_name
    cause = f"is not {TITLES.get(name, name)} ({error.cause})"
    cause = error.cause if error.cause.startswith("is not") else cause
    return InputError(error.path, error.line, cause, f"name its format with --{side.role}-format")


def _count(path: Path, format_name: str) -> int:
    if path.exists() and not path.is_file():
        raise InputError(
            path, None, "is not a regular file", "inputs are read twice; save it first"
        )
    return count_of(path, format_name)


def tasks(sides: Iterable[SideOptions], splits: Iterable[str]) -> Iterator[Task]:
    """All batches of these sides and splits, one split after the other."""
    pairs = product(splits, sides)
    return (Task(side, split, batch) for split, side in pairs for batch in _batches(side, split))


def _batches(side: SideOptions, split: str) -> Iterator[Batch]:
    """The records of a file, some 2,000 at a time, with what belongs to them."""
    path = side.files[split]
    beside = [
        (paths[split], records_of(paths[split], TEXT, BATCH_SENTENCES)) if split in paths else None
        for paths in side.beside
    ]
    for records in records_of(path, side.encoding.format_name, BATCH_SENTENCES):
        subwords, text, offsets = [
            _as_many(next(file[1], None), len(records.texts), file[0]) if file else None
            for file in beside
        ]
        yield Batch(
            path,
            records,
            subwords_path=side.subwords.get(split),
            subwords=subwords,
            text=text and text.texts,
            offsets_path=side.offsets.get(split),
            offsets=offsets,
        )


def _as_many(records: Records | None, count: int, path: Path) -> Records:
    if records is None or len(records.texts) != count:
        raise changed(path)
    return records


def changed(path: Path) -> InputError:
    """The fault that a file is not what it was when it was counted."""
    return InputError(path, None, "has changed while it was read", "run the command again")


@contextmanager
def worker_pool(workers: int) -> Iterator[BatchMap]:
    """A map over batches that keeps their order; this process is one of the workers."""
    if workers == 1:
        yield _serial_map
        return
    others = workers - 1
    with ProcessPoolExecutor(others, None, begin_worker) as executor:

        def parallel_map(
            function: BatchFunction, todo: Iterable[Task]
        ) -> Iterator[tuple[Task, Encoded]]:
            pending: deque[tuple[Task, Future]] = deque()
            for task in todo:
                waiting = sum(not future.done() for _, future in pending)
                if waiting < others * BATCHES_AHEAD:
                    future = executor.submit(function, task.side.encoding, task.batch)
                else:
                    future = _done_here(function, task)
                pending.append((task, future))
                while pending and (pending[0][1].done() or len(pending) > workers * BATCHES_AHEAD):
                    task, future = pending.popleft()
                    yield task, future.result()
            for task, future in pending:
                yield task, future.result()

        try:
            yield parallel_map
        except BrokenProcessPool:
            raise TreeSyntaxError(
                "a worker process died, possibly out of memory; try fewer --workers"
            ) from None
        finally:
            executor.shutdown(cancel_futures=True)


def _done_here(function: BatchFunction, task: Task) -> Future:
    """The outcome of a batch; a fault waits for its turn, so that the first in the file is told."""
    future: Future = Future()
    try:
        future.set_result(function(task.side.encoding, task.batch))
    except TreeSyntaxError as error:
        future.set_exception(error)
    return future


def _serial_map(function: BatchFunction, todo: Iterable[Task]) -> Iterator[tuple[Task, Encoded]]:
    return ((task, function(task.side.encoding, task.batch)) for task in todo)
