"""The variable-free forms of SLOG (Li et al. 2023): ``cook ( theme = cake , agent = * scientist )``.

A predicate with arguments is a node ``@``: its first child is the predicate, every other child a role with one
child. ``*`` is a node above what is definite, ``nmod . on`` a role ``nmod.on``. A word is always a leaf: with
arguments and without, it is the same symbol, so a decoder that grows trees can use a verb that it has read
alone.
"""

from __future__ import annotations

import re

from treesyntax.trees.formats.base import (
    Children,
    Format,
    RecordError,
    any_label,
    check_one_line,
    exact,
    line_records,
)
from treesyntax.trees.tree import Tree

FRAME, NOUN, DEFINITE, LAMBDA, AND = "@", "#", "*", "LAMBDA", "AND"
_MARKS = {"(", ")", "=", ",", ".", ";", FRAME, NOUN, DEFINITE, LAMBDA, AND}
_INSIDE = re.compile("[()=,;]")


def word_at(tokens: list[str], position: int) -> str:
    """The word at a position."""
    token = tokens[position] if position < len(tokens) else "the end of the line"
    if token in _MARKS or position >= len(tokens):
        raise RecordError(f"token {position + 1} is {token[:40]!r}, expected a word")
    if sign := _INSIDE.search(token):
        cause = f"token {position + 1}, {token[:40]!r}, holds {sign[0]!r}"
        raise RecordError(cause, "separate brackets, commas and the like from words by spaces")
    return token


def mark_at(tokens: list[str], position: int, *expected: str) -> str:
    """The mark at a position, which must be one of these."""
    token = tokens[position] if position < len(tokens) else "the end of the line"
    if token not in expected:
        wanted = " or ".join(map(repr, expected))
        raise RecordError(f"token {position + 1} is {token[:40]!r}, expected {wanted}")
    return token


def parse(text: str) -> Tree:
    """The tree of one variable-free form; the stack holds what is open, so depth costs memory only."""
    check_one_line(text)
    tokens = text.split()
    if not tokens:
        return Tree([], [])
    parents: list[int] = []
    labels: list[str] = []

    def add(parent: int, label: str) -> int:
        parents.append(parent)
        labels.append(label)
        return len(labels) - 1

    frames: list[int] = []
    above, position = -1, 0
    while True:
        if tokens[position : position + 1] == [DEFINITE]:
            above, position = add(above, DEFINITE), position + 1
        word, position = word_at(tokens, position), position + 1
        if tokens[position : position + 1] == ["("]:
            frames.append(add(above, FRAME))
            add(frames[-1], word)
        else:
            add(above, word)
            while frames and tokens[position : position + 1] == [")"]:
                frames.pop()
                position += 1
            if not frames:
                break
            mark_at(tokens, position, ",", ")")
        position += 1
        role, position = [word_at(tokens, position)], position + 1
        while mark_at(tokens, position, "=", ".") == ".":
            role.append(word_at(tokens, position + 1))
            position += 2
        above, position = add(frames[-1], ".".join(role)), position + 1
    if position < len(tokens):
        raise RecordError(f"{tokens[position][:40]!r} follows the end of the form")
    return Tree(parents, labels)


def write(tree: Tree) -> str:
    """The form on one line."""
    children, labels = tree.children(), tree.labels
    tokens: list[str] = []
    pending: list[str | int] = [0] if len(tree) else []
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            tokens.append(item)
            continue
        label, below = labels[item], children[item]
        expansion: list[str | int] = [label, *below]
        if label == FRAME and below:
            expansion = [below[0], "("]
            for role in below[1:]:
                expansion += [labels[role].replace(".", " . "), "=", *children[role], ","]
            expansion[-1:] = [")"]
        pending.extend(reversed(expansion))
    return exact("cogs_varfree", parse, tree, " ".join(tokens))


_ONE = Children((any_label,), optional=True)
_CHILDREN = {FRAME: Children((any_label, any_label), more=True, optional=True), DEFINITE: _ONE}
COGS_VARFREE = Format("cogs_varfree", ".lf", line_records, parse, write, children=_CHILDREN.get)
