"""Paths in a recipe are relative to its file; what is not there is looked for from the shell's folder."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from treesyntax.study.recipe.checks import PLACEHOLDER

TEXTS = ("name", "title", "question", "about", "import", "differences")
"""Keys of a recipe and of its methods that hold no path."""


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
    begins = _variables_that_begin(whole)
    changed = {
        key: value if key in (*TEXTS, "vars") else _located(value, folder, key == "prepare")
        for key, value in content.items()
    }
    if isinstance(variables := content.get("vars"), dict):
        changed["vars"] = {
            name: _path(value, folder) if name in begins else value
            for name, value in variables.items()
        }
    return changed


def _located(value: Any, folder: Path, command: bool = False) -> Any:
    if isinstance(value, dict):
        return {
            key: inner if key in TEXTS else _located(inner, folder, command)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_located(inner, folder, command) for inner in value]
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
