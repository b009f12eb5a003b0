"""Tree files in many formats; ``FORMATS`` lists them, one file each. `register_format` adds one of your own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from treesyntax.errors import TreeError, unknown_name
from treesyntax.files import output_file
from treesyntax.trees.formats import (
    coffeescript,
    cogs,
    cogs_varfree,
    conllu,
    for2lam,
    funql,
    javascript,
    jsonl,
    prolog,
    ptb,
    sexpr,
)
from treesyntax.trees.formats.base import (
    FORMATS,
    Format,
    Record,
    RecordError,
    line_records,
    parse_record,
    register_format,
)
from treesyntax.trees.names import TEXT
from treesyntax.trees.tree import Tree

__all__ = [
    "FORMATS",
    "Format",
    "Record",
    "RecordError",
    "get_format",
    "parse_record",
    "parse_tree",
    "read_trees",
    "reader_of",
    "register_format",
    "write_trees",
]

for _format in (
    conllu.CONLLU,
    ptb.PTB,
    ptb.MRG,
    sexpr.SEXPR,
    sexpr.SEXPR_BARE,
    prolog.PROLOG,
    jsonl.JSONL,
    for2lam.FOR,
    for2lam.LAMBDA,
    coffeescript.COFFEESCRIPT,
    javascript.JAVASCRIPT,
    cogs.COGS,
    cogs_varfree.COGS_VARFREE,
    funql.FUNQL,
):
    register_format(_format)


def get_format(name: str) -> Format:
    """The format of that name.

    Raises:
        OptionError: if there is none.
    """
    if name not in FORMATS:
        raise unknown_name("tree format", name, FORMATS)
    return FORMATS[name]


def reader_of(format_name: str) -> Callable[[Path], Iterator[Record]]:
    """What reads the records of a file: those of a format, or its lines for ``text``."""
    return line_records if format_name == TEXT else get_format(format_name).records


def parse_tree(text: str, format_name: str) -> Tree:
    """Read the tree of one record, such as ``(S (NP she) (VP sleeps))`` in the format ``ptb``.

    A line of a file may have its end, and lines may end as on Windows; a byte order mark before them is no part.

    Raises:
        TreeError: if the text is malformed.
        OptionError: if there is no such format.
    """
    return get_format(format_name).parse(_as_in_file(text))


def _as_in_file(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").removesuffix("\n")


def parse_tree_over(text: str, record: str, format_name: str) -> Tree:
    """Read the tree of one record as `parse_tree`, over the words that a text has.

    These are the words of the tree but for multi-word tokens of CoNLL-U, see `conllu.over_text`.
    """
    tree = parse_tree(record, format_name)
    if format_name != conllu.CONLLU.name:
        return tree
    return conllu.over_text(tree, _as_in_file(record), text)


def read_trees(path: str | Path, format_name: str) -> Iterator[Tree]:
    """Read the trees of a file, one at a time.

    Raises:
        InputError: with file and line, if the file cannot be read or a record is malformed.
        OptionError: if there is no such format.
    """
    tree_format = get_format(format_name)
    return (parse_record(tree_format, path, record) for record in tree_format.records(Path(path)))


def write_trees(path: str | Path, trees: Iterable[Tree], format_name: str) -> int:
    """Write a file of trees, all or nothing, and return their number.

    Raises:
        TreeError: if the format cannot hold a tree; the message has the tree's number.
        InputError: if the file cannot be written.
        OptionError: if there is no such format.
    """
    tree_format = get_format(format_name)
    count = 0
    with output_file(path) as staged, staged.open("w", encoding="utf-8", newline="\n") as stream:
        for count, tree in enumerate(trees, start=1):
            try:
                text = tree_format.write(tree)
            except TreeError as error:
                raise TreeError(f"tree {count}: {error.cause}", error.remedy) from None
            stream.write(text + tree_format.end)
    return count
