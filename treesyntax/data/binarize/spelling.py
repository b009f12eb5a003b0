"""The character spans of the subwords of a segmented line in its raw text.

SentencePiece normalises before it segments: ``½`` becomes ``1⁄2``, a letter and its accent one
character. Its subwords spell the normalised line, for whose characters the origins are known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from treesyntax.data.binarize.alignment import Span
from treesyntax.errors import TreeError
from treesyntax.remarks import Remark

WORD_START = "▁"
CONTINUES = "@@"
MISSPELT = Remark(
    "words that their subwords spell otherwise",
    "check that the segmented text is that of the trees",
)
_BYTE = re.compile("<0x([0-9A-F]{2})>")
_BYTES = re.compile("(?:<0x[0-9A-F]{2}>)+")


def by_word(subwords: list[str], style: str) -> list[list[str]]:
    """The subwords of each word: a new word begins at ``▁``, or after a subword without ``@@``."""
    words: list[list[str]] = []
    complete = True
    for subword in subwords:
        begins = subword.startswith(WORD_START) if style == "sentencepiece" else complete
        if begins or not words:  # the first subword of a line begins a word, marked or not
            words.append([])
        words[-1].append(subword)
        complete = not subword.endswith(CONTINUES)
    return words


def text_of(subwords: Sequence[str], style: str) -> str:
    """The word that its subwords spell, with the characters of bytes (``<0xE2>``)."""
    if style != "sentencepiece":
        return "".join(subword.removesuffix(CONTINUES) for subword in subwords)
    joined = "".join(subwords).replace(WORD_START, "")
    return _BYTES.sub(lambda run: _decoded(_bytes_of(run[0])) or run[0], joined)


def _bytes_of(run: str) -> bytes:
    return b"".join(bytes.fromhex(byte[1]) for byte in _BYTE.finditer(run))


def alike_until(left: Sequence[str], right: Sequence[str]) -> int:
    """How many items both have at their beginning."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(left), len(right)))


def raw_spans(spans: Sequence[Span | None], origins: Sequence[int]) -> list[Span | None]:
    """Spans of the normalised line as spans of the raw one.

    Args:
        spans: the first character of each and the one after the last.
        origins: the index in the raw line of each normalised character, and of its end.
    """
    # Characters that come from the same one (½) all stand for the whole of it.
    ends = [max(start + 1, end) for start, end in pairwise(origins)]
    return [span and (origins[span[0]], ends[span[1] - 1]) for span in spans]


def subword_spans(subwords: Sequence[str], text: str, style: str) -> list[Span | None]:
    """The span of each subword in the text that they spell, None for white space alone.

    The white space of the text does not count; in the style ``sentencepiece`` ``▁`` is a space, in
    ``subword-nmt`` ``@@`` ends a subword that the next one continues. Of the bytes of a character
    (``<0xE2>``) the last one stands for it. Raises TreeError if the subwords spell another text.
    """
    body_of = _sentencepiece_body if style == "sentencepiece" else _subword_nmt_body
    spans: list[Span | None] = []
    position, begun = 0, b""
    for subword in subwords:
        position = _after_space(text, position)
        body = body_of(subword, text, position)
        if not text.startswith(body, position) and (byte := _BYTE.fullmatch(body)):
            begun += bytes.fromhex(byte[1])
            body = _decoded(begun)
            begun = b"" if body else begun
        if begun or not body:
            spans.append(None)
            continue
        if not text.startswith(body, position):
            raise _misspelt(subword, text, position)
        spans.append((position, position + len(body)))
        position += len(body)
    position = _after_space(text, position)
    if position < len(text):
        raise TreeError(
            f"the subwords end before {text[position : position + 20]!r} at character {position} "
            "of the text",
            "segment the very text of the trees and choose the right --subwords-style",
        )
    return spans


def _after_space(text: str, position: int) -> int:
    while position < len(text) and (text[position].isspace() or text[position] == WORD_START):
        position += 1
    return position


def _sentencepiece_body(subword: str, text: str, position: int) -> str:
    return subword.replace(WORD_START, " ").strip(" ")


def _subword_nmt_body(subword: str, text: str, position: int) -> str:
    end = position + len(subword)
    whole = text.startswith(subword, position) and not text[end : end + 1].strip()
    return subword if whole else subword.removesuffix(CONTINUES)


def _decoded(begun: bytes) -> str:
    try:
        return begun.decode()
    except UnicodeDecodeError:
        return ""


def _misspelt(subword: str, text: str, position: int) -> TreeError:
    return TreeError(
        f"the subword {subword[:40]!r} is not at character {position} of the text, which has "
        f"{text[position : position + 20]!r} there",
        "segment the very text of the trees and choose the right --subwords-style",
    )
