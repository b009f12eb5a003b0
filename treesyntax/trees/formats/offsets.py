"""Where the words of a tree stand in their raw line, in characters from 0, the end exclusive.

CoNLL-U has it in the column MISC, ``start_char=4|end_char=7``, or not at all: then words are found
in the line one after another, with nothing but white space between. The words of a multi-word
token (French ``du`` = de + le) that have no places of their own have the token's. PTB brackets
have no room for it: the file ``NAME.offsets`` beside ``NAME`` has one line a tree, ``4:7`` for
each word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from treesyntax.errors import InputError
from treesyntax.files import read_lines
from treesyntax.trees.formats import conllu
from treesyntax.trees.formats.base import RecordError

Span = tuple[int, int]

OFFSETS = ".offsets"
_START = "start_char="
_PLACE = re.compile(r"(?:^|\|)start_char=([0-9]{1,9})\|end_char=([0-9]{1,9})(?:\||$)", re.MULTILINE)
_PAIR = re.compile(r"([0-9]{1,9}):([0-9]{1,9})")
_RANGE = re.compile(r"[0-9]{1,9}-([0-9]{1,9})")
_TEXT = re.compile(r"^# text = ?(.*)$", re.MULTILINE)


def offsets_path(path: Path) -> Path:
    """The file of offsets beside a file of brackets."""
    return path.with_name(path.name + OFFSETS)


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
            try:
                yield _places_in_misc(record.text)
            except RecordError as error:
                place = record.line + error.offset
                raise InputError(path, place, error.cause, error.remedy) from None
        return
    for number, line in enumerate(read_lines(offsets_path(path)), start=1):
        try:
            yield line_spans(line)
        except RecordError as error:
            raise InputError(offsets_path(path), number, error.cause, error.remedy) from None


def line_spans(text: str) -> list[Span]:
    """The places in a line of a file of offsets.

    Raises:
        RecordError: if it is not a list of ``START:END``.
    """
    pairs = [_PAIR.fullmatch(pair) for pair in text.split()]
    if None in pairs:
        raise RecordError("is not a list of START:END", "parse the text again")
    return [(int(pair[1]), int(pair[2])) for pair in pairs if pair]


def conllu_comment(text: str) -> str | None:
    """The raw line that a CoNLL-U record names in its comment ``# text =``, None for none."""
    found = _TEXT.search(text)
    return found[1] if found else None


def conllu_spans(text: str, line: str) -> list[Span]:
    """The place of every word of a CoNLL-U record in its raw line.

    Raises:
        RecordError: if some words have places in MISC and others do not, or there are none and
            a word does not stand in the line after the one before.
    """
    return _places_in_misc(text) if _START in text else _places_of_forms(text, line)


def _places_in_misc(text: str) -> list[Span]:
    rows = conllu.rows(text)
    words = [row for row in rows if row]
    places = _PLACE.findall("\n".join([row[-1] for row in words]))
    # Without multi-word tokens and empty nodes the last ID is the number of words.
    if len(places) == len(words) and words and words[-1][0] == str(len(words)):
        return [(int(start), int(end)) for start, end in places]
    spans: list[Span] = []
    for offset, row, token in _words_and_tokens(rows):
        if (place := _PLACE.search(row[-1])) or (token and (place := _PLACE.search(token[-1]))):
            spans.append((int(place[1]), int(place[2])))
        else:
            raise RecordError(
                "the word has no start_char and end_char in MISC",
                "pieces are attached by offsets; parse the raw text with treesyntax parse",
                offset,
            )
    return spans


def _places_of_forms(text: str, line: str) -> list[Span]:
    spans: list[Span] = []
    position, last = 0, None
    for offset, row, token in _words_and_tokens(conllu.rows(text)):
        if token and token is last:
            spans.append(spans[-1])
            continue
        last, form = token, (token or row)[1]
        while line[position : position + 1].isspace():
            position += 1
        if not line.startswith(form, position):
            found = line[position : position + 20]
            raise RecordError(
                f"the word {form[:40]!r} is not at character {position} of the text, where "
                f"{found!r} stands",
                "give the very text of the trees, or parse it with treesyntax parse",
                offset,
            )
        spans.append((position, position + len(form)))
        position += len(form)
    return spans


def _words_and_tokens(
    rows: list[list[str]],
) -> Iterator[tuple[int, list[str], list[str] | None]]:
    """The offset and columns of every word, and those of the multi-word token it belongs to."""
    token, until, word = None, 0, 0
    for offset, row in enumerate(rows):
        if len(row) < 2 or "." in row[0]:
            continue
        if "-" in row[0]:
            last = _RANGE.fullmatch(row[0])  # others are refused where the tree is read
            token, until = row, int(last[1]) if last else 0
            continue
        word += 1
        yield offset, row, token if word <= until else None
