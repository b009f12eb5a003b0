"""The file ``tables/items.jsonl``, which holds scores by test item but no text of the data.

The first line has the rows with what each is compared with, which lines of a test set are copies of a
line before, and the category of each line where the recipe gives one. Every other line is a run in a
metric. Its ``scores`` are what the metric is computed from, whole numbers by line of the test set: 1
for right and 0 for wrong; for F1 the parts in common and those of both; for BLEU, chrF and TER
sacreBLEU's statistics. See :func:`treesyntax.metrics.line_file.pack` for how they are written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from treesyntax.errors import InputError, TreeSyntaxError
from treesyntax.files import parse_json, read_lines, sha256_of_value, write_text
from treesyntax.made.records import OPEN, parse_record
from treesyntax.metrics.line_file import pack, unpack
from treesyntax.study.recipe.recipe import REST
from treesyntax.study.recipe.rows import run_name
from treesyntax.study.results.outputs import Outputs
from treesyntax.study.results.results import Result, read_results, results_file
from treesyntax.study.results.rows import ItemRow, is_tested

ITEMS_FILE = "items.jsonl"
CHECKSUM = "sha256"
REMEDY = "take items.jsonl and runs.jsonl from the same study"
CAUSE = "holds no scores by test item"


@dataclass(frozen=True)
class ItemRun:
    """The scores of a run in a metric.

    Attributes:
        copies: which of the file's they are.
        scores: packed, by line of the test set.
        categories: which of the file's they are; "" for none.
        counted: a hash of the numbers of the lines that the metric counts; "" in files from before it was kept.
    """

    row: str
    seed: int
    metric: str
    copies: str
    scores: str
    categories: str = ""
    counted: str = ""


@dataclass(frozen=True)
class ItemCategories:
    """The category of each line that a metric counts.

    Attributes:
        name: by which runs refer to them.
        names: of the categories, in their order in the table.
        places: packed, for each line the index of one.
    """

    name: str
    names: tuple[str, ...]
    places: str


@dataclass(frozen=True)
class ItemFile:
    """The whole file.

    Attributes:
        hash: the study's.
        score: its metrics.
        primary: those that decide, each on its test sets.
        seeds: its seeds.
        rows: those with results.
        copies: by name, packed: for each line how many lines before it the same pair of source and
            reference last stood; 0 for a new pair.
        categories: of the lines of each test set; none in files from before they were kept.
        outputs: as :attr:`treesyntax.study.results.results.Result.run` of all results that count; none
            in files from before they were kept.
        budget: as :attr:`treesyntax.study.recipe.recipe.Recipe.budget`.
        completed: by run, as JSON, how its training ended and the seconds of its steps, where the study's logs
            told what runs.jsonl does not.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = OPEN
    hash: str
    score: tuple[str, ...]
    primary: tuple[str, ...]
    seeds: tuple[int, ...]
    rows: tuple[ItemRow, ...]
    copies: Mapping[str, str]
    runs: tuple[ItemRun, ...]
    categories: tuple[ItemCategories, ...] = ()
    outputs: tuple[str, ...] = ()
    budget: str = REST
    completed: Mapping[str, str] = field(default_factory=dict)


def pack_items(items: NDArray[np.intp]) -> str:
    """The index of the item of each line, which counts up where an item is new, as `ItemFile.copies`."""
    last: dict[int, int] = {}
    distances = []
    for line, item in enumerate(items.tolist()):
        distances.append(line - last.get(item, line))
        last[item] = line
    return pack(np.array(distances)[:, None])


def unpack_items(text: str, lines: int) -> NDArray[np.intp]:
    """What `pack_items` was given.

    Raises:
        ValueError: as `unpack`.
    """
    items: list[int] = []
    new = 0
    for line, distance in enumerate(unpack(text, lines, 1)[:, 0].astype(np.intp).tolist()):
        if distance > line:
            raise ValueError("a copy of a line before the first one")
        items.append(items[line - distance] if distance else new)
        new += not distance
    return np.array(items)


def write_file(path: Path, items: ItemFile) -> None:
    """Write the file, all or nothing."""
    head = asdict(items)
    values = [head, *head.pop("runs")]
    values[0] = {CHECKSUM: sha256_of_value(values), **head}
    write_text(path, "".join(f"{json.dumps(value)}\n" for value in values))


def read_items(path: Path) -> ItemFile:
    """The file that a report wrote.

    Raises:
        InputError: if it cannot be read, is damaged or another file.
    """
    lines = list(read_lines(path, record=True))
    if not lines:
        remedy = "copy it again, or write it again in its study: treesyntax report FOLDER"
        raise InputError(path, None, "is empty", remedy)
    try:
        head, *runs = map(parse_json, lines)
        digest = head.pop(CHECKSUM)
    except (AttributeError, LookupError, TypeError, ValueError):
        cause = f"{CAUSE}: it is damaged or another file"
        raise InputError(path, None, cause, REMEDY) from None
    if digest != sha256_of_value([head, *runs]):
        raise InputError(path, None, "its checksum differs: the file is damaged", REMEDY)
    whole = json.dumps({**head, "runs": runs})
    return parse_record(ItemFile, whole, path, None, CAUSE, REMEDY)


def write_items(
    outputs: Outputs, rows: Sequence[ItemRow], study_hash: str, results: Sequence[Result]
) -> None:
    """Write the scores of all rows that the table or the map compares, or may compare with a row of another part.

    A file is kept where outputs or references are gone: nobody could make those scores again.
    """
    recipe = outputs.plan.recipe
    path = outputs.folder / "tables" / ITEMS_FILE
    if path.is_file() and not outputs.are_whole:
        return
    copies: dict[str, str] = {}
    categories: dict[str, ItemCategories] = {}
    runs: list[ItemRun] = []
    pairs = [pair for row in rows for pair in row.compared()]
    pairs += [
        (row.row, metric)
        for row in rows
        if not row.baseline
        for metric in filter(is_tested, recipe.score)
    ]
    for name, metric in dict.fromkeys(pairs):
        if not (seeds := outputs.seeds(name, metric)):
            continue
        text = pack_items(outputs.items(name, metric))
        group = sha256(text.encode()).hexdigest()[:8]
        copies[group] = text
        kinds = _categories(outputs, name, metric)
        if kinds.name:
            categories[kinds.name] = kinds
        counted = sha256(json.dumps(outputs.counted(name, metric)).encode()).hexdigest()[:8]
        for seed in seeds:
            packed = pack(outputs.statistics(name, seed, metric))
            runs.append(ItemRun(name, seed, metric, group, packed, kinds.name, counted))
    if runs:
        head = (study_hash, recipe.score, tuple(recipe.primary), recipe.seeds, tuple(rows), copies)
        keys = tuple(dict.fromkeys(result.run for result in results))
        more = (
            tuple(categories.values()),
            keys,
            recipe.budget,
            _completed(outputs.folder, results),
        )
        write_file(path, ItemFile(*head, tuple(runs), *more))


def _completed(folder: Path, results: Sequence[Result]) -> dict[str, str]:
    """By run what the logs of the study told of it beyond runs.jsonl."""
    recorded = {result.key: result for result in read_results(results_file(folder))}
    return {
        run_name(result.method, result.seed): json.dumps([result.ended, result.seconds])
        for result in results
        if result.key in recorded and result != recorded[result.key]
    }


def _categories(outputs: Outputs, row: str, metric: str) -> ItemCategories:
    """The category of each line that a metric counts, with a name; that is "" where there are none."""
    try:
        names, indices = outputs.categories(row, metric)
    except TreeSyntaxError:  # the report's section says so
        names = ()
    if not names:
        return ItemCategories("", (), "")
    packed = pack(indices[:, None])
    name = sha256("\n".join([*names, packed]).encode()).hexdigest()[:8]
    return ItemCategories(name, names, packed)
