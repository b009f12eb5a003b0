"""The trials of a search as a table for the report."""

from __future__ import annotations

import json
from pathlib import Path

from treesyntax.study.recipe.recipe import Method, Recipe
from treesyntax.study.recipe.search import Search, Settings
from treesyntax.study.results.table_text import Table
from treesyntax.study.search.choice import tried_by, winner_line, winner_of
from treesyntax.study.search.records import Record, read_records


def trial_table(recipe: Recipe, search: Search, folder: Path) -> tuple[Table, list[str]]:
    """A line for each row of the study and each of the settings, and a note for each row."""
    known = {
        _trial_key(trial.row, trial.settings, trial.seed): trial for trial in read_records(folder)
    }

    def find(row: Method, label: str, seed: int) -> Record | None:
        return known.get(_trial_key(row.name, search.settings[label], seed))

    rows, notes = [], [f"Settings {search.reason}; no trial reads the test set"]
    for method in recipe.methods:
        tried = tried_by(recipe, search, method, find)
        best = winner_of(search, tried)
        notes.append(winner_line(method.name, search, tried))
        for trial in tried:
            figure = "–" if trial.figure is None else f"{trial.figure:.4g}"
            state = "chosen" if trial is best else trial.failed.partition(";")[0]
            state = ", ".join(filter(None, [state, "still learning" * bool(trial.learning)]))
            values = map(str, trial.settings.values())
            rows.append([method.name, *values, figure, state])
    return Table("", ("row", *search.flags, f"valid {search.metric}", ""), rows), notes


def _trial_key(row: str, settings: Settings, seed: int) -> tuple[str, str, int]:
    return row, json.dumps(settings, sort_keys=True), seed
