"""What a reader makes of a file: counts, the first tree as a drawing, and every remark."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from treesyntax.data.encoding import TEXT
from treesyntax.data.tables import read_pairs
from treesyntax.files import plain_name
from treesyntax.remarks import Remark, Remarks, remark, remarks_of
from treesyntax.trees.formats import Record, get_format, parse_record, reader_of
from treesyntax.trees.formats.moses import check_markup, check_raw
from treesyntax.trees.labels import WORD, node_labels
from treesyntax.trees.tree import NO_WORD, Tree

MOST = 10_000
"""Records that are read where a look has to do, in ``new`` and ``study --plan``."""
MOST_NODES, DEEPEST_INDENT = 40, 30
TABLE = ".tsv"
UNFIT = Remark(
    "labels that are empty or hold white space",
    "labels become tokens, which cannot: replace them before these trees are binarized",
)


@dataclass
class FileSummary:
    """What a reader made of a file.

    Attributes:
        path: the file.
        format_name: the format that it was read in; ``text`` for one sentence a line.
        whole: whether all of it was read.
        records: number of trees, or of lines of text.
        empty: how many of them have no nodes, or no words.
        words: number of words; of trees without words (logical forms, programs) 0.
        labels: the different labels of nodes but words (relations, categories, symbols), or the different
            words of text.
        nodes: number of nodes of all trees.
        deepest: steps from the root to the deepest node of all trees.
        largest: nodes of the largest tree, or words of the longest line.
        first: the first tree that is not empty.
        remarks: what the reader left out or found odd.
    """

    path: Path
    format_name: str
    whole: bool = True
    records: int = 0
    empty: int = 0
    words: int = 0
    labels: set[str] = field(default_factory=set)
    nodes: int = 0
    deepest: int = 0
    largest: int = 0
    first: Tree | None = None
    remarks: Remarks = field(default_factory=lambda: Remarks(""))

    def add_text(self, text: str) -> None:
        """Count a line of text."""
        words = text.split()
        self.records += 1
        self.empty += not words
        self.words += len(words)
        self.labels.update(words)
        self.largest = max(self.largest, len(words))

    def add_tree(self, tree: Tree) -> None:
        """Count a tree."""
        self.records += 1
        self.empty += not len(tree)
        self.words += len(tree.word_nodes())
        self.nodes += len(tree)
        self.labels.update(node_labels(tree))
        self.labels.discard(WORD)
        self.deepest = max(self.deepest, int(tree.depths.max(initial=0)))
        self.largest = max(self.largest, len(tree))
        if self.first is None and len(tree):
            self.first = tree
        pairs = zip(tree.labels, tree.words.tolist(), strict=True)
        if unfit := sum(word == NO_WORD and label.split() != [label] for label, word in pairs):
            remark(UNFIT, unfit)

    def lines(self, drawn: bool = True) -> list[str]:
        """The summary for people; ``drawn``: with the first tree."""
        begin = "" if self.whole else "the first "
        if self.format_name == TEXT:
            counts = (
                f"{begin}{self.records:,} lines of text, {self.empty:,} empty; {self.words:,} words, "
                f"{len(self.labels):,} different; the longest line has {self.largest:,}"
            )
        else:
            words = f"{self.words:,} words" if self.words else "no words, labels alone"
            counts = (
                f"{begin}{self.records:,} trees ({self.format_name}), {self.empty:,} empty; {words}; "
                f"{self.nodes:,} nodes with {len(self.labels):,} labels; the largest tree has "
                f"{self.largest:,} nodes, the deepest {self.deepest:,} steps below the root"
            )
        tree = draw_tree(self.first) if drawn and self.first is not None else []
        unit = "lines" if self.format_name == TEXT else "trees"
        return [f"{self.path}: {counts}", *self.remarks.texts(unit), *tree]

    def to_json(self) -> dict[str, Any]:
        """The summary for scripts."""
        unit = "lines" if self.format_name == TEXT else "trees"
        return {
            "file": str(self.path),
            "format": self.format_name,
            "whole": self.whole,
            "records": self.records,
            "empty": self.empty,
            "words": self.words,
            "labels": len(self.labels),
            "nodes": self.nodes,
            "deepest": self.deepest,
            "largest": self.largest,
            "remarks": self.remarks.to_json(unit),
        }


def summarise(
    path: Path, format_name: str, most: int | None = None, to_parse: bool = False
) -> FileSummary:
    """Read a file, or its first records.

    Args:
        path: the file; of a table with tabs (``.tsv``) the second column is read.
        format_name: of its trees, or ``text``.
        most: how many records are read at most.
        to_parse: whether a parser will read this text.

    Raises:
        InputError: with file and line, if the file cannot be read or a record is malformed.
        OptionError: if there is no such format.
    """
    tree_format = None if format_name == TEXT else get_format(format_name)
    summary = FileSummary(path, format_name)
    with remarks_of(path) as remarks:
        records = _records(path, format_name)
        for record in islice(records, most):
            if tree_format is None:
                remarks.line = record.line
                summary.add_text(record.text)
                check_raw(record.text) if to_parse else check_markup(record.text)
            else:
                summary.add_tree(parse_record(tree_format, path, record))
        summary.whole = next(records, None) is None
    remarks.records = summary.records
    summary.remarks = remarks
    return summary


def _records(path: Path, format_name: str) -> Iterator[Record]:
    if plain_name(path).endswith(TABLE):
        return _forms(path)
    return reader_of(format_name)(path)


def _forms(path: Path) -> Iterator[Record]:
    for line, _, form in read_pairs(path):
        yield Record(line, form)


def draw_tree(tree: Tree) -> list[str]:
    """The lines of a tree, one a node, indented by depth; words with their number, relations behind."""
    lines, words = [], tree.words.tolist()
    for node, depth in enumerate(tree.depths.tolist()[:MOST_NODES]):
        indent = "  " * min(depth, DEEPEST_INDENT) + f"(depth {depth}) " * (depth > DEEPEST_INDENT)
        number = f"{words[node] + 1}:" if words[node] >= 0 else ""
        relation = f"  {tree.relations[node]}" if tree.relations else ""
        lines.append(f"  {indent}{number}{tree.labels[node]}{relation}")
    if len(tree) > MOST_NODES:
        lines.append(f"  … {len(tree) - MOST_NODES:,} more nodes")
    return lines
