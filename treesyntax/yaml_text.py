"""YAML as users write it, in files and on command lines: what is read as something else than it looks is refused."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

MOST_VALUES = 100_000
"""Values of a text, including those that ``*name`` repeats: nine lines can stand for a billion."""
DEEPEST = 50
_NO_DECIMALS = re.compile(r"[-+]?0[0-9_]+|.*:.*")
"""Numbers of base eight and of base sixty."""


class NotYamlError(Exception):
    """What is wrong, in one clause, and the line if it is known."""

    def __init__(self, reason: str | None, line: int | None = None) -> None:
        super().__init__(" ".join((reason or "malformed").split())[:200])
        self.line = line


class MisreadError(NotYamlError):
    """What is YAML, but stands for something else than who wrote it would think."""


def parse_yaml(text: str) -> Any:
    """The value of a YAML text, None for an empty one.

    Raises:
        NotYamlError: if it is malformed, too large, or has a key twice.
        MisreadError: if an entry has no value, or a number is none in decimals: 010 is 8, and 1:30 is 90.
    """
    try:
        return _unshared(yaml.load(text, _Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        kind = MisreadError if isinstance(error, _MisreadScalarError) else NotYamlError
        raise kind(error.problem, mark.line + 1 if mark else None) from None
    except (yaml.YAMLError, ValueError, OverflowError, AttributeError, TypeError) as error:
        # A month 13 is a plain ValueError, a timestamp without numbers an AttributeError.
        raise NotYamlError(str(error)) from None


def _unshared(value: Any) -> Any:
    """The same, where what ``*name`` repeats is a copy: a change of either is none of the other."""
    if isinstance(value, dict):
        return {key: _unshared(inner) for key, inner in value.items()}
    return [_unshared(item) for item in value] if isinstance(value, list) else value


def parse_value(text: str) -> Any:
    """The value of a YAML text after ``KEY=`` on a command line.

    Raises:
        NotYamlError: as `parse_yaml`.
        MisreadError: likewise, and if the text is empty, as of a variable of the shell that is not set, or ends in a
            comment.
    """
    value = parse_yaml(text)
    if not text.strip():
        raise MisreadError("there is no value; for none write null, for an empty text ''")
    if "#" in text and _is_comment(text.rstrip()):
        raise MisreadError(
            "' #' begins a comment; write the whole value in quotes, inside those of the shell"
        )
    return value


def value_of(text: str) -> Any:
    """A setting of transformers as YAML reads it; YAML takes ``1e-5`` for text, since it has no point.

    Raises:
        MisreadError: for one that YAML takes for something else than it looks.
    """
    try:
        value = parse_value(text)
        json.dumps(value)
    except MisreadError:
        raise
    except (NotYamlError, TypeError):  # JSON has no dates, and a name may be one
        return text
    if isinstance(value, str):
        try:
            return float(text)  # which quotes keep a text
        except ValueError:
            return value
    return value


def _is_comment(text: str) -> bool:
    """Whether a text that is YAML ends in a comment: whatever comes after it changes nothing."""
    try:
        return bool(parse_yaml(f"{text}x") == parse_yaml(text))
    except NotYamlError:
        return False


class _MisreadScalarError(yaml.composer.ComposerError):
    """A value that is another one than it looks."""


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader keeps the last of two equal keys; this one refuses them.

    It also refuses files that would take too much time or memory.
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
            self.values += self.sizes.get(node, MOST_VALUES)  # an incomplete one contains itself
        elif node is not None:
            self.sizes[node] = self.values - before
        if self.values > MOST_VALUES:
            raise yaml.composer.ComposerError(
                None, None, f"it holds more than {MOST_VALUES} values", event.start_mark
            )
        if isinstance(node, yaml.ScalarNode) and node.style is None:
            self._check_scalar(node)
        return node

    def _check_scalar(self, node: yaml.ScalarNode) -> None:
        """Refuse a missing value, and a number of another base than ten."""
        kind, text = node.tag.rpartition(":")[2], node.value
        if kind == "null" and not text:
            problem = "a value is missing; for none write null, for no entries {} or []"
        elif kind in ("int", "float") and _NO_DECIMALS.fullmatch(text):
            number = self.construct_object(node)
            problem = f"YAML reads {text} as {number}; write that number, or quotes around a text"
        else:
            return
        raise _MisreadScalarError(None, None, problem, node.start_mark)

    def check_event(self, *choices: Any) -> bool:
        if self.depth > DEEPEST:
            mark = self.peek_event().start_mark
            raise yaml.composer.ComposerError(None, None, "it is nested too deeply", mark)
        return bool(super().check_event(*choices))

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        # Not as it is constructed: then it also has the keys of what << merges into it.
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen = set()
        for key_node, _ in node.value:
            key = str(key_node.value)
            if key in seen:
                raise yaml.composer.ComposerError(
                    None, None, f"the key {key!r} occurs twice", key_node.start_mark
                )
            seen.add(key)
        return node
