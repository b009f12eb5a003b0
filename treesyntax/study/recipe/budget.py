"""When trainings end: by themselves (``train.patience``), at a cap, or after a given budget."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from treesyntax.errors import OptionError
from treesyntax.study.recipe.axes import METHODS
from treesyntax.study.recipe.recipe import FIXED, Recipe, with_content
from treesyntax.study.recipe.search import SEARCH

PATIENCE = "patience"
LIMITS = ("max-update", "max-epoch")


def has_patience(recipe: Recipe) -> bool:
    """Return whether the trainings of all rows may end by themselves."""
    flags = (recipe.flags(method, "train") for method in recipe.methods)
    return all(int(own.get(PATIENCE) or 0) > 0 for own in flags)


def restless(recipe: Recipe) -> str:
    """Return what to do where no training can rest, so that no comparison will have a mark; else ""."""
    if recipe.budget == FIXED or has_patience(recipe):
        return ""
    return (
        "trainings end at a cap, so nobody will know if they had learned all they can, and no comparison will have a "
        "mark: set train.patience (validations without a better score), or budget: fixed if the question is what "
        "so many updates bring"
    )


def trained_on(recipe: Recipe, factor: float) -> Recipe:
    """Return a recipe whose trainings may go on for that many times the updates and epochs.

    Raises:
        OptionError: if there is no cap in numbers, or settings of a search depend on it.
    """
    option = f"--train-on {factor:g}"
    if not factor > 1:
        raise OptionError(f"{option}: give a number above 1, such as 2 for twice the updates")
    if recipe.search is not None and not {*LIMITS} & {*recipe.search.train}:
        raise OptionError(
            f"{option}: {recipe.path} has a {SEARCH} whose trials have the same cap and would be made anew; "
            f"give the chosen.yaml of the study's folder as the recipe, or {SEARCH}.train a max-update"
        )
    content = copy.deepcopy(recipe.content)
    places = list(_caps(content))
    if not places:
        raise OptionError(f"{option}: {recipe.path} has no train.max-update and no train.max-epoch")
    for section, key in places:
        section[key] = _longer(section[key], factor, f"{option}: {recipe.path}: {key}")
    return with_content(recipe, content)


def _caps(content: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Where a recipe says how long trainings may go on."""
    sections = [content["train"]]
    sections += [method.get("train", {}) for method in content[METHODS].values()]
    sections += content.get("axes", {}).values()
    for section in sections:
        for key in section:
            if key.replace("_", "-").rpartition(".")[2] in LIMITS and section[key]:
                yield section, key


def _longer(value: Any, factor: float, place: str) -> Any:
    if isinstance(value, list):
        return [_longer(item, factor, place) for item in value]
    if isinstance(value, dict):
        return {label: _longer(item, factor, place) for label, item in value.items()}
    if value in (None, False, 0):
        return value
    if isinstance(value, bool) or not str(value).isdecimal():
        raise OptionError(f"{place} is {value!r}; set it to a larger number with --set")
    return round(int(value) * factor)
