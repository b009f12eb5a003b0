"""The scores by test item of a study's outputs."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from treesyntax.errors import InputError
from treesyntax.study.report.domains import Domain, find_domains
from treesyntax.study.report.items.file import (
    ITEMS_FILE,
    ItemFile,
    ItemRow,
    ItemRun,
    pack,
    pack_items,
    read_items,
    write_file,
)
from treesyntax.study.report.map.cells import map_rows
from treesyntax.study.results.comparisons import Comparison
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
) -> None:
    """Write the scores of all rows that the table or the map compares, or may compare with a row of another part.

    A file is kept if there are none, since outputs or references may be gone. Scores of outputs that
    have not changed are taken from it.
    """
    path, scores = folder / "tables" / ITEMS_FILE, ItemScores(plan, folder, results)
    rows = _rows(plan, scores, results, comparisons)
    methods = {method.name: method for method in plan.recipe.methods}
    try:
        known = {run.key: run.scores for run in read_items(path).runs}
    except InputError:
        known = {}
    copies: dict[str, str] = {}
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
        for run in scores.runs(methods[name], metric):
            key = scores.key([[run], [run]], metric)[:16]
            packed = known.get(key) or pack(scores.by_line(run, metric))
            runs.append(ItemRun(name, run.seed, metric, group, packed, key))
    if runs:
        recipe = plan.recipe
        head = (study_hash, recipe.score, tuple(recipe.primary), recipe.seeds)
        write_file(path, ItemFile(*head, rows, copies, tuple(runs)))


def _rows(
    plan: Plan, scores: ItemScores, results: Sequence[Result], comparisons: Sequence[Comparison]
) -> tuple[ItemRow, ...]:
    domains, scored = find_domains(plan.recipe), {result.method for result in results}
    strongest = {row.name: baseline.name for row, baseline in map_rows(scores, results)}
    baselines = {one.method: one.baseline for one in comparisons}
    return tuple(
        ItemRow(
            name,
            *domains.get(name, Domain("", name)),
            method.primary,
            baselines.get(name, ""),
            tuple(one.metric for one in comparisons if one.method == name),
            strongest.get(name, ""),
        )
        for method in plan.recipe.methods
        if (name := method.name) in scored
    )
