"""The text of tree files, with the character span of every word in the raw line.

CoNLL-U has it in the column MISC, ``start_char=4|end_char=7`` as stanza writes it; if the words of
a multi-word token have no spans of their own, a line for the token above them has its span. PTB
brackets have no room for spans: the file ``NAME.offsets`` beside ``NAME`` has one line a tree,
``4:7`` for each word. Offsets count characters from 0, the end is exclusive.

A form that a format cannot hold is changed (a tab becomes a space; in brackets a space becomes a
no-break space, ``-LRB-`` and ``-lrb-`` the bracket itself, and the first ``0=yes 1=no``, which would be
read as discbracket, ``0＝yes``). Use offsets, not forms, to find a word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from treesyntax.parsers.parser import Span
from treesyntax.trees.formats import conllu, ptb
from treesyntax.trees.formats.offsets import OFFSETS, read_offsets
from treesyntax.trees.tree import Tree

__all__ = ["OFFSETS", "conllu_text", "offsets_text", "ptb_text", "read_offsets", "record_text"]

_TAB = re.compile(r"[\t\n\r]")
_BRACKETS = str.maketrans({"(": "-LRB-", ")": "-RRB-"})
_ASCII_SPACE = re.compile(r"\s+", re.ASCII)
_WIDE_EQUALS = "\N{FULLWIDTH EQUALS SIGN}"


def record_text(line: str, tree: Tree, spans: Sequence[Span], dependencies: bool) -> str:
    """The record of the tree of a line."""
    return conllu_text(line, tree, spans) if dependencies else ptb_text(tree)


def conllu_text(line: str, tree: Tree, spans: Sequence[Span]) -> str:
    """The record of a dependency tree with its line as a comment."""
    comment = f"# text = {line}"
    if not len(tree):
        return comment.rstrip()
    clean = _relabelled(tree, [_TAB.sub(" ", label) for label in tree.labels])
    rows = conllu.write(clean).split("\n")
    lines = [comment]
    for (start, end), group in groupby(zip(spans, rows, strict=True), key=lambda pair: pair[0]):
        misc = f"start_char={start}|end_char={end}"
        words = [row.split("\t", 1) for _, row in group]
        if len(words) > 1:
            token = _TAB.sub(" ", line[start:end])
            lines.append(f"{words[0][0]}-{words[-1][0]}\t{token}" + "\t_" * 7 + f"\t{misc}")
        word_misc = misc if len(words) == 1 else "_"
        lines += [f"{number}\t{rest.removesuffix('_')}{word_misc}" for number, rest in words]
    return "\n".join(lines)


def ptb_text(tree: Tree) -> str:
    """A constituency tree in brackets."""
    labels = [
        _bracket_form(label) if word >= 0 else _category(label)
        for label, word in zip(tree.labels, tree.words.tolist(), strict=True)
    ]
    nodes = tree.word_nodes()
    if ptb.are_numbered([labels[node] for node in nodes]):
        labels[nodes[0]] = labels[nodes[0]].replace("=", _WIDE_EQUALS, 1)
    return ptb.write(_relabelled(tree, labels))


def _relabelled(tree: Tree, labels: Sequence[str]) -> Tree:
    relations = tree.relations and [_TAB.sub(" ", relation) for relation in tree.relations]
    return Tree._of(tree.parents, labels, tree.words, relations, tree.branches)


def _bracket_form(word: str) -> str:
    plain = ptb._BRACKET.sub(lambda match: ptb._UNESCAPES[match.group()], word)
    return _ASCII_SPACE.sub("\N{NO-BREAK SPACE}", plain)


def _category(label: str) -> str:
    return _ASCII_SPACE.sub("_", label).translate(_BRACKETS)


def offsets_text(spans: Sequence[Span]) -> str:
    """The line of a tree in a file of offsets."""
    return " ".join(f"{start}:{end}" for start, end in spans)
