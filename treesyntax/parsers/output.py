"""The text of tree files, with the place of every word in the raw line.

CoNLL-U has it in the column MISC, ``start_char=4|end_char=7`` as stanza writes it; the words of a
multi-word token without places of their own stand below a line for the token, which has its
place. PTB brackets have no room for it: the file ``NAME.offsets`` beside ``NAME`` has one line a
tree, ``4:7`` for each word. Offsets count characters from 0, the end is exclusive.

Where a notation cannot hold a form, it is changed (a tab becomes a space, in brackets a space a
no-break space, ``-LRB-`` the bracket itself): forms are for reading, offsets are the truth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from treesyntax.errors import InputError
from treesyntax.files import read_lines
from treesyntax.formats import conllu, ptb
from treesyntax.formats.base import Record
from treesyntax.parsers.base import Span
from treesyntax.tree import Tree

OFFSETS = ".offsets"
PLACE = re.compile(r"(?:^|\|)start_char=([0-9]{1,9})\|end_char=([0-9]{1,9})(?:\||$)")
_PAIR = re.compile(r"([0-9]{1,9}):([0-9]{1,9})")
_TAB = re.compile(r"[\t\n\r]")
_BRACKETS = str.maketrans({"(": "-LRB-", ")": "-RRB-"})
_ASCII_SPACE = re.compile(r"\s+", re.ASCII)
_ESCAPE = re.compile("-[LR][RCS]B-")


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
        own = misc if len(words) == 1 else "_"
        lines += [f"{number}\t{rest.removesuffix('_')}{own}" for number, rest in words]
    return "\n".join(lines)


def ptb_text(tree: Tree) -> str:
    """A constituency tree in brackets."""
    labels = [
        _bracket_form(label) if word >= 0 else _category(label)
        for label, word in zip(tree.labels, tree.words.tolist(), strict=True)
    ]
    return ptb.write(_relabelled(tree, labels))


def _relabelled(tree: Tree, labels: Sequence[str]) -> Tree:
    relations = tree.relations and [_TAB.sub(" ", relation) for relation in tree.relations]
    return Tree._of(tree.parents, labels, tree.words, relations, tree.branches)


def _bracket_form(word: str) -> str:
    plain = _ESCAPE.sub(lambda found: ptb._UNESCAPES[found.group()], word)
    return _ASCII_SPACE.sub("\N{NO-BREAK SPACE}", plain)


def _category(label: str) -> str:
    return _ASCII_SPACE.sub("_", label).translate(_BRACKETS)


def offsets_text(spans: Sequence[Span]) -> str:
    """The line of a tree in a file of offsets."""
    return " ".join(f"{start}:{end}" for start, end in spans)


def read_offsets(path: str | Path, format_name: str) -> Iterator[list[Span]]:
    """The place of every word of every tree in a file that ``treesyntax parse`` wrote.

    Args:
        path: the tree file.
        format_name: ``conllu`` or ``ptb``.

    Raises:
        InputError: if a word has no place, or the file cannot be read.
    """
    path = Path(path)
    if format_name == "conllu":
        for record in conllu.records(path):
            yield _conllu_spans(path, record)
        return
    beside = path.with_name(path.name + OFFSETS)
    for number, line in enumerate(read_lines(beside), start=1):
        pairs = [_PAIR.fullmatch(pair) for pair in line.split()]
        if None in pairs:
            raise InputError(beside, number, "is not a list of START:END", "parse the text again")
        yield [(int(pair[1]), int(pair[2])) for pair in pairs if pair]


def _conllu_spans(path: Path, record: Record) -> list[Span]:
    spans: list[Span] = []
    token: tuple[int, Span] = (0, (0, 0))
    for number, line in enumerate(record.text.split("\n"), start=record.line):
        columns = line.split("\t")
        if line.startswith("#") or len(columns) < 2 or "." in columns[0]:
            continue
        place = PLACE.search(columns[-1])
        if place and "-" in columns[0]:
            token = (int(columns[0].split("-")[1]), (int(place[1]), int(place[2])))
        elif place:
            spans.append((int(place[1]), int(place[2])))
        elif "-" not in columns[0] and len(spans) < token[0]:
            spans.append(token[1])
        elif "-" not in columns[0]:
            raise InputError(
                path,
                number,
                "the word has no start_char and end_char in MISC",
                "pieces are attached by offsets; parse the raw text with treesyntax parse",
            )
    return spans
