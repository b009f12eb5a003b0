"""Tables with tabs between the columns, written by hand, by pandas or by Excel.

By hand, a quote is text. pandas puts fields with a quote, a tab or a line end into double quotes and doubles the
quotes inside, Excel also those with a comma; either may be told to quote all. A file is read so if it is what one
of them writes, field by field.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from treesyntax.errors import InputError
from treesyntax.files import LONGEST_LINE, read_lines
from treesyntax.remarks import Remark, at_line, remark

csv.field_size_limit(LONGEST_LINE)
"""Python's own limit, 128 KiB, would make a longer text a fault of the file."""
QUOTED = Remark(
    "fields in double quotes, as pandas and Excel write them", "they are read without the quotes"
)
KEPT = Remark(
    "fields in double quotes",
    "the quotes are read as text, as other fields that would need them have none",
)
COLUMNS = 2
BRACKETS, HEADER_WORDS = frozenset("()[]{}"), 2
"""A header is told by what it lacks and by its length."""
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars", ",": "commas"}
_QUOTE = '"'
_SPECIAL = (_QUOTE, "\t", "\n", "\r")
DIALECTS: tuple[Callable[[str], bool], ...] = (
    lambda field: any(sign in field for sign in _SPECIAL),  # pandas
    lambda field: any(sign in field for sign in (*_SPECIAL, ",")),  # Excel
    lambda field: True,
)
"""Whether a field is quoted, by the ways to write a table."""


def read_table(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The columns of every row, with the line of the file on which it begins.

    Raises:
        InputError: if the file cannot be read.
    """
    lines = list(read_lines(path))
    rows = _unquoted(lines) if any(_is_quoted(line) for line in lines) else None
    kind = KEPT if rows is None else QUOTED
    if rows is None:
        fields = (line.split("\t") for line in lines)
        rows = [(before, row, sum(map(_wrapped, row))) for before, row in enumerate(fields)]
    for before, columns, quoted in rows:
        at_line(before + 1)
        if quoted:
            remark(kind, quoted)
        yield before + 1, columns


def read_pairs(path: Path) -> Iterator[tuple[int, str, str]]:
    """The questions and forms of a table, with the line of each.

    Raises:
        InputError: for a row of other than two columns, a line of names of columns, or as `read_table`.
    """
    first: tuple[str, str] | None = None
    for line, columns in read_table(path):
        remedy = "write the question, one tab and its logical form"
        if line == 1:
            check_separator(path, columns, remedy)
        if len(columns) != COLUMNS:
            if columns[0].isdecimal() or not columns[0]:
                remedy += r"; with pandas to_csv(FILE, sep='\t', header=False, index=False)"
            raise InputError(path, line, f"has {len(columns)} columns", remedy)
        question, form = columns
        if first is not None and line > 1:
            _check_header(path, first, form)
        first = (question, form) if line == 1 else None
        yield line, question, form


def check_separator(path: Path, first: Sequence[str], remedy: str) -> None:
    """Refuse a first row of a single column that seems to have another separator, or names it for Excel.

    Raises:
        InputError: naming the separator.
    """
    text = "\t".join(first)
    if re.fullmatch(r"sep=.?\s*", text, re.IGNORECASE):
        raise InputError(
            path, 1, f"is {text.strip()!r}, a line for Excel", f"remove it and {remedy}"
        )
    before_brackets = re.split(r"[(\[{]", text)[0]
    signs = [sign for sign in SEPARATORS if sign in before_brackets]
    if len(first) == 1 and signs:
        cause = f"seems to have {SEPARATORS[signs[0]]} ({signs[0]!r}) between its columns"
        raise InputError(path, 1, cause, remedy)


def _check_header(path: Path, first: tuple[str, str], second: str) -> None:
    """Refuse a first line of names of columns: two words without brackets, before a form that has some."""
    question, form = first
    plain = BRACKETS.isdisjoint(form) and not BRACKETS.isdisjoint(second)
    if plain and len(form.split()) <= HEADER_WORDS and len(question.split()) <= HEADER_WORDS:
        raise InputError(
            path,
            1,
            f"looks like a header ({question}, {form})",
            "remove it, or put another pair first if it is one",
        )


def _is_quoted(line: str) -> bool:
    return line.startswith(_QUOTE) or f"\t{_QUOTE}" in line


def _wrapped(field: str) -> bool:
    return len(field) > 1 and field.startswith(_QUOTE) and field.endswith(_QUOTE)


def _unquoted(lines: Sequence[str]) -> list[tuple[int, list[str], int]] | None:
    """The rows, with the number of the line before each and of its quoted fields, if a dialect writes them so."""
    reader = csv.reader((f"{line}\n" for line in lines), delimiter="\t", strict=True)
    rows: list[tuple[int, list[str]]] = []
    before = 0
    try:
        for columns in reader:
            rows.append((before, columns or [""]))
            before = reader.line_num
    except csv.Error:
        return None
    written = "\n".join(lines)
    for needs_quotes in DIALECTS:
        spelt = ("\t".join(_spelt(field, needs_quotes) for field in row) for _, row in rows)
        if "\n".join(spelt) == written:
            return [(before, row, sum(map(needs_quotes, row))) for before, row in rows]
    return None


def _spelt(field: str, needs_quotes: Callable[[str], bool]) -> str:
    doubled = field.replace(_QUOTE, 2 * _QUOTE)
    return f"{_QUOTE}{doubled}{_QUOTE}" if needs_quotes(field) else field
