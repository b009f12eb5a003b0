"""The scores by test item of a study's outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from treesyntax.errors import TreeSyntaxError
from treesyntax.metrics.line_file import pack
from treesyntax.study.recipe.recipe import Method
from treesyntax.study.report.breakdown import Quantity
from treesyntax.study.report.categories import read_categories
from treesyntax.study.report.domains import Domain, find_domains, plans_by_test_set
from treesyntax.study.report.items.file import (
    ITEMS_FILE,
    ItemCategories,
    ItemFile,
    ItemRow,
    ItemRun,
    pack_items,
    write_file,
)
from treesyntax.study.report.map.cells import map_rows
from treesyntax.study.results.comparisons import Comparison
from treesyntax.study.results.current import Comparable
from treesyntax.study.results.item_scores import ItemScores
from treesyntax.study.results.results import Result
from treesyntax.study.results.significance import is_tested
from treesyntax.study.run.plan import Plan


def write_items(
    plan: Plan,
    folder: Path,
    study_hash: str,
    results: Sequence[Result],
    comparisons: Sequence[Comparison],
    may_compare: Comparable,
) -> None:
    """Write the scores of all rows that the table or the map compares, or may compare with a row of another part.

    A file is kept if there are none, since outputs or references may be gone.
    """
    path, scores = folder / "tables" / ITEMS_FILE, ItemScores(plan, folder, results)
    strongest = {row.name: best.name for row, best in map_rows(scores, results, may_compare)}
    rows = _rows(plan, results, comparisons, strongest)
    methods = {method.name: method for method in plan.recipe.methods}
    copies: dict[str, str] = {}
    quantities, categories = _quantities(plan, folder), dict[str, ItemCategories]()
    runs: list[ItemRun] = []
    pairs = [pair for row in rows for pair in row.compared()]
    pairs += [
        (row.row, metric)
        for row in rows
        if not row.baseline and scores.has_references(methods[row.row])
        for metric in filter(is_tested, plan.recipe.score)
    ]
    for name, metric in dict.fromkeys(pairs):
        text = pack_items(scores.items(name, metric))
        group = sha256(text.encode()).hexdigest()[:8]
        copies[group] = text
        own = ""
        if name in quantities:
            found = _categories(scores, methods[name], metric, quantities[name])
            own = found.name
            categories[own] = found
        for run in scores.runs(methods[name], metric):
            key = scores.key([[run], [run]], metric)[:16]
            packed = pack(scores.by_line(run, metric))
            runs.append(ItemRun(name, run.seed, metric, group, packed, key, own))
    if runs:
        recipe = plan.recipe
        head = (study_hash, recipe.score, tuple(recipe.primary), recipe.seeds)
        outputs = tuple(dict.fromkeys(result.run for result in results))
        found_categories = tuple(categories.values())
        write_file(path, ItemFile(*head, rows, copies, tuple(runs), found_categories, outputs))


def _quantities(plan: Plan, folder: Path) -> dict[str, Quantity]:
    """By row the category of each line, where the recipe gives them and they can be read."""
    found: dict[str, Quantity] = {}
    for part in plans_by_test_set(plan).values():
        try:
            quantity = read_categories(part, folder)
        except TreeSyntaxError:  # the report's section says so
            continue
        found |= {method.name: quantity for method in part.recipe.methods if quantity}
    return found


def _categories(
    scores: ItemScores, method: Method, metric: str, quantity: Quantity
) -> ItemCategories:
    lines = scores.chosen(method, metric, len(quantity.values))
    places = pack(np.array([quantity.values[line] for line in lines])[:, None])
    name = sha256("\n".join([*quantity.names, places]).encode()).hexdigest()[:8]
    return ItemCategories(name, quantity.names, places)


def _rows(
    plan: Plan,
    results: Sequence[Result],
    comparisons: Sequence[Comparison],
    strongest: Mapping[str, str],
) -> tuple[ItemRow, ...]:
    domains, scored = find_domains(plan.recipe), {result.method for result in results}
    baselines = {one.method: one.baseline for one in comparisons}
    return tuple(
        ItemRow(
            name,
            *domains.get(name, Domain("", name)),
            method.primary,
            baselines.get(name, ""),
            tuple(one.metric for one in comparisons if one.method == name),
            strongest.get(name, ""),
            (plan.recipe.baseline_of(method) or method).name,
        )
        for method in plan.recipe.methods
        if (name := method.name) in scored
    )
