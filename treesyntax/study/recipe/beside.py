"""Paths in a recipe are relative to its file; what is not there is looked for from the shell's folder."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from treesyntax.study.recipe.axes import label_of
from treesyntax.study.recipe.checks import PLACEHOLDER

TEXTS = ("name", "title", "question", "about", "at", "import", "differences")
"""Keys of a recipe and of its methods that hold no path."""
VARS, AXES = "vars", "axes"
ADDED = "+"
"""Ends a key whose list is added to that of the recipe below: ``score+: [bleu]``."""


def with_paths(
    content: Mapping[str, Any], whole: Mapping[str, Any], folder: Path
) -> dict[str, Any]:
    """The entries of a recipe's file, with the files and folders beside it named from the shell's folder.

    Args:
        content: of the file.
        whole: the same with what it extends, which says what each variable is for.
        folder: of the file.
    """
    if folder.resolve() == Path.cwd():
        return dict(content)
    return _entries(content, folder, _variables_that_begin(whole))


def with_labels(content: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The entries of a recipe, where rows at files and folders beside it are named as from its own folder.

    Else the name of a row would say where a command was typed, and be another one elsewhere.
    """
    axes, beside = content.get(AXES), os.path.join(folder, "")
    if not isinstance(axes, dict) or folder.resolve() == Path.cwd():
        return dict(content)
    return {**content, AXES: {name: _labelled(axis, beside) for name, axis in axes.items()}}


def _labelled(axis: Any, beside: str) -> Any:
    option, values = next(iter(axis.items()), ("", ())) if isinstance(axis, dict) else ("", ())
    if not isinstance(values, list) or not any(str(value).startswith(beside) for value in values):
        return axis
    written = [value.removeprefix(beside) if isinstance(value, str) else value for value in values]
    labels = dict(zip(map(label_of, written), values, strict=True))
    return {**axis, option: labels if len(labels) == len(values) else written}


def _entries(content: Mapping[Any, Any], folder: Path, begins: set[str]) -> dict[Any, Any]:
    """A mapping of a recipe. Values of variables are paths where these begin words, in rows and axes too."""
    located = {}
    for key, value in content.items():
        name = str(key).removesuffix(ADDED)
        variable = name.removeprefix(f"{VARS}.")
        if name in TEXTS:
            located[key] = value
        elif name == VARS and isinstance(value, dict):
            values = {of: _paths(text, folder) for of, text in value.items() if of in begins}
            located[key] = {**value, **values}
        elif variable != name:
            located[key] = _paths(value, folder) if variable in begins else value
        else:
            located[key] = _located(value, folder, begins, name == "prepare")
    return located


def _paths(value: Any, folder: Path) -> Any:
    """A variable's value, or its values on an axis."""
    if isinstance(value, dict):
        return {label: _path(text, folder) for label, text in value.items()}
    return (
        [_path(text, folder) for text in value] if isinstance(value, list) else _path(value, folder)
    )


def _located(value: Any, folder: Path, begins: set[str], command: bool = False) -> Any:
    if isinstance(value, dict):
        return _entries(value, folder, begins)
    if isinstance(value, list):
        return [_located(inner, folder, begins, command) for inner in value]
    if not isinstance(value, str):
        return value
    if not command:
        return _path(value, folder) if set(value) & set("./") else value
    before = ""

    def moved(match: re.Match[str]) -> str:
        nonlocal before
        word, last, before = match[0], before, match[0]
        path = _path(word, folder) if set(word) & set("./") or last.startswith("-") else word
        return word if path == word else shlex.quote(path)

    return re.sub(r"\S+", moved, value)


def _path(value: Any, folder: Path) -> Any:
    """A file or folder beside the recipe as the shell names it; anything else as it is."""
    if not isinstance(value, str) or not value or value.startswith(("/", "-", "{")):
        return value
    literal, variable, _ = value.partition("{")
    known = literal.rpartition("/")[0] if variable else value
    there = known and any((folder / name).exists() for name in (known, f"{known}.gz"))
    return os.path.join(folder, value) if there else value


def _variables_that_begin(whole: Mapping[str, Any]) -> set[str]:
    """The variables with which words begin wherever they are used, so that they may be paths."""
    begin, inside = set[str](), set[str]()
    for text in _texts({key: value for key, value in whole.items() if key not in TEXTS}):
        for match in PLACEHOLDER.finditer(text):
            starts = re.search(r"(^|[\s\"'=])$", text[: match.start()])
            (begin if starts else inside).add(match[1])
    return begin - inside


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in TEXTS:
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
