"""``search:`` in a recipe: settings of training that are found on validation data.

All rows try the same settings, so each has as many trials as the others::

    search:
      over: {train.lr: [0.0005, 0.001, 0.002], train.dropout: [0.1, 0.3]}
      metric: accuracy
      seeds: [1]
      train: {max-update: 500}

With ``kind: grid`` these are all combinations of the values. With ``kind: random`` as many as
``trials`` says are drawn, always the same ones for a ``seed``; a flag then has a list of values or a
range, ``{log: [1e-4, 1e-2]}`` or ``{uniform: [0, 0.3]}``. A range between whole numbers has whole
numbers. What ``train`` holds is for the trials alone.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from treesyntax.files import sha256_of_value
from treesyntax.study.recipe.axes import LONGEST, Axis, label_of
from treesyntax.study.recipe.checks import Check, Flags, flag_name
from treesyntax.study.recipe.rows import Method

SEARCH = "search"
"""The recipe's key, the axis of the trials, and the folder of the trials inside the study's."""
TRIALS_FILE, CHOSEN_FILE = "search.jsonl", "chosen.yaml"
"""In the study's folder: what the trials gave, and a recipe with the settings that won."""
FOUND = "found by search"
"""How the reason begins why rows differ in a setting, where a search chose it."""
GRID, RANDOM = "grid", "random"
LOWER = ("loss", "nll_loss", "ppl")
METRICS = (*LOWER, "accuracy")
"""What fairseq-train reports of the validation set; all but `LOWER` are better when higher."""
OF_THE_LOSS = ("criterion", "label-smoothing")
"""Flags that change what a loss means, so that losses say nothing of them."""
OPTIONAL = ("kind", "trials", "seed", "metric", "seeds", "train")
RANGES = ("log", "uniform")
MOST_DRAWS = 100
"""Draws for each trial until a new setting must have come."""

Settings = dict[str, Any]
"""Values of training by flag."""


@dataclass(frozen=True)
class Search:
    """What is tried, and how it is judged.

    Attributes:
        settings: of the trials, by a label for the names of trials; the same for all rows.
        metric: on the validation set, as training reports it.
        seeds: of the trials; the figure of a setting is the mean over them.
        train: flags of the trials alone.
    """

    settings: dict[str, Settings]
    metric: str
    seeds: tuple[int, ...]
    train: Flags

    @property
    def flags(self) -> list[str]:
        """The flags that are searched."""
        return list(next(iter(self.settings.values())))

    @property
    def reason(self) -> str:
        """Why rows may differ in these flags."""
        return f"{FOUND} with {len(self.settings)} trials each, on validation ({self.metric})"


def shown(settings: Settings) -> str:
    """Settings in words."""
    return ", ".join(f"{flag} {value}" for flag, value in settings.items())


def read_search(
    value: Any, axes: Sequence[Axis], methods: Sequence[Method], seeds: Sequence[int], check: Check
) -> Search:
    """The entry ``search`` of a recipe, checked.

    Args:
        value: of the entry.
        axes: of the recipe.
        methods: its rows.
        seeds: of the recipe; the first is that of the trials unless the entry names others.
        check: of the recipe.
    """
    check.keys(value, SEARCH, ("over",), OPTIONAL)
    train = check.flags(value.get("train", {}), f"{SEARCH}.train", "train")
    over = _over(value["over"], check)
    metric = check.one_of(value.get("metric", "loss"), f"{SEARCH}.metric", METRICS)
    for flag in over:
        if flag in train:
            raise check.error(f"{SEARCH}.train", f"sets {flag}, which {SEARCH}.over varies")
        if flag in OF_THE_LOSS and metric != "accuracy":
            raise check.error(
                f"{SEARCH}.over", f"varies {flag}, so {metric} means another thing in each trial; "
                f"set {SEARCH}.metric to accuracy",
            )  # fmt: skip
    for axis in axes:
        for flag in (*over, *train):
            if f"train.{flag}" in axis.options:
                raise check.error(SEARCH, f"sets train.{flag}, which axes.{axis.name} varies")
        if axis.name == SEARCH:
            raise check.error(f"axes.{SEARCH}", "has the name of the trials; choose another")
    for method in methods:
        if len(method.point) > 1:
            raise check.error(SEARCH, f"finds settings of rows on one axis; {method.name} has more")
    return Search(
        settings=_labelled(_settings(value, over, check), check),
        metric=metric,
        seeds=check.seeds(value.get("seeds", [seeds[0]]), f"{SEARCH}.seeds"),
        train=train,
    )


def _over(value: Any, check: Check) -> dict[str, Any]:
    """The values of each flag: a list, or a range."""
    over_key = f"{SEARCH}.over"
    if not check.mapping(value, over_key):
        raise check.error(
            over_key, "is empty; name at least one flag, such as train.lr: [0.001, 0.01]"
        )
    values_by_flag = {}
    for option, values in value.items():
        section, _, flag = str(option).partition(".")
        if section != "train" or not flag:
            raise check.error(
                over_key, f"varies {option!r}; name flags of training, such as train.lr"
            )
        key = f"{over_key}.{option}"
        if isinstance(values, dict):
            check.keys(values, key, (), RANGES)
            if len(values) != 1:
                raise check.error(key, f"is {values!r}; write one of {', '.join(RANGES)}")
        elif not isinstance(values, list) or not values or None in values:
            raise check.error(key, f"is {values!r}; write a list of values")
        for item in values if isinstance(values, list) else ():
            check.flags({flag: item}, over_key, "train")
        values_by_flag[flag_name(flag)] = values
    return values_by_flag


def _settings(value: Mapping[str, Any], over: Mapping[str, Any], check: Check) -> list[Settings]:
    kind = check.one_of(value.get("kind", GRID), f"{SEARCH}.kind", (GRID, RANDOM))
    trials = value.get("trials")
    if "trials" in value and check.count(trials, f"{SEARCH}.trials") == 0:
        raise check.error(f"{SEARCH}.trials", "is 0; it must be 1 or more")
    if kind == RANDOM:
        if trials is None:
            raise check.error(SEARCH, "lacks trials; say how many settings are drawn")
        return list(_drawn(value, over, check))
    for flag, values in over.items():
        if isinstance(values, dict):
            key = f"{SEARCH}.over.train.{flag}"
            raise check.error(
                key, f"is a range; write a list of values, or {SEARCH}.kind: {RANDOM}"
            )
    if "seed" in value:
        raise check.error(f"{SEARCH}.seed", f"belongs to {SEARCH}.kind: {RANDOM}")
    grid = [dict(zip(over, point, strict=True)) for point in itertools.product(*over.values())]
    if trials not in (None, len(grid)):
        raise check.error(f"{SEARCH}.trials", f"is {trials}, but the grid has {len(grid)} settings")
    return grid


def _drawn(value: Mapping[str, Any], over: Mapping[str, Any], check: Check) -> Iterator[Settings]:
    """More trials draw the same settings first."""
    draw = random.Random(check.count(value.get("seed", 1), f"{SEARCH}.seed"))
    bounds = {flag: _bounds(flag, item, check) for flag, item in over.items()}
    seen: list[Settings] = []
    for _ in range(MOST_DRAWS * value["trials"]):
        settings = {flag: _draw(over[flag], bounds[flag], draw) for flag in over}
        if settings not in seen:
            seen.append(settings)
            yield settings
        if len(seen) == value["trials"]:
            return
    raise check.error(
        f"{SEARCH}.trials",
        f"is {value['trials']}, but there are only {len(seen)} different settings",
    )


def _bounds(flag: str, values: Any, check: Check) -> tuple[float, float]:
    """The ends of a range; (0, 0) for a list."""
    if isinstance(values, list):
        return 0, 0
    (kind, ends), key = next(iter(values.items())), f"{SEARCH}.over.train.{flag}"
    try:  # YAML reads 1e-4 as text
        low, high = (end if type(end) is int else float(end) for end in ends)
    except (TypeError, ValueError):
        raise check.error(key, f"is {values!r}; write {{{kind}: [LOWEST, HIGHEST]}}") from None
    if not low < high < math.inf or (kind == "log" and low <= 0):
        above = ", both above 0" if kind == "log" else ""
        raise check.error(key, f"is {values!r}; write the lower end first{above}")
    return low, high


def _draw(values: Any, bounds: tuple[float, float], draw: random.Random) -> Any:
    low, high = bounds
    if isinstance(values, list):
        return draw.choice(values)
    at = draw.random()
    value = low * (high / low) ** at if "log" in values else low + (high - low) * at
    return round(value) if type(low) is type(high) is int else float(f"{value:.3g}")


def _labelled(settings: Sequence[Settings], check: Check) -> dict[str, Settings]:
    labelled = {}
    for trial in settings:
        label = "-".join(map(label_of, trial.values()))
        if len(label) > LONGEST:
            label = sha256_of_value(trial)[:8]
        if label in labelled:
            raise check.error(f"{SEARCH}.over", f"has {shown(trial)} twice")
        labelled[label] = trial
    return labelled
