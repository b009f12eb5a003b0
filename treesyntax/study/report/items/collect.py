"""The scores by test item of a study's outputs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from treesyntax.errors import TreeSyntaxError
from treesyntax.metrics.line_file import pack
from treesyntax.study.recipe.rows import run_name
from treesyntax.study.report.items.file import (
    ITEMS_FILE,
    ItemCategories,
    ItemFile,
    ItemRun,
    pack_items,
    write_file,
)
from treesyntax.study.results.outputs import Outputs
from treesyntax.study.results.results import RESULTS_FILE, Result, read_results
from treesyntax.study.results.rows import ItemRow, is_tested


def write_items(
    outputs: Outputs, rows: Sequence[ItemRow], study_hash: str, results: Sequence[Result]
) -> None:
    """Write the scores of all rows that the table or the map compares, or may compare with a row of another part.

    A file is kept if there are none, since outputs or references may be gone.
    """
    recipe = outputs.plan.recipe
    path = outputs.folder / "tables" / ITEMS_FILE
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
        own = _categories(outputs, name, metric)
        if own.name:
            categories[own.name] = own
        for seed in seeds:
            packed = pack(outputs.statistics(name, seed, metric))
            runs.append(ItemRun(name, seed, metric, group, packed, own.name))
    if runs:
        head = (study_hash, recipe.score, tuple(recipe.primary), recipe.seeds, tuple(rows), copies)
        keys = tuple(dict.fromkeys(result.run for result in results))
        kinds, completed = tuple(categories.values()), _completed(outputs.folder, results)
        items = ItemFile(*head, tuple(runs), kinds, keys, recipe.budget, completed)
        write_file(path, items)


def _completed(folder: Path, results: Sequence[Result]) -> dict[str, str]:
    """By run what the logs of the study told of it beyond results.jsonl."""
    recorded = {one.key: one for one in read_results(folder / RESULTS_FILE)}
    return {
        run_name(one.method, one.seed): json.dumps([one.ended, one.seconds])
        for one in results
        if one.key in recorded and one != recorded[one.key]
    }


def _categories(outputs: Outputs, row: str, metric: str) -> ItemCategories:
    """The category of each line that a metric counts, with a name; that is "" where there are none."""
    try:
        names, indices = outputs.categories(row, metric)
    except TreeSyntaxError:  # the report's section says so
        names = ()
    if not names:
        return ItemCategories("", (), "")
    places = pack(indices[:, None])
    name = sha256("\n".join([*names, places]).encode()).hexdigest()[:8]
    return ItemCategories(name, names, places)
