"""The rows of a study: methods with their data and their flags, variables replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from treesyntax.study.recipe.axes import AT, Axis, Point, Variant, shared_point
from treesyntax.study.recipe.checks import DATA, RESERVED, Check, Flags, replace_variables

SPLITS = ("train", "valid", "test")
SIDE_KEYS = ("lang", *SPLITS)
SECTIONS = tuple(RESERVED)
ABOUT = "about"
"""What a method is, in a phrase for those who read the plan and the report."""
OWN = ("vars", DATA, AT)
"""What a method may have of its own beside flags: values of variables, files of the source, such as other
trees of the same text, and the points of axes at which it stands."""


@dataclass(frozen=True)
class Side:
    """One language of the data: its code and its three files."""

    lang: str
    train: str
    valid: str
    test: str


@dataclass(frozen=True)
class Method:
    """A row of the table: an architecture, its flags for binarize, and any settings of its own.

    Attributes:
        base: its name in the recipe, which is its own unless axes expand it.
        about: what it is, in a phrase; "" if the recipe does not say.
        point: where it is on the axes.
        source: the data, which axes over variables may vary.
        categories: a file with the category of each line of the test set; "" for none.
        primary: the metric that decides on its test set.
        controls: the names of the rows over trees without syntax that this row is compared with.
        control_of: the name of the row that this row controls, "" for none; a row that controls several
            names the first.
    """

    name: str
    base: str
    about: str
    point: Point
    arch: str
    source: Side
    target: Side
    categories: str
    primary: str
    binarize: Flags
    train: Flags
    generate: Flags
    controls: tuple[str, ...] = ()
    control_of: str = ""


def run_name(row: str, seed: int) -> str:
    """Return the name of a run, which names folders: the slash in the name of a control is a dot there."""
    return f"{row.replace('/', '.')}-{seed}"


def row_of_run(name: str) -> tuple[str, str]:
    """Return the row and the seed of a run by its name, see `run_name`."""
    row, _, seed = name.rpartition("-")
    method, equals, labels = row.partition("=")  # labels of axes may have dots
    return f"{method.replace('.', '/')}{equals}{labels}", seed


def data_files(method: Method) -> Iterator[tuple[str, str]]:
    """The six data files of a row, each with its key in the recipe."""
    for side in ("source", "target"):
        for split in SPLITS:
            yield f"data.{side}.{split}", getattr(getattr(method, side), split)


def make_method(
    variant: Variant,
    raw: dict[str, Any],
    fixed: Mapping[str, Any],
    variables: Mapping[str, str],
    check: Check,
) -> Method:
    """A row; shared flags with variables that vary are its own, with its values.

    Args:
        variant: the method at a point of the axes.
        raw: the recipe as it is written.
        fixed: the recipe with the variables replaced that are the same for all rows.
        variables: of the recipe.
        check: of the recipe.
    """
    key = f"methods.{variant.name}"
    row_variables = check.variables(variant.variables, f"{key}.vars")
    known = check.resolved({**variables, **row_variables})
    content = replace_variables(variant.content, known)
    data = check.mapping(raw[DATA], DATA)
    trees = variant.content.get(DATA, {}).get("source", {})
    if trees and isinstance(data.get("source"), dict):
        data = {
            **data,
            "source": {**data["source"], **check.mapping(trees, f"{key}.{DATA}.source")},
        }
    source, target = _sides(replace_variables(data, known), check)
    categories = check.text(replace_variables(raw.get("categories", ""), known), "categories")
    check.placeholders(categories, "categories")
    score = check.distinct(fixed["score"], "score", str)
    primary = check.one_of(replace_variables(raw.get("primary", score[0]), known), "primary", score)
    flags = {}
    for section in SECTIONS:
        shared = check.mapping(fixed[section], section)
        varied = {
            name: value
            for name, item in shared.items()
            if (value := replace_variables(item, known)) != item
        }
        row_flags = {**varied, **content.get(section, {})}
        flags[section] = check.flags(row_flags, f"{key}.{section}", section)
    arch = check.text(content["arch"], f"{key}.arch")
    about = check.text(content.get(ABOUT, ""), f"{key}.{ABOUT}")
    return Method(
        variant.name, variant.base, about, variant.point, arch, source, target, categories, primary,
        flags["binarize"], flags["train"], flags["generate"],
    )  # fmt: skip


def check_targets(methods: Sequence[Method], axes: Sequence[Axis], check: Check) -> None:
    """Rows at one point of the shared axes must have one test set, each set its categories, and all the same languages."""
    first: dict[Point, Method] = {}
    by_test: dict[str, Method] = {}
    for method in methods:
        for side in ("source", "target"):
            if getattr(method, side).lang != getattr(methods[0], side).lang:
                raise check.error(f"data.{side}.lang", "is not the same for all rows")
        other = first.setdefault(shared_point(method.point, axes), method)
        if method.target != other.target:
            raise check.error(
                f"methods.{method.name}",
                f"has other target files than {other.name}; scores compare on one test set only",
            )
        if method.primary != other.primary:
            raise check.error(
                "primary",
                f"is {method.primary} for {method.name}, {other.primary} for {other.name}",
            )
        other = by_test.setdefault(method.target.test, method)
        if method.categories != other.categories:
            raise check.error(
                "categories",
                f"is {method.categories or 'none'} for {method.name}, {other.categories or 'none'} for {other.name}; give "
                f"all rows on {method.target.test} the same, as scores compare over the same lines only",
            )


def _sides(data: Any, check: Check) -> tuple[Side, Side]:
    check.keys(data, "data", ("source", "target"))
    sides = []
    for name in ("source", "target"):
        side_key, content = f"data.{name}", data[name]
        check.keys(content, side_key, SIDE_KEYS)
        values = {key: check.text(content[key], f"{side_key}.{key}") for key in SIDE_KEYS}
        for key in SPLITS:
            check.placeholders(values[key], f"{side_key}.{key}")
        check.folder_name(values["lang"], f"{side_key}.lang")
        sides.append(Side(**values))
    if sides[0].lang == sides[1].lang:
        raise check.error("data.target.lang", f"is {sides[1].lang!r} like the source's")
    return sides[0], sides[1]
