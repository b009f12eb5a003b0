"""Axes of a study: options that vary, and the rows that they make.

An axis has a name and one or more options with a list of values each::

    axes:
      control: {binarize.source-control: [given, random, flat]}
      pairs: {vars.pairs: [1000, 4000]}

Options are named as in ``--set``: flags of ``binarize``, ``train`` and ``generate`` for all methods,
variables (``vars.NAME``), or with ``methods.NAME.`` before them a flag or the ``arch`` of one method,
which alone is then expanded. Options of one axis vary together, in pairs; several axes make the
grid of all their values. Rows are named by method, axis and value, such as
``relation_mask-control=random-pairs=1000``. Where a value makes no good name, write values as
``{label: value}`` instead of a list. A method with ``at: {AXIS: [LABEL, ...]}`` stands at these points of an axis
alone, such as a row that makes sense for some data sets only. Seeds are an axis of their own and listed under ``seeds``.
"""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from treesyntax.study.recipe.checks import RESERVED, Check, option_name

Point = tuple[tuple[str, str], ...]
"""Label by axis."""

CONTROL = "/"
"""Between the name of a method and the kind of trees, in the name of a control."""
METHODS, VARIABLES, ARCH, AT = "methods", "vars", "arch", "at"
LONGEST = 40
LABEL = re.compile(r"[\w.+-]+")


@dataclass(frozen=True)
class Axis:
    """Options that vary together.

    Attributes:
        labels: one for each position on the axis.
        options: by name the values of each position.
    """

    name: str
    labels: tuple[str, ...]
    options: dict[str, tuple[Any, ...]]

    @property
    def shared(self) -> set[str]:
        """Options that vary for all methods alike."""
        return {option for option in self.options if not option.startswith(f"{METHODS}.")}

    def applies(self, method: str) -> bool:
        """Whether it varies anything of that method, or of the one that it is a control of."""
        names = (method, method.partition(CONTROL)[0])
        return bool(self.shared) or any(option.split(".")[1] in names for option in self.options)


@dataclass(frozen=True)
class Variant:
    """A method at a point of the grid, as the recipe would have it written out.

    Attributes:
        name: of the row.
        base: the method's name in the recipe.
        content: the method's entry with the point's flags.
        variables: the method's own and the point's.
    """

    name: str
    base: str
    point: Point
    content: dict[str, Any]
    variables: dict[str, Any]


def read_axes(value: Any, recipe: Mapping[str, Any], check: Check) -> tuple[Axis, ...]:
    """The entry ``axes`` of a recipe, checked: its options must name methods and variables of it."""
    axes = []
    owner: dict[str, str] = {}
    for name, content in check.mapping(value, "axes").items():
        axis_key = f"axes.{name}"
        check.folder_name(name, f"the axis name {name!r}")
        if not check.mapping(content, axis_key):
            raise check.error(
                axis_key, "is empty; name at least one option, such as train.lr: [1, 2]"
            )
        for option in content:
            _check_option(option, axis_key, recipe, check)
            if (key := option_name(option)) in owner:
                raise check.error(axis_key, f"varies {option}, as {owner[key]} does")
            owner[key] = axis_key
        axes.append(_axis(name, content, axis_key, check))
    return tuple(axes)


def _check_option(option: Any, axis_key: str, recipe: Mapping[str, Any], check: Check) -> None:
    names = str(option).split(".")
    inner = names
    if names[0] == METHODS:
        if len(names) < 3 or names[1] not in recipe[METHODS]:
            raise check.error(
                axis_key, f"varies {option}; the methods are {', '.join(recipe[METHODS])}"
            )
        inner = names[2:]
        if inner == [ARCH]:
            return
    elif names[0] == VARIABLES and len(names) == 2:
        if names[1] not in recipe[VARIABLES]:
            raise check.error(axis_key, f"varies {option}, which is not a variable under vars")
        return
    if len(inner) != 2 or inner[0] not in RESERVED:
        raise check.error(
            axis_key,
            f"varies {option!r}; an axis varies flags (binarize.FLAG, train.FLAG, generate.FLAG), "
            "variables (vars.NAME) or one method's flags and arch (methods.NAME.…); "
            "seeds are listed under seeds",
        )


def _axis(name: str, content: Mapping[str, Any], axis_key: str, check: Check) -> Axis:
    labels: list[str] = []
    options: dict[str, tuple[Any, ...]] = {}
    for option, values in content.items():
        if not isinstance(values, list | dict) or not values:
            raise check.error(
                axis_key, f"gives {option} the values {values!r}; write a list, or {{label: value}}"
            )
        labels = labels or _labels(values, f"{axis_key}.{option}", check)
        if isinstance(values, dict):
            by_label = dict(
                zip(_labels(values, f"{axis_key}.{option}", check), values.values(), strict=True)
            )
            if set(by_label) != set(labels):
                raise check.error(
                    axis_key,
                    f"has the values {', '.join(labels)} for {next(iter(options), option)} but "
                    f"{', '.join(by_label)} for {option}; options of one axis vary together",
                )
            options[option] = tuple(by_label[label] for label in labels)
        else:
            options[option] = tuple(values)
        if len(options[option]) != len(labels):
            raise check.error(
                axis_key,
                f"has {len(labels)} values for {next(iter(options))} but {len(options[option])} "
                f"for {option}; options of one axis vary together",
            )
    return Axis(name, tuple(labels), options)


def _labels(values: Sequence[Any] | Mapping[Any, Any], option_key: str, check: Check) -> list[str]:
    if isinstance(values, Mapping):
        labels = [str(label) for label in values]
        if odd := [label for label in labels if not LABEL.fullmatch(label)]:
            raise check.error(
                option_key, f"has the label {odd[0]!r}; use letters, digits, _, -, + and ."
            )
    else:
        labels = [label_of(value) for value in values]
    if len(set(labels)) < len(labels) or not all(0 < len(label) <= LONGEST for label in labels):
        raise check.error(
            option_key,
            f"would be labelled {', '.join(labels)}; name its values: {{label: value, …}}",
        )
    return labels


def label_of(value: Any) -> str:
    """A value as a part of a row's name."""
    text = str(value).lower() if value is None or isinstance(value, bool) else str(value)
    return re.sub(r"[^\w.+-]+", "_", text).strip("_")


def check_places(methods: Mapping[str, dict[str, Any]], axes: Sequence[Axis], check: Check) -> None:
    """The entries ``at`` of methods must name axes that vary them, and labels of these."""
    for method, content in methods.items():
        labels = {axis.name: axis.labels for axis in axes if axis.applies(method)}
        for axis, chosen in content.get(AT, {}).items():
            key = f"{METHODS}.{method}.{AT}.{axis}"
            if axis not in labels:
                known = ", ".join(labels) or "none"
                raise check.error(key, f"is no axis of the method; it has {known}")
            if not isinstance(chosen, list) or not chosen:
                raise check.error(key, f"is {chosen!r}; it must be a list of labels")
            for label in map(str, chosen):
                check.one_of(label, key, labels[axis])


def shared_point(point: Point, axes: Sequence[Axis]) -> Point:
    """The part of a point on axes that vary something for all methods."""
    shared = {axis.name for axis in axes if axis.shared}
    return tuple(coordinate for coordinate in point if coordinate[0] in shared)


def expand(axes: Sequence[Axis], methods: Mapping[str, dict[str, Any]]) -> Iterator[Variant]:
    """All rows: each method of a recipe at each point of the axes that apply to it."""
    for method, content in methods.items():
        method_axes = [axis for axis in axes if axis.applies(method)]
        for positions in itertools.product(*(range(len(axis.labels)) for axis in method_axes)):
            point = tuple(
                (axis.name, axis.labels[at])
                for axis, at in zip(method_axes, positions, strict=True)
            )
            chosen_labels = content.get(AT, {})
            if any(
                label not in map(str, chosen_labels.get(axis, [label])) for axis, label in point
            ):
                continue
            name = "-".join([method, *(f"{axis}={label}" for axis, label in point)])
            variables = dict(content.get(VARIABLES, {}))
            variant = Variant(name, method, point, copy.deepcopy(content), variables)
            for axis, at in zip(method_axes, positions, strict=True):
                for option, values in sorted(
                    axis.options.items(), key=lambda item: CONTROL in item[0]
                ):
                    _set(variant, option.split("."), values[at])
            yield variant


def check_names(variants: Sequence[Variant], check: Check) -> None:
    """Refuse two rows of one name, which would share a folder: ``a`` at ``b-c=1`` and ``a-b`` at ``c=1``."""
    bases: dict[str, str] = {}
    for variant in variants:
        if (base := bases.setdefault(variant.name, variant.base)) != variant.base:
            raise check.error(
                f"methods.{variant.base}",
                f"has the row {variant.name}, as {base} does; rename the method or the axis",
            )


def _set(variant: Variant, keys: list[str], value: Any) -> None:
    """Set one option, unless it is another method's."""
    if keys[0] == METHODS:  # of a method's controls too, and what names a control comes later
        if keys[1] not in (variant.base, variant.base.partition(CONTROL)[0]):
            return
        keys = keys[2:]
    if keys == [ARCH]:
        variant.content[ARCH] = value
    elif keys[0] == VARIABLES:
        variant.variables[keys[1]] = value
    else:
        variant.content.setdefault(keys[0], {})[keys[1]] = value
