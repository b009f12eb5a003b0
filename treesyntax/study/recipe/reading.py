"""``extends: FILE``: a recipe that says only what it changes of another."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from treesyntax.errors import InputError, OptionError
from treesyntax.files import read_lines

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


LARGEST_FILE = 1 << 20
"""Characters of a file; PyYAML reads about a million a second."""
MOST_VALUES = 100_000
"""Values of a file, those that ``*name`` repeats included: nine lines can stand for a billion."""
DEEPEST = 50


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader keeps the last of two equal keys; this one refuses them.

    It also refuses what would take too much time or memory.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = self.values = 0
        self.sizes: dict[yaml.Node, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event, before = self.peek_event(), self.values
        self.depth += 1
        self.values += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        if node is not None and isinstance(event, yaml.AliasEvent):
            self.values += self.sizes.get(node, MOST_VALUES)  # one that is not complete has itself
        elif node is not None:
            self.sizes[node] = self.values - before
        if self.values > MOST_VALUES:
            raise yaml.composer.ComposerError(
                None, None, f"it holds more than {MOST_VALUES} values", event.start_mark
            )
        return node

    def check_event(self, *choices: Any) -> bool:
        if self.depth > DEEPEST:
            mark = self.peek_event().start_mark
            raise yaml.composer.ComposerError(None, None, "it is nested too deeply", mark)
        return bool(super().check_event(*choices))

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = str(key_node.value)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} is there twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file.

    Raises:
        InputError: if the file cannot be read, is not YAML, or holds something else.
    """
    text = "\n".join(read_lines(path))
    if len(text) > LARGEST_FILE:
        raise InputError(path, None, "is too large for a recipe", "check that it is one")
    try:
        content = yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputError(path, line, f"is not YAML ({_short(error.problem)})") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        # A month 13, for instance, is a plain ValueError.
        raise InputError(path, None, f"is not YAML ({_short(str(error))})") from None
    if not isinstance(content, dict):
        raise InputError(path, None, "holds no recipe", "write keys and values, such as name: demo")
    return content


def _short(reason: str | None) -> str:
    return " ".join((reason or "malformed").split())[:200]
