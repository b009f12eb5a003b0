"""The records of a regular file, split a block of text at a time.

A block with anything out of the ordinary (carriage returns, white space in a blank line, several
blank lines, a byte order mark, bytes that are not UTF-8) and what follows are read again line by
line, as everywhere else, so that records, line numbers and errors are the same.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from treesyntax.files import LONGEST_LINE
from treesyntax.formats import Record, get_format
from treesyntax.formats.base import line_records
from treesyntax.formats.conllu import records as conllu_records

BLOCK = 1 << 20
TEXT = "text"

Split = Callable[[bytes, int], list[Record]]
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
NEWLINE, SPACE, TAB = b"\n \t"


def records_of(path: Path, format_name: str) -> Iterator[Record]:
    """The records of a file that can be opened twice, as its format splits it.

    Raises:
        InputError: as the format does, after the records before the fault.
    """
    one_by_one = line_records if format_name == TEXT else get_format(format_name).records
    if one_by_one is line_records:
        return chain.from_iterable(_in_blocks(path, b"\n", _lines, one_by_one))
    if one_by_one is conllu_records:
        return chain.from_iterable(_in_blocks(path, b"\n\n", _paragraphs, one_by_one))
    return one_by_one(path)


def _in_blocks(
    path: Path, end: bytes, split: Split, one_by_one: Callable[[Path], Iterator[Record]]
) -> Iterator[list[Record] | Iterator[Record]]:
    line = 1
    try:
        for block in _blocks(path, end):
            if b"\r" in block or block.startswith(BYTE_ORDER_MARK):
                break
            yield split(block, line)
            line += block.count(b"\n")
        else:
            return
    except (OSError, EOFError, zlib.error, ValueError):
        pass  # for the slower way to tell
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


def _lines(block: bytes, line: int) -> list[Record]:
    lines = block.decode().removesuffix("\n").split("\n")
    return list(map(Record, range(line, line + len(lines)), lines))


def _paragraphs(block: bytes, line: int) -> list[Record]:
    """The records between blank lines.

    Raises:
        ValueError: if the first line, or two in a row, or any that begin with white space are
            blank.
    """
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
    texts = block.decode().rstrip("\n").split("\n\n")
    starts = np.append(line, line + blank + 2).tolist()
    return list(map(Record, starts, texts))
