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


def word_at(tokens: list[str], place: int) -> str:
    """The word at a place."""
    token = tokens[place] if place < len(tokens) else "the end of the line"
    if token in _MARKS or place >= len(tokens):
        raise RecordError(f"token {place + 1} is {token[:40]!r}, expected a word")
    if sign := _INSIDE.search(token):
        cause = f"token {place + 1}, {token[:40]!r}, holds {sign[0]!r}"
        raise RecordError(cause, "separate brackets, commas and the like from words by spaces")
    return token


def mark_at(tokens: list[str], place: int, *expected: str) -> str:
    """The mark at a place, which must be one of these."""
    token = tokens[place] if place < len(tokens) else "the end of the line"
    if token not in expected:
        wanted = " or ".join(map(repr, expected))
        raise RecordError(f"token {place + 1} is {token[:40]!r}, expected {wanted}")
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
    above, place = -1, 0
    while True:
        if tokens[place : place + 1] == [DEFINITE]:
            above, place = add(above, DEFINITE), place + 1
        word, place = word_at(tokens, place), place + 1
        if tokens[place : place + 1] == ["("]:
            frames.append(add(above, FRAME))
            add(frames[-1], word)
        else:
            add(above, word)
            while frames and tokens[place : place + 1] == [")"]:
                frames.pop()
                place += 1
            if not frames:
                break
            mark_at(tokens, place, ",", ")")
        place += 1
        role, place = [word_at(tokens, place)], place + 1
        while mark_at(tokens, place, "=", ".") == ".":
            role.append(word_at(tokens, place + 1))
            place += 2
        above, place = add(frames[-1], ".".join(role)), place + 1
    if place < len(tokens):
        raise RecordError(f"{tokens[place][:40]!r} follows the end of the form")
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
        parts: list[str | int] = [label, *below]
        if label == FRAME and below:
            parts = [below[0], "("]
            for role in below[1:]:
                parts += [labels[role].replace(".", " . "), "=", *children[role], ","]
            parts[-1:] = [")"]
        pending.extend(reversed(parts))
    return exact("cogs_varfree", parse, tree, " ".join(tokens))


_ONE = Children((any_label,), optional=True)
_CHILDREN = {FRAME: Children((any_label, any_label), more=True, optional=True), DEFINITE: _ONE}
COGS_VARFREE = Format("cogs_varfree", ".lf", line_records, parse, write, children=_CHILDREN.get)
