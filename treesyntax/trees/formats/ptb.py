"""Penn Treebank brackets (Marcus et al. 1993): ``ptb``, one tree a line, and ``mrg``, the files
of the release, where trees span lines and blank lines are skipped.

Interior nodes are categories, leaves are words. Brackets inside words are written ``-LRB-``,
``-RRB-``, ``-LCB-``, ``-RCB-``, ``-LSB-``, ``-RSB-``; a Tree holds the bracket itself. Categories
are left as they are. Unlabelled brackets around a whole tree, ``( (S …) )``, are dropped; others
become nodes with an empty label. Only ASCII white space separates tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from treesyntax.errors import InputError
from treesyntax.files import LONGEST_LINE, read_lines
from treesyntax.trees.formats.base import (
    Format,
    Record,
    RecordError,
    exact,
    line_records,
    subtrees_ending,
)
from treesyntax.trees.tree import Tree

_TOKEN = re.compile(r"\(\s*[^\s()]*|\)|[^\s()]+", re.ASCII)
_BRACKETS = {"(": "LRB", ")": "RRB", "{": "LCB", "}": "RCB", "[": "LSB", "]": "RSB"}
_ESCAPES = {bracket: f"-{name}-" for bracket, name in _BRACKETS.items()}
_UNESCAPES = {escape: bracket for bracket, escape in _ESCAPES.items()}
_ESCAPED = re.compile("|".join(_UNESCAPES))
_TO_ESCAPE = str.maketrans(_ESCAPES)


def parse(text: str) -> Tree:
    """The constituency tree of one line."""
    if "\n" in text:
        raise RecordError("a tree spans several lines", "use the format mrg for such files")
    return _parse(text, "if trees span several lines, use the format mrg")


def parse_mrg(text: str) -> Tree:
    """The constituency tree of a text that may span lines."""
    tree = _parse(text, "balance the brackets of the tree that begins here")
    if not len(tree):
        raise RecordError("no tree", "mrg has no empty trees; use the format ptb")
    return tree


def _parse(text: str, remedy_if_open: str) -> Tree:
    parents, labels, words = _scan(text, remedy_if_open)
    if _ESCAPED.search(text):
        labels = [_unescaped(x) if w >= 0 else x for x, w in zip(labels, words, strict=True)]
    outer = _outer_brackets(parents, labels) if labels and not labels[0] else 0
    if outer:
        parents = [-1, *(parent - outer for parent in parents[outer + 1 :])]
    return Tree(parents, labels[outer:], words[outer:])


def _scan(text: str, remedy_if_open: str) -> tuple[list[int], list[str], list[int]]:
    """Parents, labels and words before unescaping, in one pass: every training line comes here."""
    parents: list[int] = []
    labels: list[str] = []
    words: list[int] = []
    current = -1
    word = 0
    for index, token in enumerate(_TOKEN.findall(text)):
        first = token[0]
        if first == "(":
            if current < 0 and parents:
                raise _fault(text, index, "a second tree begins", "write one tree a record")
            parents.append(current)
            current = len(labels)
            labels.append(token[1:].lstrip())
            words.append(-1)
        elif first == ")":
            if current < 0:
                raise _fault(text, index, "a ')' closes nothing", remedy_if_open)
            if current == len(labels) - 1:
                cause = f"the constituent ({labels[current]:.40} ) is empty"
                raise _fault(text, index, cause, "give it a word or remove it")
            current = parents[current]
        else:
            if current < 0:
                cause = f"{token[:40]!r} stands outside the brackets"
                raise _fault(text, index, cause, "put every word inside a bracket like (NN cat)")
            parents.append(current)
            labels.append(token)
            words.append(word)
            word += 1
    if current >= 0:
        count = text.count("(") - text.count(")")
        plural = "s are" if count > 1 else " is"
        raise RecordError(f"{count} bracket{plural} still open at the end", remedy_if_open)
    return parents, labels, words


def _outer_brackets(parents: list[int], labels: list[str]) -> int:
    """How many unlabelled brackets with a single child enclose the whole tree."""
    arity = [0] * len(parents)
    for parent in parents[1:]:
        arity[parent] += 1
    outer = 0
    while not labels[outer] and arity[outer] == 1:
        outer += 1
    return outer


def _unescaped(word: str) -> str:
    return _ESCAPED.sub(lambda match: _UNESCAPES[match.group()], word)


def _fault(text: str, index: int, cause: str, remedy: str) -> RecordError:
    """The error for a token; its line and column are found here, the fast loop does not track them."""
    start = next(islice(_TOKEN.finditer(text), index, None)).start()
    offset = text.count("\n", 0, start)
    column = start - (text.rfind("\n", 0, start) + 1) + 1
    return RecordError(f"{cause} (character {column})", remedy, offset)


def _render(tree: Tree) -> str:
    arities = tree.arities.tolist()
    return " ".join(
        "(" + label if arity else label.translate(_TO_ESCAPE) + ")" * endings
        for label, arity, endings in zip(tree.labels, arities, subtrees_ending(tree), strict=True)
    )


def write(tree: Tree) -> str:
    """The tree in brackets on one line."""
    return exact("ptb", parse, tree, _render(tree))


def write_mrg(tree: Tree) -> str:
    """The tree on one line, in an outer unlabelled bracket as in the release; no tree may be empty."""
    return exact("mrg", parse_mrg, tree, f"( {_render(tree)} )")


def mrg_records(path: Path) -> Iterator[Record]:
    """The trees of a file; one ends with the line on which all its brackets are closed."""
    start, depth, size = 0, 0, 0
    lines: list[str] = []
    for number, line in enumerate(read_lines(path), start=1):
        if not lines and not line.strip():
            continue
        start, size = (start, size + len(line)) if lines else (number, len(line))
        if size > LONGEST_LINE:
            raise InputError(
                path,
                start,
                f"the tree that begins here is longer than {LONGEST_LINE >> 20} MiB",
                "balance its brackets",
            )
        lines.append(line)
        depth += line.count("(") - line.count(")")
        if depth <= 0:
            yield Record(start, "\n".join(lines))
            lines, depth = [], 0
    if lines:
        yield Record(start, "\n".join(lines))


PTB = Format("ptb", ".ptb", line_records, parse, write)
MRG = Format("mrg", ".mrg", mrg_records, parse_mrg, write_mrg)
