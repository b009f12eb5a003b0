"""JSON lines, which hold any tree: a nested list, or an object with the fields of a Tree.

A nested list is ``["label", child, …]``. A leaf is its label alone; ``["a"]`` and ``"a"`` are the
same leaf. A number is read as its text. An object has ``parents`` and ``labels`` and, where they
are not the default, ``words``, ``relations`` and ``branches``: see `treesyntax.trees.tree.Tree`.

A space in a label is ``␣`` in the tree, since labels become tokens, and is written as a space again; words
of a sentence keep theirs.
"""

from __future__ import annotations

import json
import re

from treesyntax.errors import TreeError
from treesyntax.files import parse_json
from treesyntax.remarks import remark
from treesyntax.trees.formats.base import (
    SPACE,
    VISIBLE,
    Format,
    RecordError,
    check_one_line,
    line_records,
    subtrees_ending,
)
from treesyntax.trees.tree import NO_WORD, Tree

# A string that is not closed matches up to the end of the line, which keeps the scan linear.
_TOKEN = re.compile(
    r"""[\[\],] | "(?:[^"\\]|\\.)*+" | ".* | [^\s\[\],"]+""", re.ASCII | re.DOTALL | re.VERBOSE
)
_MARKS = ("[", "]", ",")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_REQUIRED = ("parents", "labels")
_FIELDS = (*_REQUIRED, "words", "relations", "branches")
_LARGEST = 2**31 - 1


def parse(text: str) -> Tree:
    """The tree of one line."""
    check_one_line(text)
    tree = _parse_object(text) if text.lstrip(" \t").startswith("{") else _parse_nested(text)
    if SPACE in text:
        remark(VISIBLE)
    try:
        "\n".join((*tree.labels, *tree.relations)).encode()
    except UnicodeEncodeError:
        raise RecordError(
            "a label holds half a surrogate pair, which is not valid Unicode",
            "write both halves or the character itself",
        ) from None
    return tree


def _parse_nested(text: str) -> Tree:
    # The json module recurses over depth, so it only decodes the strings; lists are read here.
    parents: list[int] = []
    labels: list[str] = []
    current = -1
    previous = ""
    for token in _TOKEN.findall(text):
        _check_order(previous, token, complete=current < 0 and bool(parents))
        if token == "]":
            current = parents[current]
        elif previous == "[":
            labels.append(_atom(token))
        elif token != ",":
            parents.append(current)
            if token == "[":
                current = len(labels)
            else:
                labels.append(_atom(token))
        previous = token
    if current >= 0:
        raise RecordError("a list is not closed at the end of the line", "add the missing ']'")
    return Tree(parents, [label.replace(" ", SPACE) for label in labels] if " " in text else labels)


def _check_order(previous: str, token: str, complete: bool) -> None:
    """Refuse a token that cannot follow the one before it."""
    if complete:
        raise RecordError(f"{token[:40]!r} follows the end of the tree", "write one tree a line")
    if previous == "[" and token in _MARKS:
        raise RecordError(
            "a list does not begin with a label", 'write a node as ["label", child, …]'
        )
    starts = previous in ("", ",")
    if token in ("]", ","):
        if starts:
            raise RecordError(f"{token!r} stands where a child should be", "remove the comma")
    elif not starts and previous != "[":
        cause = f"a comma is missing before {token[:40]!r}"
        raise RecordError(cause, "separate children by commas")


def _atom(token: str) -> str:
    if token[0] == '"':
        try:
            return str(json.loads(token))
        except ValueError:
            cause = f"{token[:40]} is not a JSON string"
            remedy = 'quote it with " and escape control characters'
            raise RecordError(cause, remedy) from None
    if _NUMBER.fullmatch(token):
        return token
    raise RecordError(f"{token[:40]} is not a label", 'labels are strings like "NP", or numbers')


def _parse_object(text: str) -> Tree:
    try:
        fields = parse_json(text, by_user=True)
    except json.JSONDecodeError as error:
        raise RecordError(
            f"not JSON ({error.msg}, character {error.colno})", "write one object a line"
        ) from None
    except ValueError as error:
        cause = f"not an object with the fields of a tree ({str(error)[:80]})"
        raise RecordError(cause, _object_remedy()) from None
    unknown = [name for name in fields if name not in _FIELDS]
    missing = [name for name in _REQUIRED if name not in fields]
    if unknown or missing:
        names = ", ".join(unknown or missing)[:80]
        raise RecordError(
            f"the object has {'the unknown' if unknown else 'no'} {names}", _object_remedy()
        )
    labels, words = _strings(fields, "labels"), _numbers(fields, "words")
    if " " in text:
        labels = [
            label if word >= 0 else label.replace(" ", SPACE)
            for label, word in zip(labels, words or [NO_WORD] * len(labels), strict=False)
        ] + labels[len(words or labels) :]
    tree = Tree(
        _numbers(fields, "parents") or [],
        labels,
        words,
        _strings(fields, "relations"),
        _numbers(fields, "branches"),
    )
    tree.word_nodes()  # raises where the numbers of words are not 0, 1, 2, …
    return tree


def _object_remedy() -> str:
    return f"its fields are {', '.join(_FIELDS)}"


def _numbers(fields: dict[str, object], name: str) -> list[int] | None:
    if name not in fields:
        return None
    values = fields[name]
    if not isinstance(values, list) or not all(
        type(value) is int and -1 <= value <= _LARGEST for value in values
    ):
        raise RecordError(f"{name} is not a list of whole numbers from -1 up", _object_remedy())
    return values


def _strings(fields: dict[str, object], name: str) -> list[str]:
    values = fields.get(name, [])
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise RecordError(f"{name} is not a list of strings", _object_remedy())
    return values


def write(tree: Tree) -> str:
    """A nested list if that holds the whole tree, else an object."""
    pairs = zip(tree.labels, tree.words.tolist(), strict=True)
    for label in (label for label, word in pairs if word == NO_WORD and " " in label):
        raise TreeError(f"the label {label[:40]!r} holds a space", f"write it as {SPACE}")
    text = _nested(tree) if tree == Tree(tree.parents, tree.labels) else _object(tree)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise TreeError(
            "a label holds half a surrogate pair, which is not valid Unicode", "correct the label"
        ) from None
    return text


def _nested(tree: Tree) -> str:
    pieces: list[str] = []
    arities = tree.arities.tolist()
    for label, arity, endings in zip(tree.labels, arities, subtrees_ending(tree), strict=True):
        text = json.dumps(label.replace(SPACE, " "), ensure_ascii=False)
        pieces.append("[" * bool(arity) + text + "]" * endings)
    return ", ".join(pieces)


def _object(tree: Tree) -> str:
    plain = Tree(tree.parents, tree.labels)
    fields: dict[str, list[int] | list[str]] = {
        "parents": tree.parents.tolist(),
        "labels": [
            label if word >= 0 else label.replace(SPACE, " ")
            for label, word in zip(tree.labels, tree.words.tolist(), strict=True)
        ],
    }
    if tree.words.tolist() != plain.words.tolist():
        fields["words"] = tree.words.tolist()
    if tree.relations:
        fields["relations"] = list(tree.relations)
    if tree.branches.tolist() != plain.branches.tolist():
        fields["branches"] = tree.branches.tolist()
    return json.dumps(fields, ensure_ascii=False)


JSONL = Format("jsonl", ".jsonl", line_records, parse, write)
