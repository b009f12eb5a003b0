"""Recipes: a comparison of methods as a short YAML file, read and checked."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from treesyntax.jobs.imports import SUFFIX
from treesyntax.study.recipe.axes import (
    AT,
    Axis,
    Variant,
    check_names,
    check_places,
    expand,
    read_axes,
)
from treesyntax.study.recipe.beside import with_labels
from treesyntax.study.recipe.budget import BUDGETS, FIXED, REST, TRAIN_ON, factor_of, trained_on
from treesyntax.study.recipe.checks import DATA, Check, Flags, replace_in_command, replace_variables
from treesyntax.study.recipe.controls import CONTROLS, as_control, kind_of, linked, with_controls
from treesyntax.study.recipe.inherit import changed_rows, complete_rows
from treesyntax.study.recipe.reading import (
    IMPORT,
    apply_override,
    check_nulls,
    imports_folder,
    is_resolved,
    read_extended,
)
from treesyntax.study.recipe.rows import (
    ABOUT,
    OWN,
    SECTIONS,
    SPLITS,
    Method,
    Side,
    check_targets,
    make_method,
)
from treesyntax.study.recipe.search import SEARCH, Search, read_search
from treesyntax.study.recipe.trainer import KEYS, as_rows, check_content

__all__ = [
    "DATA",
    "FIXED",
    "RECIPE_FILE",
    "SECTIONS",
    "SPLITS",
    "Flags",
    "Method",
    "Recipe",
    "Side",
    "read_recipe",
]

RECIPE_FILE = "recipe.yaml"
"""The resolved recipe in the folder of its study."""
DEFAULTS: dict[str, Any] = {
    "question": "",
    "prepare": [],
    "binarize": {},
    "generate": {},
    "vars": {},
}
REQUIRED = ("name", "title", "data", "train", "score", "seeds", "methods")
OPTIONAL = (
    "analyses", "average", "axes", "baseline", "budget", "categories", "differences", IMPORT, "primary", SEARCH,
    "skip", "strongest", TRAIN_ON, *KEYS,
)  # fmt: skip
"""Keys that a resolved recipe has only if the recipe has them."""
ORDER = (
    "name", "title", "question", "vars", "prepare", "data", "binarize", "train", "generate",
    "score", "seeds", "methods", *OPTIONAL,
)  # fmt: skip

SKIP = ("allowed", "refused")
"""What ``skip`` may be; the second is the default."""


@dataclass(frozen=True)
class Recipe:
    """A checked recipe.

    Attributes:
        content: the whole recipe as plain values, defaults filled in and variables replaced; all
            that a study does follows from it.
        methods: the rows, axes expanded.
        analyses: whether each run is analysed; a study of hundreds of runs may do without.
        average: how many checkpoints, the last that were saved, are averaged to be tested; 0 for
            the best one alone.
        baseline: the method or the row that others are compared with.
        budget: ``rest`` where trainings are to end by themselves (``train.patience``), so that comparisons of
            runs that were still learning have no mark; ``fixed`` where the question is what a given number of
            updates brings.
        train_on: how many times the updates and epochs that `content` says trainings may go on; the flags of
            rows have the longer ones.
        differences: by ``SECTION.FLAG`` why methods differ in it.
        strongest: plain rows, of which the map compares others with the best on each test set.
        imports: Python files with methods of the user's own, relative to the recipe's folder (`own_files`). What
            runs a study executes them, what reads one does not.
        search: how settings are found before the runs; None for a study without.
        skips: whether pairs that some row cannot use are left out of all rows; else they stop the study.
        inherits: methods that say nothing about their data, and so have that of the first one.
    """

    path: Path
    content: dict[str, Any] = field(repr=False)
    name: str
    title: str
    question: str
    prepare: tuple[str, ...]
    source: Side
    target: Side
    binarize: Flags
    train: Flags
    generate: Flags
    analyses: bool
    average: int
    score: tuple[str, ...]
    seeds: tuple[int, ...]
    methods: tuple[Method, ...]
    axes: tuple[Axis, ...]
    baseline: str
    differences: dict[str, str]
    strongest: tuple[str, ...]
    imports: tuple[str, ...]
    search: Search | None
    skips: bool = False
    inherits: tuple[str, ...] = ()
    budget: str = REST
    train_on: float = 1

    @property
    def primary(self) -> list[str]:
        """The metrics that decide, each on its test sets; Holm's correction is over all rows in them."""
        return list(dict.fromkeys(method.primary for method in self.methods))

    @property
    def own_files(self) -> list[Path]:
        """The files of the recipe's own methods."""
        return [imports_folder(self.path) / name for name in self.imports]

    def baseline_of(self, method: Method) -> Method | None:
        """The row that a row is compared with, at the same point of the axes that both have.

        None for a baseline, and for a row that has another test set.
        """
        rows = [row for row in self.methods if row.name == self.baseline] or [
            row for row in self.methods if row.base == self.baseline
        ]
        if method in rows:
            return None
        labels = dict(method.point)
        same = [row for row in rows if row.target.test == method.target.test]
        fits = (
            row
            for row in same
            if len(rows) == 1 or all(labels.get(axis, label) == label for axis, label in row.point)
        )
        return next(fits, None)

    def flags(self, method: Method, section: str) -> Flags:
        """The flags of a method in one of `SECTIONS`, the shared ones included."""
        return {**getattr(self, section), **getattr(method, section)}


def flag_words(flags: Flags) -> list[str]:
    """``{beam: 5, fp16: true, betas: [1, 2]}`` as ``--beam 5 --fp16 --betas 1 2``.

    False and null leave a flag out.
    """
    words: list[str] = []
    for name, value in flags.items():
        items = value if isinstance(value, list) else [value]
        if value is None or value is False:
            continue
        if value is True:
            words.append(f"--{name}")
        elif len(items) == 1 and str(items[0]).startswith("-"):
            words.append(f"--{name}={items[0]}")  # else argparse takes the value for a flag
        else:
            words += [f"--{name}", *map(str, items)]
    return words


def read_recipe(
    path: str | Path, overrides: Sequence[str] = (), baseline: str | None = None
) -> Recipe:
    """Read and check a recipe.

    Args:
        path: the YAML file.
        overrides: ``key.sub=value`` each, applied in order before anything is checked.
        baseline: of a report, in place of the recipe's; it may have controls.

    Raises:
        InputError: if the file cannot be read or is not YAML.
        OptionError: for unknown or missing keys, wrong types, and overrides that do not fit.
    """
    path = Path(path)
    content = with_labels(read_extended(path), path.parent)
    check = Check(path)
    check.keys(content, "", REQUIRED, (*DEFAULTS, *OPTIONAL))
    filled = _ordered({**copy.deepcopy(DEFAULTS), **content})
    set_keys = [apply_override(filled, override) for override in overrides]
    if baseline is not None:
        filled["baseline"] = baseline
    check.keys(filled, "", REQUIRED, (*DEFAULTS, *OPTIONAL))
    for section, *names in set_keys:
        if section == "vars" and names and isinstance(filled["vars"], dict):
            check.used(names[0], content, filled)
    whole = complete_rows(filled, check, inherit=not is_resolved(path))
    of_report = baseline is not None
    recipe = _recipe(_ordered({**copy.deepcopy(DEFAULTS), **whole}), check, of_report)
    if overrides or not is_resolved(path):
        options = [option for axis in recipe.axes for option in axis.options]
        check_nulls(filled, options, path)
        of_rows = [
            name for row in filled["methods"].values() for name in (row or {}).get("vars", ())
        ]
        for name in (*of_rows, *(option.removeprefix("vars.") for option in options)):
            check.used(name, content, filled)
    return replace(recipe, inherits=changed_rows(filled, whole))


def with_content(recipe: Recipe, content: Mapping[str, Any]) -> Recipe:
    """A recipe with other content, checked as if it stood in the same file."""
    check = Check(recipe.path)
    whole = complete_rows(content, check, inherit=False)
    return _recipe(_ordered({**copy.deepcopy(DEFAULTS), **whole}), check)


def _ordered(content: Mapping[str, Any]) -> dict[str, Any]:
    # So that the order of the recipe's keys is no edit.
    return {key: content[key] for key in ORDER if key in content}


def _recipe(written: dict[str, Any], check: Check, is_of_report: bool = False) -> Recipe:
    raw = as_rows(trained_on(written, check), check)
    variables = check.variables(raw["vars"])
    entries = with_controls(check.mapping(raw["methods"], "methods"), check)
    variants, axes = _variants({**raw, "methods": entries}, check)
    varied = {name for variant in variants for name in variant.variables}
    fixed = check.resolved({name: value for name, value in variables.items() if name not in varied})
    content = {**replace_variables(raw, fixed), "vars": raw["vars"]}
    flags = {name: check.flags(content[name], name, name) for name in SECTIONS}
    methods = tuple(
        as_control(make_method(variant, raw, content, variables, check), flags, check)
        for variant in variants
    )
    check_targets(methods, axes, check)
    baseline = _baseline(content.get("baseline"), methods, entries, check)
    differences = check.differences(content.get("differences", {}))
    methods = linked(methods, entries, baseline, differences, check, is_of_report)
    score = tuple(check.distinct(content["score"], "score", str))
    seeds = check.seeds(content["seeds"], "seeds")
    recipe = Recipe(
        path=check.path,
        content=check_content(
            {**replace_variables(written, fixed), "vars": written["vars"]}, check
        ),
        name=check.folder_name(content["name"], "name"),
        title=check.text(content["title"], "title"),
        question=check.text(content["question"], "question"),
        prepare=_prepare(raw, variables, variants, check),
        source=methods[0].source,
        target=methods[0].target,
        **flags,
        analyses=check.truth(content.get("analyses", True), "analyses"),
        average=check.count(content.get("average", 0), "average"),
        score=score,
        seeds=seeds,
        methods=methods,
        axes=axes,
        baseline=baseline,
        differences=differences,
        strongest=_strongest(content.get("strongest", []), methods, check),
        imports=tuple(check.files(content.get(IMPORT, []), IMPORT, SUFFIX)),
        search=read_search(content[SEARCH], axes, methods, seeds, check)
        if SEARCH in content
        else None,
        skips="skip" in content and check.one_of(content["skip"], "skip", SKIP) == SKIP[0],
        inherits=(),
        budget=check.one_of(content.get("budget", REST), "budget", BUDGETS),
        train_on=factor_of(written, check),
    )
    for method in methods if "baseline" in content else ():
        alone = recipe.baseline_of(method) is None
        if alone and recipe.baseline not in (method.name, method.base):
            raise check.error("baseline", f"has another test set than {method.name}; name a method")
    return recipe


def _variants(raw: dict[str, Any], check: Check) -> tuple[list[Variant], tuple[Axis, ...]]:
    methods = check.mapping(raw["methods"], "methods")
    if not methods:
        raise check.error("methods", "is empty; name at least one method")
    for name, method in methods.items():
        if not kind_of(name):
            check.folder_name(name, f"the method name {name!r}")
        if name.startswith("_"):
            cause = (
                "begins with _, and figures leave such names out of their legends; choose another"
            )
            raise check.error(f"the method name {name!r}", cause)
        check.keys(method, f"methods.{name}", ("arch",), (ABOUT, CONTROLS, *SECTIONS, *OWN))
        for section in (*SECTIONS, *OWN):
            check.mapping(method.get(section, {}), f"methods.{name}.{section}")
        check.keys(method.get(DATA, {}), f"methods.{name}.{DATA}", (), ("source",))
        for variable in method.get("vars", {}):
            if variable not in raw["vars"]:
                key = f"methods.{name}.vars.{variable}"
                raise check.error(key, "is not a variable; give it a value for all under vars")
    axes = read_axes(raw.get("axes", {}), raw, check)
    check_places(methods, axes, check)
    variants = list(expand(axes, methods))
    check_names(variants, check)
    return variants, axes


def _prepare(
    raw: dict[str, Any], variables: Mapping[str, str], variants: Sequence[Variant], check: Check
) -> tuple[str, ...]:
    """Each command once for each of the values that axes give to the variables in it."""
    points = list({str(variant.variables): variant.variables for variant in variants}.values())
    known = [check.resolved({**variables, **check.variables(point)}) for point in points]
    commands: list[str] = []
    for number, command in enumerate(check.commands(raw["prepare"]), start=1):
        texts = dict.fromkeys(replace_in_command(command, values) for values in known)
        key = f"prepare, command {number},"
        commands += [check.command(check.placeholders(text, key), key) for text in texts]
    return tuple(commands)


def _strongest(value: Any, methods: Sequence[Method], check: Check) -> tuple[str, ...]:
    names = tuple(check.distinct(value, "strongest", str)) if value else ()
    known = dict.fromkeys(method.base for method in methods)
    if unknown := [name for name in names if name not in known]:
        raise check.error(
            "strongest", f"names {unknown[0]}; it must name methods: {', '.join(known)}"
        )
    return names


def _baseline(
    value: Any, methods: Sequence[Method], entries: Mapping[str, Any], check: Check
) -> str:
    bases = list(dict.fromkeys(method.base for method in methods))
    first = value or bases[0]
    if len(bases) > 1 and first in bases and AT in entries[first]:
        raise check.error(
            "baseline", f"is {first}, which has {AT}, so some rows have none; name another"
        )
    if value is None:
        return bases[0] if len(bases) > 1 else methods[0].name
    if value not in bases and value not in [method.name for method in methods]:
        raise check.error(
            "baseline", f"is {value!r}; it must be a method: {', '.join(map(str, bases))}"
        )
    return str(value)
