"""Subword pieces and parser tokens of one raw line, brought together by character offsets.

A piece owns the words that it overlaps. A piece that overlaps several merges them, as do the
words of one multi-word token (French ``du`` = de + le), which share a place. A piece that overlaps
none (a lone ``▁``, say) joins the piece after it, at the end of the line the one before. A word
that no piece overlaps is in no group. Everything is one pass over pieces and words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from treesyntax.errors import TreeError

Span = tuple[int, int]


class Group(NamedTuple):
    """Words that are one for the model, mostly a single one: ``first`` to before ``end``."""

    first: int
    end: int
    pieces: list[str]


def check_spans(text: str, spans: Sequence[Span]) -> None:
    """Refuse places that cannot be those of words from left to right in this text.

    Raises:
        TreeError: for an empty place, one outside the text, one that begins or ends with a
            space, or one that begins before the end of another.
    """
    before, last = 0, (0, 0)
    for word, span in enumerate(spans, start=1):
        start, end = span
        if span != last and not before <= start < end <= len(text):
            raise _misplaced(word, span, f"is not a place after {before} in a text of {len(text)}")
        if text[start] == " " or text[end - 1] == " ":
            raise _misplaced(word, span, "begins or ends with a space")
        before, last = end, span


def _misplaced(word: int, span: Span, fault: str) -> TreeError:
    return TreeError(
        f"by its offsets word {word} stands at {span[0]}:{span[1]}, which {fault}",
        "give the very text that the trees were made of",
    )


def units(spans: Sequence[Span]) -> list[Span]:
    """The words of each multi-word token and each other word, as ``first`` to before ``end``."""
    found: list[Span] = []
    last = None
    for word, span in enumerate(spans):
        if span == last:
            found[-1] = (found[-1][0], word + 1)
        else:
            found.append((word, word + 1))
        last = span
    return found


def segments(text: str, places: Sequence[Span]) -> list[str]:
    """The text cut behind every place but the last: all of it, each part ends with one place."""
    ends = [0, *[end for _, end in places]]
    ends[-1] = len(text)
    return [text[start:end] for start, end in pairwise(ends)]


def group_units(unit_words: Sequence[Span], pieces: Sequence[list[str]]) -> list[Group]:
    """Groups where every unit has pieces of its own; a unit without is left out."""
    return [
        Group(first, end, own) for (first, end), own in zip(unit_words, pieces, strict=True) if own
    ]


def group_pieces(
    spans: Sequence[Span], pieces: Iterable[str], places: Iterable[Span | None]
) -> list[Group]:
    """Groups of words with the pieces that stand at these places, from left to right.

    Raises:
        TreeError: if there are pieces, but no words.
    """
    groups: list[Group] = []
    waiting: list[str] = []
    word = 0
    for piece, place in zip(pieces, places, strict=True):
        waiting.append(piece)
        if place is None:
            continue
        start, stop = place
        while word < len(spans) and spans[word][1] <= start:
            word += 1
        end = word
        while end < len(spans) and spans[end][0] < stop:
            end += 1
        if end == word:
            continue
        if groups and groups[-1].end > word:
            last = groups[-1]
            last.pieces.extend(waiting)
            groups[-1] = last._replace(end=max(end, last.end))
        else:
            groups.append(Group(word, end, waiting))
        waiting = []
    if waiting and groups:
        groups[-1].pieces.extend(waiting)
    elif waiting and not spans:
        raise TreeError("the text has pieces, but the tree no words", "parse the text again")
    elif waiting:
        groups.append(Group(0, len(spans), waiting))
    return groups
