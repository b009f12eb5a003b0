"""The character spans of the words of a tree in their raw line, from 0, the end exclusive.

CoNLL-U has them in the column MISC, ``start_char=4|end_char=7``, counted in the line or, as stanza does, in
a document that the line is part of; or not at all: then words are
found in the line one after another, with nothing between that anybody sees. The words of a
multi-word token (French ``du`` = de + le) that have no spans of their own have the token's. PTB
brackets have no room for them: the file ``NAME.offsets`` beside ``NAME`` has one line a tree,
``4:7`` for each word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from treesyntax.errors import InputError
from treesyntax.files import plain_name, read_lines
from treesyntax.remarks import Remark, remark
from treesyntax.trees.formats import conllu
from treesyntax.trees.formats.base import RecordError
from treesyntax.trees.formats.moses import after_nothing
from treesyntax.trees.formats.ptb import spellings

Span = tuple[int, int]

MOST_SPANS = 1 << 16
OFFSETS = ".offsets"
ELSEWHERE = Remark(
    "words that are spelt otherwise at their place in the text",
    "their subwords are those of that place: check that the text is the one that was parsed",
)
OTHER_FORM = " in other Unicode characters (NFC and NFD): normalize both"
"""What messages add where a word and its text look alike."""
_OTHER_UNITS = (
    ("utf-16-le", 2, "UTF-16 units, of which an emoji has two, as in JavaScript"),
    ("utf-8", 1, "bytes of UTF-8, of which an accented letter has two"),
)
"""Encodings with the bytes of a unit, and what it is."""
_START = "start_char="
_SPAN = re.compile(r"(?:^|\|)start_char=([0-9]{1,9})\|end_char=([0-9]{1,9})(?:\||$)")
_APART = re.compile(
    r"(?=(?:.*\|)?start_char=([0-9]{1,9})(?:\||$))(?=(?:.*\|)?end_char=([0-9]{1,9})(?:\||$))"
)
_PAIR = re.compile(r"([0-9]{1,9}):([0-9]{1,9})")


def offsets_path(path: Path) -> Path:
    """The file of offsets beside a file of brackets, which may have been packed since."""
    return path.with_name(plain_name(path) + OFFSETS)


def read_offsets(path: str | Path, format_name: str) -> Iterator[list[Span]]:
    """The span of every word of every tree in a file that ``treesyntax parse`` wrote.

    Args:
        path: the tree file.
        format_name: ``conllu`` or ``ptb``.

    Raises:
        InputError: if a word has no span, or the file cannot be read.
    """
    path = Path(path)
    if format_name == "conllu":
        for record in conllu.records(path):
            try:
                yield _spans_in_misc(record.text)
            except RecordError as error:
                fault = record.line + error.offset
                raise InputError(path, fault, error.cause, error.remedy) from None
        return
    for number, line in enumerate(read_lines(offsets_path(path)), start=1):
        try:
            yield line_spans(line)
        except RecordError as error:
            raise InputError(offsets_path(path), number, error.cause, error.remedy) from None


def line_spans(text: str) -> list[Span]:
    """The spans in a line of a file of offsets.

    Raises:
        RecordError: if it is not a list of ``START:END``.
    """
    parsed = [_span_of_pair(pair) for pair in text.split()]
    spans = [span for span in parsed if span]
    if len(spans) < len(parsed):
        raise RecordError("is not a list of START:END", "parse the text again")
    return spans


@lru_cache(MOST_SPANS)
def _span_of_pair(pair: str) -> Span | None:
    match = _PAIR.fullmatch(pair)
    return (int(match[1]), int(match[2])) if match else None


def conllu_comment(text: str) -> str | None:
    """The raw line that a CoNLL-U record names in its comment ``# text =``, None for none."""
    match = conllu.TEXT.search(text)
    return match[1] if match else None


def conllu_spans(text: str, line: str) -> list[Span]:
    """The span of every word of a CoNLL-U record in its raw line.

    Raises:
        RecordError: if a word has no span in MISC and the line is not the words one after another, or the
            spans are those of another text.
    """
    if _START not in text:
        return _spans_of_forms(text, line)
    try:
        spans, forms = _spans_and_forms(text)
    except RecordError:
        # Some versions of stanza give none to a multi-word token of a single word.
        with suppress(RecordError):
            return _spans_of_forms(text, line)
        raise
    spelt = _spelt(spans, forms, line)
    if spelt == len(spans):
        return spans
    # In a document: offsets less that of the line, whose first word is the first in the line.
    before = spans[0][0] - max(line.find(forms[0]), 0)
    moved = [(start - before, end - before) for start, end in spans]
    if _spelt(moved, forms, line) > spelt:
        spans = moved
    _refuse_elsewhere(forms, spans, line)
    return spans


def begin_of(word: str, text: str, position: int) -> int:
    """Where a word should begin: behind white space, and behind what else nobody sees unless that is its beginning."""
    while text[position : position + 1].isspace():
        position += 1
    return position if text.startswith(word, position) else after_nothing(text, position)


def end_of(word: str, text: str, begin: int) -> int:
    """Where a word ends that begins there, as it is or in another of its `spellings`; ``begin`` if it does not."""
    if text.startswith(word, begin):
        return begin + len(word)
    match = spellings(word).match(text, begin)
    return match.end() if match else begin


def check_spelling(words: Sequence[str], spans: Sequence[Span], text: str) -> None:
    """Refuse spans where most words of a tree are not; count single words that are spelt otherwise there.

    Words that share a span (French ``du`` = de + le) are not compared.

    Raises:
        RecordError: with the first word that is not at its place.
    """
    shared = {span for span, after in pairwise(spans) if span == after}
    compared = [pair for pair in zip(words, spans, strict=True) if pair[1] not in shared]
    _refuse_elsewhere([word for word, _ in compared], [span for _, span in compared], text)


def first_misspelt(words: Sequence[str], texts: Sequence[str], kind: Remark) -> int | None:
    """The first word that its text does not spell, if most words are not spelt by theirs.

    Fewer are a remark of this kind: parsers and subword models normalise single words.
    """
    pairs = enumerate(zip(words, texts, strict=True))
    different = [number for number, (word, text) in pairs if not _spells(word, text)]
    if 2 * len(different) > len(words) > 1:
        return different[0]
    if different:
        remark(kind, len(different))
    return None


def not_there(word: str, text: str, position: int) -> str:
    """What is wrong where a word should begin: what stands there, or that only its normal form differs."""
    shown = text[position : position + 20]
    fault = f"is not at character {position} of the text, where {shown!r} stands"
    length = len(unicodedata.normalize("NFD", word))
    normal, there = (
        unicodedata.normalize("NFC", string) for string in (word, text[position:][:length])
    )
    return fault + OTHER_FORM * (bool(word) and there.startswith(normal))


def _spells(word: str, text: str) -> bool:
    """Whether a text is a word, but for a treebank's escapes and quotes, case and what NFKC normalises."""
    if word == text:
        return True
    normal, other = (unicodedata.normalize("NFKC", string).casefold() for string in (word, text))
    return normal == other or spellings(word).fullmatch(text) is not None


def refuse_other_units(words: Sequence[str], spans: Sequence[Span], text: str) -> None:
    """Refuse spans that do not count characters: behind an emoji or an accent these slip.

    Raises:
        RecordError: if more words, and most of them, are spelt at the places that spans have in UTF-16 or
            in UTF-8.
    """
    if text.isascii():
        return
    clamped = [(max(start, 0), max(end, 0)) for start, end in spans]
    right = sum(map(_spells, words, [text[start:end] for start, end in clamped]))
    for encoding, size, units in _OTHER_UNITS:
        encoded = text.encode(encoding, "surrogatepass")
        spans_of = [encoded[size * start : size * end] for start, end in clamped]
        decoded = [span.decode(encoding, "replace") for span in spans_of]
        if sum(map(_spells, words, decoded)) > max(right, len(words) // 2):
            raise RecordError(f"the spans count {units}", "count characters, as Python does")


def _refuse_elsewhere(words: Sequence[str], spans: Sequence[Span], text: str) -> None:
    refuse_other_units(words, spans, text)
    texts = [text[max(start, 0) : max(end, 0)] for start, end in spans]
    number = first_misspelt(words, texts, ELSEWHERE)
    if number is not None:
        start, end = spans[number]
        raise RecordError(
            f"the word {words[number][:40]!r} is not at {start}:{end} of the text, where "
            f"{texts[number][:40]!r} stands",
            "give the very text of the trees, and the spans of their words",
        )


def _spelt(spans: list[Span], forms: list[str], line: str) -> int:
    """How many words are at their place in the line."""
    pairs = zip(spans, forms, strict=True)
    return sum(line[start:end] == form for (start, end), form in pairs if start >= 0)


def _spans_in_misc(text: str) -> list[Span]:
    return _spans_and_forms(text)[0]


def _spans_and_forms(text: str) -> tuple[list[Span], list[str]]:
    """The span of every word in MISC, and the word, or the multi-word token, that is there."""
    if columns := conllu.columns(text):
        spans = [span for misc in columns[conllu.MISC] if (span := _span_in(misc))]
        if len(spans) == len(columns[conllu.MISC]):
            return spans, columns[conllu.FORM]
    spans, forms = [], []
    for offset, row, token in conllu.words_and_tokens(conllu.rows(text)):
        if span := _span_in(row[-1]):
            forms.append(row[conllu.FORM])
        elif token and (span := _span_in(token[-1])):
            forms.append(token[conllu.FORM])
        else:
            raise RecordError(
                "the word has no start_char and end_char in MISC",
                "subwords are attached by character spans; parse the raw text with treesyntax parse",
                offset,
            )
        spans.append(span)
    return spans, forms


# The same few thousand spans occur in all sentences.
@lru_cache(MOST_SPANS)
def _span_in(misc: str) -> Span | None:
    match = _SPAN.search(misc) or _APART.match(misc)  # sorted by name, end_char comes first
    return (int(match[1]), int(match[2])) if match else None


def _spans_of_forms(text: str, line: str) -> list[Span]:
    spans: list[Span] = []
    position, last = 0, None
    for offset, row, token in conllu.words_and_tokens(conllu.rows(text)):
        if token and token is last:
            spans.append(spans[-1])
            continue
        last, form = token, (token or row)[1]
        begin = begin_of(form, line, position)
        position = end_of(form, line, begin)
        if position == begin:
            fault = not_there(form, line, position)
            remedy = "give the very text of the trees, or parse it with treesyntax parse"
            raise RecordError(f"the word {form[:40]!r} {fault}", remedy, offset)
        spans.append((begin, position))
    if rest := line[after_nothing(line, position) :].rstrip():
        raise RecordError(
            f"the text goes on after the last word of the tree, with {rest[:20]!r}",
            "give the very text of the trees, or parse it with treesyntax parse",
        )
    return spans
