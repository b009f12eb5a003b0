"""``--set key.sub=value``: change entries of a recipe from the command line."""

from __future__ import annotations

from typing import Any

import yaml

from treesyntax.errors import OptionError

OPEN = ("train", "generate", "binarize", "vars")
"""Sections in which an override may add an entry; elsewhere it must name an existing one."""
FLAT = {"axes": 2, "differences": 1}
"""Sections whose keys hold dots, with the depth from which on; they may be added as a whole."""
MAY_BE_ADDED = (*FLAT, "average", "baseline")
DATA, ROOT = "data", "root"


def apply_override(content: dict[str, Any], override: str) -> None:
    """Set one entry of a recipe in place.

    ``root=DIR`` alone means ``vars.root=DIR`` where the recipe has such a variable, and so does
    ``data=DIR``: the data of a recipe are a mapping, and ``{data}`` is the study's folder. The value
    null takes the entry away, as in a recipe that extends another.

    Args:
        content: the recipe as nested mappings.
        override: ``key.sub=value``; the value is YAML, so ``[1, 2]`` is a list.

    Raises:
        OptionError: if it is not of that form, or names an entry that does not exist.
    """
    path, equals, text = override.partition("=")
    keys = path.split(".")
    if not equals or not all(keys):
        raise OptionError(f"--set {override}: write it as key=value or key.sub=value")
    variables = content.get("vars")
    if len(keys) == 1 and isinstance(variables, dict) and keys[0] in variables:
        keys = ["vars", *keys]
    if keys[0] in FLAT:
        start = FLAT[keys[0]]
        keys = [*keys[:start], *([".".join(keys[start:])] if keys[start:] else [])]
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise OptionError(f"--set {override}: the value is not YAML ({_first(error)})") from None
    if keys == [DATA] and isinstance(value, str) and ROOT in (variables or {}):
        keys = ["vars", ROOT]
    _set(content, keys, value, override)


def _set(content: dict[str, Any], keys: list[str], value: Any, override: str) -> None:
    section: Any = content
    for depth, key in enumerate(keys):
        if not isinstance(section, dict):
            raise OptionError(f"--set {override}: {'.'.join(keys[:depth])} has no entries")
        if key not in section and not _may_add(keys, depth):
            place = ".".join(keys[:depth]) or "the recipe"
            raise OptionError(
                f"--set {override}: {place} has no entry {key!r}; it has {', '.join(section)}"
            )
        if depth + 1 == len(keys):
            if value is None:
                section.pop(key, None)
            else:
                section[key] = value
        else:
            section = section.setdefault(key, {})


def _may_add(keys: list[str], depth: int) -> bool:
    """Flags may be added to a step's flags, a step's flags to a method, and what is optional."""
    if keys[0] in MAY_BE_ADDED:
        return True
    inner = keys[2:] if keys[0] == "methods" else keys
    return len(inner) > 1 and inner[0] in OPEN and depth >= len(keys) - len(inner)


def _first(error: yaml.YAMLError) -> str:
    return getattr(error, "problem", None) or str(error).splitlines()[0]
