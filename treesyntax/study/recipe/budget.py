"""When trainings end: by themselves (``train.patience``), at a cap, or after a given budget.

``budget: fixed`` says that the question is what a given number of updates brings. ``train-on: 2`` lets
trainings go on to twice the updates and epochs that the recipe says, and the rest of the recipe stays as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from treesyntax.study.recipe.axes import METHODS
from treesyntax.study.recipe.checks import Check, Flags, whole_number
from treesyntax.study.recipe.search import SEARCH

REST, FIXED = BUDGETS = "rest", "fixed"
"""What ``budget`` may be; the first is the default."""
TRAIN_ON = "train-on"
LIMITS = ("max-update", "max-epoch")


def restless(budget: str, trainings: Iterable[Flags]) -> str:
    """Return what to do where no training can rest, so that no comparison will have a mark; else "".

    Args:
        budget: of the recipe.
        trainings: the flags of training of each row.
    """
    if budget == FIXED or all(whole_number(flags.get("patience")) > 0 for flags in trainings):
        return ""
    return (
        "trainings end at a cap, so no comparison will have a mark: set train.patience (validations without a better "
        "score), or budget: fixed if the question is what so many updates bring"
    )


def factor_of(content: Mapping[str, Any], check: Check) -> float:
    """Return how many times longer than a recipe says its trainings may go on."""
    factor = content.get(TRAIN_ON, 1)
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 1 <= factor < 1e6:
        raise check.error(
            TRAIN_ON, f"is {factor!r}; it must be a number from 1 on, 2 for twice the updates"
        )
    return factor


def trained_on(content: dict[str, Any], check: Check) -> dict[str, Any]:
    """Return the entries of a recipe with the caps of its trainings raised as ``train-on`` says.

    Raises:
        OptionError: if there is no cap in numbers, or settings of a search depend on it.
    """
    factor = factor_of(content, check)
    if factor == 1:
        return content
    longer = copy.deepcopy(content)
    if SEARCH in content and not {*LIMITS} & {*content[SEARCH].get("train", {})}:
        raise check.error(
            TRAIN_ON,
            f"is {factor:g}, but the trials of the {SEARCH} have the same cap and would be made anew; give the "
            f"chosen.yaml of the study's folder as the recipe, or {SEARCH}.train a max-update",
        )
    caps = list(_caps(longer))
    if not caps:
        raise check.error(
            TRAIN_ON,
            f"is {factor:g}, but there is no train.max-update and no train.max-epoch; a pretrained model trains anew "
            "with a larger train.num_train_epochs or train.max_steps",
        )
    for section, key in caps:
        section[key] = _longer(section[key], factor, key, check)
    return longer


def _caps(content: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Where a recipe says how long trainings may go on."""
    sections = [content["train"]]
    sections += [method.get("train", {}) for method in content[METHODS].values()]
    sections += content.get("axes", {}).values()
    for section in sections:
        for key in section:
            if key.replace("_", "-").rpartition(".")[2] in LIMITS and section[key]:
                yield section, key


def _longer(value: Any, factor: float, key: str, check: Check) -> Any:
    if isinstance(value, list):
        return [_longer(item, factor, key, check) for item in value]
    if isinstance(value, dict):
        return {label: _longer(item, factor, key, check) for label, item in value.items()}
    if value in (None, False, 0):
        return value
    if isinstance(value, bool) or not str(value).isdecimal():
        raise check.error(
            TRAIN_ON, f"is {factor:g}, but {key} is {value!r}; set that to a larger number"
        )
    return round(int(value) * factor)
