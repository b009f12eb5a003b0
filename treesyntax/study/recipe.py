"""Recipes: a comparison of methods as a short YAML file, read and checked."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treesyntax.errors import OptionError
from treesyntax.study.overrides import apply_override
from treesyntax.study.yaml_files import read_yaml

Flags = dict[str, Any]
"""Flags of a command line by name without dashes: text, numbers, true, or lists of those."""

DEFAULTS: dict[str, Any] = {
    "question": "",
    "prepare": [],
    "binarize": {},
    "generate": {},
    "vars": {},
}
REQUIRED = ("name", "title", "data", "train", "score", "seeds", "methods")
ORDER = (
    "name", "title", "question", "vars", "prepare", "data", "binarize", "train", "generate",
    "score", "seeds", "methods",
)  # fmt: skip
SIDE_KEYS = ("lang", "train", "valid", "test")
STEP_SECTIONS = ("binarize", "train", "generate")
RESERVED = {
    "binarize": ("source-lang", "target-lang", "train", "valid", "test", "overwrite"),
    "train": (
        "arch", "task", "user-dir", "seed", "save-dir", "source-lang", "target-lang", "log-format",
        "no-epoch-checkpoints", "keep-interval-updates", "restore-file",
    ),
    "generate": (
        "path", "results-path", "gen-subset", "task", "user-dir", "source-lang", "target-lang",
        "nbest", "quiet",
    ),
}  # fmt: skip
"""Flags that the study gives itself."""

PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")
DATA = "data"
"""``{data}`` stands for a folder inside the study, so it keeps its name in the recipe."""


@dataclass(frozen=True)
class Side:
    """One language of the data: its code and its three files."""

    lang: str
    train: str
    valid: str
    test: str


@dataclass(frozen=True)
class Method:
    """A row of the table: an architecture, its flags for binarize, and any settings of its own."""

    name: str
    arch: str
    binarize: Flags
    train: Flags
    generate: Flags


@dataclass(frozen=True)
class Recipe:
    """A checked recipe.

    Attributes:
        content: the whole recipe as plain values, defaults filled in and variables replaced; all
            that a study does follows from it.
    """

    path: Path
    content: dict[str, Any]
    name: str
    title: str
    question: str
    prepare: tuple[str, ...]
    source: Side
    target: Side
    binarize: Flags
    train: Flags
    generate: Flags
    score: tuple[str, ...]
    seeds: tuple[int, ...]
    methods: tuple[Method, ...]


def read_recipe(path: str | Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read and check a recipe.

    Args:
        path: the YAML file.
        overrides: ``key.sub=value`` each, applied in order before anything is checked.

    Raises:
        InputError: if the file cannot be read or is not YAML.
        OptionError: for unknown or missing keys, wrong types, and overrides that do not fit.
    """
    path = Path(path)
    content = read_yaml(path)
    check = _Check(path)
    check.keys(content, "", REQUIRED, DEFAULTS)
    filled = {key: content.get(key, copy.copy(DEFAULTS.get(key))) for key in ORDER}
    for override in overrides:
        apply_override(filled, override)
    variables = check.variables(filled["vars"])
    return check.recipe({**_replace(filled, variables), "vars": filled["vars"]})


def _replace(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda found: variables.get(found[1], found[0]), value)
    if isinstance(value, list):
        return [_replace(item, variables) for item in value]
    if isinstance(value, dict):
        return {key: _replace(item, variables) for key, item in value.items()}
    return value


class _Check:
    """The rules of a recipe; every message names the file, the key and what is valid."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def error(self, key: str, message: str) -> OptionError:
        return OptionError(f"{self.path}: {key or 'the recipe'} {message}")

    def recipe(self, content: dict[str, Any]) -> Recipe:
        self.keys(content["data"], "data", ("source", "target"))
        source, target = (self.side(content["data"][side], side) for side in ("source", "target"))
        if source.lang == target.lang:
            raise self.error("data.target.lang", f"is {target.lang!r} like the source's")
        methods = self.mapping(content["methods"], "methods")
        if not methods:
            raise self.error("methods", "is empty; name at least one method")
        return Recipe(
            path=self.path,
            content=content,
            name=self.folder_name(content["name"], "name"),
            title=self.text(content["title"], "title"),
            question=self.text(content["question"], "question"),
            prepare=self.commands(content["prepare"]),
            source=source,
            target=target,
            binarize=self.flags(content, "", "binarize"),
            train=self.flags(content, "", "train"),
            generate=self.flags(content, "", "generate"),
            score=tuple(self.distinct(content["score"], "score", str)),
            seeds=tuple(self.distinct(content["seeds"], "seeds", int)),
            methods=tuple(self.method(name, methods[name]) for name in methods),
        )

    def method(self, name: Any, content: Any) -> Method:
        place = f"methods.{name}"
        self.folder_name(name, f"the method name {name!r}")
        self.keys(content, place, ("arch",), STEP_SECTIONS)
        filled = {section: content.get(section, {}) for section in STEP_SECTIONS}
        flags = {section: self.flags(filled, place, section) for section in STEP_SECTIONS}
        return Method(name=name, arch=self.text(content["arch"], f"{place}.arch"), **flags)

    def side(self, content: Any, side: str) -> Side:
        place = f"data.{side}"
        self.keys(content, place, SIDE_KEYS)
        values = {key: self.text(content[key], f"{place}.{key}") for key in SIDE_KEYS}
        for key in SIDE_KEYS[1:]:
            self.placeholders(values[key], f"{place}.{key}")
        self.folder_name(values["lang"], f"{place}.lang")
        return Side(**values)

    def commands(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise self.error("prepare", f"is {value!r}; it must be a list of command lines")
        for number, command in enumerate(value, start=1):
            place = f"prepare, command {number},"
            self.placeholders(self.text(command, place), place)
        return tuple(value)

    def placeholders(self, text: str, place: str) -> None:
        for name in PLACEHOLDER.findall(text):
            if name != DATA:
                raise self.error(
                    place,
                    f"holds {{{name}}}, which is not a variable; "
                    f"name it under vars, or use {{{DATA}}} for the study's data folder",
                )

    def variables(self, value: Any) -> dict[str, str]:
        variables = self.mapping(value, "vars")
        if DATA in variables:
            raise self.error(f"vars.{DATA}", "is the study's own folder; choose another name")
        for name, item in variables.items():
            if isinstance(item, bool) or not isinstance(item, str | int | float):
                raise self.error(f"vars.{name}", f"is {item!r}; it must be text or a number")
        return {str(name): str(item) for name, item in variables.items()}

    def flags(self, content: dict[str, Any], place: str, section: str) -> Flags:
        where = f"{place}.{section}" if place else section
        flags = self.mapping(content[section], where)
        for name, value in flags.items():
            if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][\w-]*", name):
                raise self.error(where, f"has the flag {name!r}; write flags without dashes before")
            if name.replace("_", "-") in RESERVED[section]:
                raise self.error(f"{where}.{name}", f"is set by the study; {_instead(name)}")
            items = value if isinstance(value, list) else [value]
            if not all(item is None or isinstance(item, str | int | float) for item in items):
                raise self.error(
                    f"{where}.{name}", f"is {value!r}; a flag takes text, a number, true or a list"
                )
        return flags

    def distinct(self, value: Any, place: str, kind: type) -> list[Any]:
        noun = "whole numbers" if kind is int else "names"
        fits = isinstance(value, list) and all(type(item) is kind for item in value)
        if not fits or not value:
            raise self.error(place, f"is {value!r}; it must be a list of {noun}")
        if len(set(value)) != len(value):
            raise self.error(place, f"is {value!r}; each may be there once only")
        return value

    def folder_name(self, value: Any, place: str) -> str:
        if not isinstance(value, str) or not re.fullmatch(r"\w[\w-]*", value):
            raise self.error(place, f"is {value!r}; use letters, digits, _ and - only")
        return value

    def text(self, value: Any, place: str) -> str:
        if not isinstance(value, str):
            raise self.error(place, f"is {value!r}; it must be text")
        return value

    def mapping(self, value: Any, place: str) -> dict[Any, Any]:
        if not isinstance(value, dict):
            raise self.error(place, f"is {value!r}; it must be a mapping (key: value)")
        return value

    def keys(
        self, value: Any, place: str, required: Sequence[str], optional: Iterable[str] = ()
    ) -> None:
        valid = [*required, *optional]
        for key in self.mapping(value, place):
            if key not in valid:
                raise self.error(
                    place, f"has an unknown key {key!r}; valid keys are {', '.join(valid)}"
                )
        missing = [key for key in required if key not in value]
        if missing:
            raise self.error(place, f"lacks the key {missing[0]!r}; it needs {', '.join(required)}")


def _instead(flag: str) -> str:
    return {"seed": "list the seeds under seeds", "arch": "give it as the method's arch"}.get(
        flag, "leave it out"
    )
