"""What a tree format is: a cheap split of a file into records, a parser and its exact inverse.

Splitting is separate from parsing, so that records can be parsed in other processes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from treesyntax.errors import InputError, TreeError
from treesyntax.files import read_lines
from treesyntax.jobs import imports
from treesyntax.jobs.imports import Registry
from treesyntax.remarks import Remark, at_line, remark, remarks_of
from treesyntax.trees.formats.moses import check_characters
from treesyntax.trees.names import TEXT
from treesyntax.trees.tree import Tree

SPACE = "␣"
"""A space inside a label, since labels become tokens, which hold none."""
_OTHER_SPACE = re.compile(r"[^\S ]")
_ABSTRACT_MEANING = re.compile(r"(?:^|\()\s*([^\s()]+\s+/\s+[^\s()]+)\s+:[A-Za-z]", re.ASCII)
VISIBLE = Remark(f"the sign {SPACE}", "it stands for a space in labels and is written back as one")

Labels = Callable[[str], bool]
"""Whether a label is one of those that are meant."""


def any_label(_: str) -> bool:
    """All labels."""
    return True


class Children(NamedTuple):
    """The children that nodes of a label have.

    Attributes:
        child_labels: for each child in turn, the labels that it may have.
        more: whether others like the last may follow.
        optional: whether a node may also have none at all.
    """

    child_labels: tuple[Labels, ...] = ()
    more: bool = False
    optional: bool = False

    def may_be(self, number: int) -> bool:
        """Whether a node may have this many children."""
        least = len(self.child_labels)
        return number == least or (self.more and number > least) or (self.optional and not number)


def _any_children(_: str) -> Children | None:
    return None


class Record(NamedTuple):
    """The raw text of one tree and the 1-based line of the file on which it begins."""

    line: int
    text: str


class RecordError(TreeError):
    """A fault in the text of one record.

    Args:
        cause: what is wrong, in one clause.
        remedy: what to do about it, in one clause.
        offset: the line within the record, counted from 0.
    """

    def __init__(self, cause: str, remedy: str = "", offset: int = 0) -> None:
        self.offset = offset
        super().__init__(cause, remedy)


class Format(NamedTuple):
    """A format of tree files.

    Attributes:
        name: its name on the command line.
        suffix: the usual suffix of its files.
        records: splits a file; raises InputError only.
        parse: the tree of one record's text; raises RecordError or TreeError only.
        write: the text of a tree, without a final line end, so that ``parse(write(tree))`` is
            the same tree; raises TreeError for a tree that the format cannot hold.
        end: what follows each record in a file.
        root: the labels that a root may have.
        children: what children the nodes of a label have; None where they may be any. Trees that
            keep to it can be written, as far as labels and numbers of children tell.
        learned: whether search learns from training trees what children nodes have, since the
            grammar of the language is too large to be written in ``children``.
    """

    name: str
    suffix: str
    records: Callable[[Path], Iterator[Record]]
    parse: Callable[[str], Tree]
    write: Callable[[Tree], str]
    end: str = "\n"
    root: Labels = any_label
    children: Callable[[str], Children | None] = _any_children
    learned: bool = False


FORMATS: Registry[Format] = Registry("tree format", imports.FORMATS)
"""All tree formats by name: those of this package, and those of users."""


def register_format(tree_format: Format) -> Format:
    """Make a tree format known under its name, in a file of your own.

    Raises:
        ValueError: if another format has that name, or it is no plain word.
    """
    if tree_format.name == TEXT:
        raise ValueError("text is what has no trees; give the format another name")
    FORMATS.add(tree_format.name, tree_format, tree_format.parse)
    return tree_format


def line_records(path: Path) -> Iterator[Record]:
    """One record a line; a blank line is the record of an empty tree."""
    for line, text in enumerate(read_lines(path), start=1):
        yield Record(line, text)


def parse_record(tree_format: Format, path: str | Path, record: Record) -> Tree:
    """The tree of a record; a fault is reported with the file and line it is on.

    Raises:
        InputError: if the record is malformed.
    """
    at_line(record.line)
    try:
        tree = tree_format.parse(record.text)
    except TreeError as error:
        line = record.line + (error.offset if isinstance(error, RecordError) else 0)
        cause, remedy = error.cause, error.remedy
        if mark := re.search("^\ufeff", record.text, re.MULTILINE):
            line = record.line + record.text.count("\n", 0, mark.start())
            cause = "begins with a byte order mark, as where files were put one behind another"
            remedy = r"take it out: sed 's/^\xEF\xBB\xBF//'"
        raise InputError(path, line, cause, remedy) from None
    check_characters("\n".join(tree.labels))
    return tree


def subtrees_ending(tree: Tree) -> list[int]:
    """For each node, how many proper ancestors have it as their last descendant."""
    depths = tree.depths.tolist()
    return [depth - min(depth, after) for depth, after in pairwise([*depths, 0])]


def check_one_line(text: str) -> None:
    """Refuse text over several lines in a format with one record a line."""
    if "\n" in text or "\r" in text:
        raise RecordError("a line end inside a record", "write every tree on one line")


def refuse_graph(text: str) -> None:
    """Refuse abstract meaning representations (AMR), whose brackets would be read as another tree.

    Raises:
        RecordError: for ``( w / want-01 :ARG0 …``, a variable, its concept and a role.
    """
    if graph := _ABSTRACT_MEANING.search(text):
        cause = f"{graph[1][:40]!r} is AMR, a graph, in which a node may have several parents"
        raise RecordError(cause, "make a tree of it first, such as ( want-01 ( :ARG0 boy ) )")


def with_visible_spaces(text: str) -> str:
    """A string or another leaf as a label, with `SPACE` for every space.

    Raises:
        RecordError: for other white space.
    """
    if match := _OTHER_SPACE.search(text):
        raise RecordError(
            f"{text[:40]!r} holds white space other than spaces (U+{ord(match[0]):04X})",
            "labels become tokens, which hold none; write it as an escape or as a space",
        )
    if SPACE in text:
        remark(VISIBLE)
    return text.replace(" ", SPACE)


def exact(format_name: str, parse: Callable[[str], Tree], tree: Tree, text: str) -> str:
    """``text`` itself, if reading it gives back ``tree``; else a TreeError.

    A format cannot hold every tree: a label may look like a bracket, relations may have no place.
    Reading the text back finds all these cases; a list of checks would miss some.
    """
    fault = _storage_fault(text)
    if not fault:
        try:
            with remarks_of(""):  # what was read before, and is not counted twice
                fault = _difference(tree, parse(text))
        except TreeError as error:
            fault = error.cause
    if fault:
        raise TreeError(
            f"{format_name} cannot hold this tree ({fault})",
            "write it as jsonl, which holds any tree",
        )
    return text


def _storage_fault(text: str) -> str:
    if "\r" in text:
        return "a label holds a carriage return"
    if text.startswith("\ufeff"):
        return "it would begin with a byte order mark, which is no part of a file's text"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "a label holds half a surrogate pair, which is not valid Unicode"
    return ""


def _difference(tree: Tree, reread: Tree) -> str:
    if tree == reread:
        return ""
    if len(tree) != len(reread):
        return f"{len(tree)} nodes would be read back as {len(reread)}"
    if len(tree.relations) != len(reread.relations):
        return "its relations would be lost" if tree.relations else "it has no relations"
    for node in range(len(tree)):
        for name in ("parent", "label", "word", "relation", "branch"):
            field = f"{name}es" if name == "branch" else f"{name}s"
            values, reread_values = getattr(tree, field), getattr(reread, field)
            if len(values) and values[node] != reread_values[node]:
                change = (
                    f"{_shown(values[node])} would be read back as {_shown(reread_values[node])}"
                )
                return f"the {name} of node {node}, {change}"
    return "it would be read back differently"


def _shown(value: object) -> str:
    return repr(value[:40]) if isinstance(value, str) else str(value)
