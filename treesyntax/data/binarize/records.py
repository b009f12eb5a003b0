"""The records of a regular file, split a block of text at a time.

A block with anything out of the ordinary (carriage returns, white space in a blank line, several
blank lines, a byte order mark, bytes that are not UTF-8) and what follows are read again line by
line, as everywhere else, so that records, line numbers and errors are the same.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from treesyntax.data.encoding import TEXT
from treesyntax.files import LONGEST_LINE
from treesyntax.trees.formats import Record, get_format
from treesyntax.trees.formats.base import line_records
from treesyntax.trees.formats.conllu import records as conllu_records

BLOCK = 1 << 20
AT_ONCE = 2000  # records that are read one by one

OneByOne = Callable[[Path], Iterator[Record]]
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NEWLINE, SPACE, TAB = b"\n \t"


class Records(NamedTuple):
    """Many records, without an object for each.

    Attributes:
        lines: the line of the file on which each begins, from 1 on.
        texts: the raw text of each.
    """

    lines: list[int]
    texts: list[str]

    @classmethod
    def of(cls, records: Iterable[Record]) -> Records:
        """These records."""
        pairs = list(records)
        return cls([record.line for record in pairs], [record.text for record in pairs])

    def record(self, index: int) -> Record:
        """One of them."""
        return Record(self.lines[index], self.texts[index])


class _Cut(NamedTuple):
    """How blocks are cut: what stands behind a record, and the line on which each begins."""

    end: str
    starts: Callable[[bytes, int], Sequence[int]]


class _Block(NamedTuple):
    """The lines on which the records of some text begin, the text, and what follows each."""

    starts: Sequence[int]
    text: str
    end: str

    def records(self) -> Records:
        texts = self.text.split(self.end)[: len(self.starts)]
        texts[-1] = texts[-1].removesuffix("\n")
        return Records(list(self.starts), texts)


def records_of(path: Path, format_name: str, size: int) -> Iterator[Records]:
    """The records of a regular file, ``size`` at a time; it may be opened twice."""
    lines: list[int] = []
    texts: list[str] = []
    for more in _parts(path, format_name):
        lines += more.lines
        texts += more.texts
        whole = len(lines) - len(lines) % size
        for first in range(0, whole, size):
            yield Records(lines[first : first + size], texts[first : first + size])
        del lines[:whole], texts[:whole]
    if lines:
        yield Records(lines, texts)


def count_of(path: Path, format_name: str) -> int:
    """How many records a file has."""
    return sum(
        len(part.starts) if isinstance(part, _Block) else sum(1 for _ in part)
        for part in _split(path, format_name)
    )


def _split(path: Path, format_name: str) -> Iterator[_Block | Iterator[Record]]:
    """The file in blocks while it is as usual, then (or from the start) record by record."""
    one_by_one = line_records if format_name == TEXT else get_format(format_name).records
    cut = CUTS.get(one_by_one)
    return _in_blocks(path, cut, one_by_one) if cut else iter([one_by_one(path)])


def _parts(path: Path, format_name: str) -> Iterator[Records]:
    for part in _split(path, format_name):
        if isinstance(part, _Block):
            yield part.records()
            continue
        while (some := Records.of(islice(part, AT_ONCE))).lines:
            yield some


def _in_blocks(path: Path, cut: _Cut, one_by_one: OneByOne) -> Iterator[_Block | Iterator[Record]]:
    line = 1
    try:
        for block in _blocks(path, cut.end.encode()):
            if b"\r" in block or block.startswith(BYTE_ORDER_MARK):
                break
            yield _Block(cut.starts(block, line), block.decode(), cut.end)
            line += block.count(b"\n")
        else:
            return
    except (OSError, EOFError, zlib.error, ValueError):
        pass  # the slower way reports it
    yield (record for record in one_by_one(path) if record.line >= line)


def _blocks(path: Path, end: bytes) -> Iterator[bytes]:
    """The bytes of a file in blocks that stop behind ``end`` or with the file."""
    with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
        pending = b""
        while read := stream.read(BLOCK):
            block, found, rest = (pending + read).rpartition(end)
            if found:
                yield block + found
            pending = rest
            if len(pending) + BLOCK > LONGEST_LINE:
                raise ValueError
        if pending:
            yield pending


def _lines(block: bytes, line: int) -> Sequence[int]:
    return range(line, line + block.count(b"\n") + (not block.endswith(b"\n")))


def _paragraphs(block: bytes, line: int) -> Sequence[int]:
    """The first lines of the records between blank lines; ValueError for blanks out of the ordinary."""
    codes = np.frombuffer(block, np.uint8)
    newlines = np.flatnonzero(codes == NEWLINE)
    behind = codes[newlines[newlines < len(codes) - 1] + 1]
    blank = np.flatnonzero(behind == NEWLINE)
    if (
        ((behind == SPACE) | (behind == TAB)).any()
        or codes[0] in (NEWLINE, SPACE, TAB)
        or (np.diff(blank) == 1).any()
    ):
        raise ValueError
    # A blank line at the end has no record behind it.
    inner = blank[newlines[blank] + 2 < len(codes)]
    return [line, *(line + inner + 2).tolist()]


CUTS: dict[OneByOne, _Cut] = {
    line_records: _Cut("\n", _lines),
    conllu_records: _Cut("\n\n", _paragraphs),
}
