"""Where the pieces of a segmented line stand in its raw text.

SentencePiece normalises before it segments: ``½`` becomes ``1⁄2``, a letter and its accent one
character. Pieces spell the normalised line, whose characters know where they come from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from treesyntax.data.binarize.alignment import Span
from treesyntax.errors import TreeError

WORD_START = "▁"
CONTINUES = "@@"
PIECES_STYLES = ("sentencepiece", "subword-nmt")
_BYTE = re.compile("<0x([0-9A-F]{2})>")


def raw_places(places: Sequence[Span | None], origins: Sequence[int]) -> list[Span | None]:
    """Places in the normalised line as places in the raw one.

    Args:
        places: first character and the one after the last.
        origins: the place in the raw line of each normalised character, and of its end.
    """
    # Characters that come from the same one (½) all stand for the whole of it.
    ends = [max(start + 1, end) for start, end in pairwise(origins)]
    return [place and (origins[place[0]], ends[place[1] - 1]) for place in places]


def piece_places(pieces: Sequence[str], text: str, style: str) -> list[Span | None]:
    """Where each piece stands in the text that the pieces spell, None for white space alone.

    Of the bytes of a character (``<0xE2>``) the last one stands for it.

    Args:
        pieces: a segmented line.
        text: the line; its white space does not count.
        style: ``sentencepiece`` (``▁`` is a space) or ``subword-nmt`` (``@@`` ends a piece that
            the next one continues).

    Raises:
        TreeError: if the pieces do not spell the text.
    """
    body_of = _sentencepiece_body if style == "sentencepiece" else _subword_nmt_body
    places: list[Span | None] = []
    position, begun = 0, b""
    for piece in pieces:
        position = _after_space(text, position)
        body = body_of(piece, text, position)
        if not text.startswith(body, position) and (byte := _BYTE.fullmatch(body)):
            begun += bytes.fromhex(byte[1])
            body = _decoded(begun)
            begun = b"" if body else begun
        if begun or not body:
            places.append(None)
            continue
        if not text.startswith(body, position):
            raise _misspelt(piece, text, position)
        places.append((position, position + len(body)))
        position += len(body)
    position = _after_space(text, position)
    if position < len(text):
        raise TreeError(
            f"the pieces end before {text[position : position + 20]!r} at character {position} of "
            "the text",
            "segment the very text of the trees and choose the right --pieces-style",
        )
    return places


def _after_space(text: str, position: int) -> int:
    while position < len(text) and (text[position].isspace() or text[position] == WORD_START):
        position += 1
    return position


def _sentencepiece_body(piece: str, text: str, position: int) -> str:
    return piece.replace(WORD_START, " ").strip(" ")


def _subword_nmt_body(piece: str, text: str, position: int) -> str:
    end = position + len(piece)
    whole = text.startswith(piece, position) and not text[end : end + 1].strip()
    return piece if whole else piece.removesuffix(CONTINUES)


def _decoded(begun: bytes) -> str:
    try:
        return begun.decode()
    except UnicodeDecodeError:
        return ""


def _misspelt(piece: str, text: str, position: int) -> TreeError:
    return TreeError(
        f"the piece {piece[:40]!r} is not at character {position} of the text, where "
        f"{text[position : position + 20]!r} stands",
        "segment the very text of the trees and choose the right --pieces-style",
    )
