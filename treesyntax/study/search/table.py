"""The trials of a search as a table for the report."""

from __future__ import annotations

import json
from pathlib import Path

from treesyntax.study.recipe.recipe import Method, Recipe
from treesyntax.study.recipe.search import Search, Settings
from treesyntax.study.search.choice import tried_by, winner_line, winner_of
from treesyntax.study.search.records import Record, read_records


def trial_table(
    recipe: Recipe, search: Search, folder: Path
) -> tuple[tuple[str, ...], list[list[str]], list[str]]:
    """Header, a row for each row of the study and each of the settings, and a note for each row."""
    known = {_place(one.row, one.settings, one.seed): one for one in read_records(folder)}

    def find(row: Method, label: str, seed: int) -> Record | None:
        return known.get(_place(row.name, search.settings[label], seed))

    rows, notes = [], [f"Settings {search.reason}; no trial reads the test set"]
    for method in recipe.methods:
        tried = tried_by(recipe, search, method, find)
        best = winner_of(search, tried)
        notes.append(winner_line(method.name, search, tried))
        for one in tried:
            figure = "–" if one.figure is None else f"{one.figure:.4g}"
            said = "chosen" if one is best else one.failed.partition(";")[0]
            said = ", ".join([*filter(None, [said]), *(["still learning"] if one.learning else [])])
            values = map(str, one.settings.values())
            rows.append([method.name, *values, figure, said])
    return ("row", *search.flags, f"valid {search.metric}", ""), rows, notes


def _place(row: str, settings: Settings, seed: int) -> tuple[str, str, int]:
    return row, json.dumps(settings, sort_keys=True), seed
