"""``extends: FILE``: a recipe that says only what it changes of another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from treesyntax.errors import InputError
from treesyntax.study.yaml_files import read_yaml

EXTENDS = "extends"


def read_extended(path: Path) -> dict[str, Any]:
    """The mapping in a recipe file, laid over those that it extends.

    The value of ``extends`` is the name of a file, relative to the recipe's folder, or a list of
    names, later ones over earlier ones. Mappings are merged key by key; anything else replaces what
    was there, and null takes it away.

    Raises:
        InputError: if a file cannot be read or is no recipe, or files extend each other in a circle.
    """
    return _read(path, ())


def _read(path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    if path.resolve() in above:
        raise InputError(path, None, "extends itself", f"take {EXTENDS} out of one of the files")
    content = read_yaml(path)
    if EXTENDS not in content:
        return content
    names = content.pop(EXTENDS)
    merged: dict[str, Any] = {}
    for name in names if isinstance(names, list) else [names]:
        if not isinstance(name, str):
            raise InputError(path, None, f"{EXTENDS} is {name!r}", "give the name of a recipe file")
        merged = _over(merged, _read(path.parent / name, (*above, path.resolve())))
    return _over(merged, content)


def _over(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = _over(merged[key], value)
        else:
            merged[key] = value
    return merged
