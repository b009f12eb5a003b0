"""``plan.json``: what a study was to compare before its first score was known.

Until a run is scored the file follows the recipe. From then on it stays, and a report tells what differs from it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from treesyntax.errors import InputError, misfit
from treesyntax.files import read_json, sha256_of, write_json
from treesyntax.study.recipe.recipe import SECTIONS, Recipe
from treesyntax.study.results.results import Result, read_results, results_file
from treesyntax.study.run.code import PACKAGE
from treesyntax.study.run.steps import located

PLAN_FILE = "plan.json"
SCORED = ("done/*/score.json", "replaced/*/done/*/score.json")
NO_METRICS: Mapping[str, str] = MappingProxyType({})
UNKNOWN = "The first plan of this study is not known: its first scores are of an older version."
MOST_NAMED = 6


def note_plan(folder: Path, recipe: Recipe, metrics: Mapping[str, str] = NO_METRICS) -> None:
    """Write down what a study is to compare, unless one of its runs was scored before.

    Args:
        folder: of the study.
        recipe: of the study.
        metrics: digests of the user's own code that scores, by the names that results have for it.
    """
    if not _is_scored(folder):
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        files = {"categories": _categories(folder, recipe), "metrics": dict(metrics)}
        write_json(folder / PLAN_FILE, {"date": now, **plan_of(recipe), **files})


def plan_of(recipe: Recipe) -> dict[str, Any]:
    """Return what counts as fixed beforehand: baseline, metrics, runs, budget, and what each row is."""
    return {
        "baseline": recipe.baseline,
        "primary": recipe.primary,
        "score": list(recipe.score),
        "seeds": list(recipe.seeds),
        "strongest": list(recipe.strongest),
        "budget": recipe.budget,
        "average": recipe.average,
        "rows": {
            method.name: {
                "arch": method.arch,
                **{
                    f"{section}.{flag}": str(value)
                    for section in SECTIONS
                    for flag, value in recipe.flags(method, section).items()
                },
            }
            for method in recipe.methods
        },
        "controls": {method.name: list(method.controls) for method in recipe.methods},
    }


def changes_since(folder: Path, recipe: Recipe) -> list[str]:
    """Return what was added or changed after the first score of a study, a sentence each.

    Args:
        folder: of the study.
        recipe: what it compares now.

    Raises:
        InputError: if the plan is damaged.
    """
    file = folder / PLAN_FILE
    if not file.is_file():
        return [UNKNOWN] if _is_scored(folder) else []
    try:
        first, results = read_json(file), read_results(results_file(folder))
        changes = [*_changes(first, plan_of(recipe), _dropped(results, recipe))]
        if _differ(first.get("categories", {}), _categories(folder, recipe)):
            changes.append("Changed after the first score: the categories of test lines.")
        changed = (_differ(first.get("metrics", {}), result.code) for result in results)
        labels = dict.fromkeys(label for of_result in changed for label in of_result)
        packages = [label for label in labels if PACKAGE in label]
        names = [label for label in labels if label not in packages]
        files = [label for label in names if "." in label]
        # A metric that now lies in another file has its name alone.
        for label in (*(files or names), *packages):
            name = label.partition("/")[2]
            changes.append(f"Changed after the first score: {name}, by which outputs are scored.")
        return changes
    except (AttributeError, KeyError, TypeError) as error:
        cause = f"is no plan of a study: {misfit(error)}"
        raise InputError(file, None, cause, "restore it") from None


def _is_scored(folder: Path) -> bool:
    results = results_file(folder)
    has_results = results.is_file() and os.path.getsize(results) > 0
    return has_results or any(next(folder.glob(pattern), None) for pattern in SCORED)


def _categories(folder: Path, recipe: Recipe) -> dict[str, str]:
    """By row the digest of the file with the categories of its test lines, where there is one."""
    files = {row.name: located(row.categories, folder) for row in recipe.methods if row.categories}
    return {row: sha256_of(file) for row, file in files.items() if file.is_file()}


def _differ(first: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What both plans know, and know otherwise."""
    return [name for name, digest in first.items() if now.get(name, digest) != digest]


def _dropped(results: Iterable[Result], recipe: Recipe) -> list[str]:
    rows = {method.name for method in recipe.methods}
    scored = dict.fromkeys(result.method for result in results)
    return [row for row in scored if row not in rows]


def _changes(first: Mapping[str, Any], now: Mapping[str, Any], dropped: list[str]) -> Iterator[str]:
    """What differs between two plans, and rows that were scored and are in neither."""
    if first["baseline"] != now["baseline"]:
        yield f"The baseline was {first['baseline']} before the first score; now it is {now['baseline']}."
    if first["primary"] != now["primary"]:
        before, after = (" and ".join(plan["primary"]) for plan in (first, now))
        yield f"The metric that decides was {before} before the first score; now it is {after}."
    kinds = (("score", "metric"), ("seeds", "seed"), ("strongest", "strongest row"))
    for key, what in kinds:
        more, less = _more_and_less(first.get(key, now[key]), now[key])
        if more:
            yield f"Added after the first score: {_named(more, what)}."
        if less:
            yield f"Taken away after the first score: {_named(less, what)}."
    more, less = _more_and_less(first["rows"], now["rows"])
    if more:
        yield f"Added after the first score: {_named(more, 'row')}."
    if less := list(dict.fromkeys([*less, *dropped])):
        yield f"Taken away after the first score: {_named(less, 'row')}."
    for key in ("budget", "average"):
        if first[key] != now[key]:
            yield f"Changed after the first score: {key} from {first[key]} to {now[key]}."
    changed: dict[str, list[str]] = {}
    for row in now["rows"]:
        before, after = first["rows"].get(row, {}), now["rows"][row]
        for flag in dict.fromkeys((*before, *after)) if before else ():
            if (old := before.get(flag, "none")) != (new := after.get(flag, "none")):
                changed.setdefault(f"{flag} from {old} to {new}", []).append(row)
        old, new = (plan["controls"].get(row, []) for plan in (first, now))
        if before and old != new and row != now["baseline"]:  # which has none, as said above
            names = [", ".join(some) or "none" for some in (old, new)]
            changed.setdefault(f"controls from {names[0]} to {names[1]}", []).append(row)
    for change, rows in changed.items():
        of = "all rows" if len(rows) == len(now["rows"]) else _named(rows, "row")
        yield f"Changed after the first score: {change}, of {of}."


def _more_and_less(before: Any, after: Any) -> tuple[list[Any], list[Any]]:
    return [item for item in after if item not in before], [
        item for item in before if item not in after
    ]


def _named(items: list[Any], what: str) -> str:
    shown = ", ".join(map(str, items[:MOST_NAMED]))
    rest = len(items) - MOST_NAMED
    return f"{what}{'s' * (len(items) > 1)} {shown}" + (f" and {rest} more" if rest > 0 else "")
