"""Which settings win: for each row those with the best figure on the validation set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml

from treesyntax.endings import CAP, LAST
from treesyntax.files import write_text
from treesyntax.metrics.conclusions import MOST_LEARNING
from treesyntax.study.recipe.axes import METHODS
from treesyntax.study.recipe.budget import REST
from treesyntax.study.recipe.reading import EXTENDS, IMPORT
from treesyntax.study.recipe.recipe import RECIPE_FILE, Method, Recipe
from treesyntax.study.recipe.search import (
    CHOSEN_FILE,
    LOWER,
    SEARCH,
    Search,
    Settings,
    shown,
)
from treesyntax.study.search.records import Record

UNRESTED = (CAP, LAST)
Find = Callable[[Method, str, int], Record | None]
"""The trial of a row with the settings of a label and a seed, if it was made."""


@dataclass(frozen=True)
class Tried:
    """Settings that a row tried.

    Attributes:
        figure: mean over the seeds; None if a trial failed or is not made yet.
        failed: why.
        done: whether the trials of all seeds were made.
        learning: how many of these were still learning when they ended; 0 where the budget is fixed.
    """

    settings: Settings
    figure: float | None
    failed: str
    done: bool
    learning: int = 0


def figure_of(recipe: Recipe, search: Search, record: Record) -> float | None:
    """The figure of what would be tested: the best, or the mean of as many as are averaged."""
    values = record.figures.get(search.metric, [])
    if record.failed or not values:
        return None
    if recipe.average:
        return fmean(values[-recipe.average :])
    return (min if search.metric in LOWER else max)(values)


def tried_by(recipe: Recipe, search: Search, row: Method, find: Find) -> list[Tried]:
    """All settings of the search, with what a row reached with them."""
    rows = []
    for label, settings in search.settings.items():
        records = [find(row, label, seed) for seed in search.seeds]
        made = [record for record in records if record is not None]
        figures = [figure_of(recipe, search, record) for record in made]
        known = [figure for figure in figures if figure is not None]
        whole = len(known) == len(records)
        failed = next((record.failed for record in made if record.failed), "")
        learning = sum(record.ended in UNRESTED for record in made) if recipe.budget == REST else 0
        figure = fmean(known) if whole else None
        rows.append(Tried(settings, figure, failed, len(made) == len(records), learning))
    return rows


def winner_of(search: Search, tried: Sequence[Tried]) -> Tried | None:
    """The first with the best figure; None before all trials are made, and if all failed."""
    known = [(attempt.figure, attempt) for attempt in tried if attempt.figure is not None]
    if not known or not all(attempt.done for attempt in tried):
        return None
    sign = 1 if search.metric in LOWER else -1
    return min(known, key=lambda pair: sign * pair[0])[1]


def winner_line(row: str, search: Search, tried: Sequence[Tried]) -> str:
    """The winner, or why there is none."""
    best = winner_of(search, tried)
    if best is not None:
        return (
            f"{row}: {shown(best.settings)} (valid {search.metric} {best.figure:.4g}, best "
            f"of {len(tried)} trials{_still_learning(search, tried)})"
        )
    if all(attempt.done for attempt in tried):
        return f"{row}: all {len(tried)} trials failed: {tried[0].failed}"
    return f"{row}: {sum(attempt.done for attempt in tried)} of {len(tried)} trials are made"


def _still_learning(search: Search, tried: Sequence[Tried]) -> str:
    """What to do where more than a third of the trials were still learning, "" else."""
    trials, learning = len(tried) * len(search.seeds), sum(attempt.learning for attempt in tried)
    if learning <= MOST_LEARNING * trials:
        return ""
    return (
        f"; {learning} of {trials} trainings were still learning when they ended, and longer ones may choose "
        "otherwise: raise search.train.max-update"
    )


def choose(recipe: Recipe, search: Search, winners: dict[str, Settings]) -> dict[str, Any]:
    """The entries of a recipe that give rows the settings that won.

    Args:
        recipe: the study's.
        search: its search.
        winners: by the name of a row; a row without any keeps what it has.
    """
    entries: dict[str, Any] = {
        "differences": {f"train.{flag}": search.reason for flag in search.flags}
    }
    for row in recipe.methods:
        if not row.point and row.name in winners:
            methods = entries.setdefault("methods", {})
            methods[row.name] = {"train": dict(winners[row.name])}
    for axis in recipe.axes:
        rows = {(row.base, label): row for row in recipe.methods for _, label in row.point}
        bases = dict.fromkeys(row.base for row in recipe.methods if row.name in winners)
        options = {
            f"{METHODS}.{base}.train.{flag}": [
                _value(recipe, rows.get((base, label)), flag, winners) for label in axis.labels
            ]
            for base in bases
            if axis.applies(base)
            for flag in search.flags
        }
        if options:
            entries.setdefault("axes", {})[axis.name] = options
    return entries


def _value(recipe: Recipe, row: Method | None, flag: str, winners: dict[str, Settings]) -> Any:
    """A flag of a row that may not stand at this point of its axis."""
    if row is None:
        return None
    return winners.get(row.name, recipe.flags(row, "train")).get(flag)


def write_chosen(
    folder: Path, recipe: Recipe, entries: dict[str, Any], lines: Iterable[str]
) -> None:
    """Write a recipe that has the settings and makes no search; it extends the study's own."""
    content: dict[str, Any] = {EXTENDS: RECIPE_FILE, SEARCH: None}
    if recipe.imports:
        content[IMPORT] = [str(file.absolute()) for file in recipe.own_files]
    text = yaml.safe_dump({**content, **entries}, sort_keys=False, allow_unicode=True, width=100)
    notes = "".join(f"# {' '.join(line.splitlines())}\n" for line in lines)
    write_text(folder / CHOSEN_FILE, f"# treesyntax study {folder / CHOSEN_FILE}\n#\n{notes}{text}")
