"""YAML files that hold one mapping; a key given twice is an error, not a silent loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from treesyntax.errors import InputError
from treesyntax.files import read_lines

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
