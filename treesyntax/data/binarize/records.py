"""The records of a regular file, split a block of text at a time.

A block with anything out of the ordinary (carriage returns, white space in a blank line, several
blank lines, comments without a sentence, a byte order mark, bytes that are not UTF-8) and what
follows are read again line by line, as everywhere else, so that records, line numbers and errors
are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treesyntax.files import LONGEST_LINE, NOT_READ, check_kind, unpacked
from treesyntax.trees.formats import Record, reader_of
from treesyntax.trees.formats.base import line_records
from treesyntax.trees.formats.conllu import EMPTY
from treesyntax.trees.formats.conllu import records as conllu_records

BLOCK = 1 << 18
AT_ONCE = 2000  # records that are read one by one

Offsets = NDArray[np.int64]
OneByOne = Callable[[Path], Iterator[Record]]
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NEWLINE, SPACE, TAB, COMMENT = b"\n \t#"


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
    """How blocks are cut: what stands behind a record, and the offset at which each begins."""

    end: str
    starts: Callable[[bytes], Offsets]


class _Block(NamedTuple):
    """Some bytes of a file and their text: the first line, each record's offset, what follows it."""

    line: int
    starts: Offsets
    data: bytes
    text: str
    end: str

    def records(self) -> Records:
        texts = self.text.split(self.end)[: len(self.starts)]
        texts[-1] = texts[-1].removesuffix("\n")
        before = np.searchsorted(np.flatnonzero(_newlines(self.data)), self.starts)
        return Records((self.line + before).tolist(), texts)


def records_of(path: Path, format_name: str, size: int) -> Iterator[Records]:
    """The records of a regular file, ``size`` at a time; it may be opened twice."""
    lines: list[int] = []
    texts: list[str] = []
    for more in _chunks(path, format_name):
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
        len(chunk.starts) if isinstance(chunk, _Block) else sum(1 for _ in chunk)
        for chunk in _split(path, format_name)
    )


def _split(path: Path, format_name: str) -> Iterator[_Block | Iterator[Record]]:
    """The file in blocks while it is as usual, then (or from the start) record by record."""
    one_by_one = reader_of(format_name)
    cut = CUTS.get(one_by_one)
    return _in_blocks(path, cut, one_by_one) if cut else iter([one_by_one(path)])


def _chunks(path: Path, format_name: str) -> Iterator[Records]:
    for chunk in _split(path, format_name):
        if isinstance(chunk, _Block):
            yield chunk.records()
            continue
        while (some := Records.of(islice(chunk, AT_ONCE))).lines:
            yield some


def _in_blocks(path: Path, cut: _Cut, one_by_one: OneByOne) -> Iterator[_Block | Iterator[Record]]:
    line = 1
    try:
        for block in _blocks(path, cut.end.encode()):
            if line == 1:
                check_kind(b"".join(block.partition(b"\n")[:2]), path)
            if b"\r" in block or block.startswith(BYTE_ORDER_MARK):
                break
            yield _Block(line, cut.starts(block), block, block.decode(), cut.end)
            line += int(np.count_nonzero(_newlines(block)))
        else:
            return
    except (*NOT_READ, ValueError):
        pass  # the slower way reports it
    yield (record for record in one_by_one(path) if record.line >= line)


def _blocks(path: Path, end: bytes) -> Iterator[bytes]:
    """The bytes of a file in blocks that stop behind ``end`` or with the file."""
    with unpacked(path) as stream:
        pending = b""
        while read := stream.read(BLOCK):
            block, separator, rest = (pending + read).rpartition(end)
            if separator:
                yield block + separator
            pending = rest
            if len(pending) + BLOCK > LONGEST_LINE:
                raise ValueError
        if pending:
            yield pending


def _newlines(block: bytes) -> NDArray[np.bool_]:
    return np.frombuffer(block, np.uint8) == NEWLINE


def _lines(block: bytes) -> Offsets:
    return _before_end(np.flatnonzero(_newlines(block)) + 1, block)


def _paragraphs(block: bytes) -> Offsets:
    """The starts of the records between blank lines; ValueError for blanks out of the ordinary."""
    codes, newline = np.frombuffer(block, np.uint8), _newlines(block)
    blank = newline[:-1] & newline[1:]
    indented = newline[:-1] & ((codes[1:] == SPACE) | (codes[1:] == TAB))
    if indented.any() or codes[0] in (NEWLINE, SPACE, TAB) or (blank[:-1] & blank[1:]).any():
        raise ValueError
    starts = _before_end(np.flatnonzero(blank) + 2, block)
    _check_last_lines(block, codes, newline, starts)
    return starts


def _check_last_lines(
    block: bytes, codes: NDArray[np.uint8], newline: NDArray[np.bool_], starts: Offsets
) -> None:
    """Refuse a paragraph of comments that is no sentence of its own."""
    line_starts = np.concatenate([[0], np.flatnonzero(newline) + 1])
    behind = np.append(starts[1:] - 1, len(block.rstrip(b"\n")))  # blank lines, and the end
    last = line_starts[np.searchsorted(line_starts, behind) - 1]
    for start in last[codes[last] == COMMENT].tolist():
        if not block.startswith(EMPTY.encode(), start):
            raise ValueError


def _before_end(starts: Offsets, block: bytes) -> Offsets:
    return np.concatenate([[0], starts[starts < len(block)]])


CUTS: dict[OneByOne, _Cut] = {
    line_records: _Cut("\n", _lines),
    conllu_records: _Cut("\n\n", _paragraphs),
}
