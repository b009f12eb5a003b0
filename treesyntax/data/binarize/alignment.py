"""Subwords and parser tokens of one raw line, aligned by character spans.

A subword owns the words that it overlaps. A subword that overlaps several merges them, as do the
words of one multi-word token (French ``du`` = de + le), which share a span. A subword that
overlaps none (a lone ``▁``, say) joins the next subword, at the end of the line the previous one.
A word that no subword overlaps is in no group. Everything is one pass over subwords and words.
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
    subwords: list[str]


def check_spans(text: str, spans: Sequence[Span]) -> None:
    """Raise TreeError for spans that cannot be those of words from left to right in this text."""
    size, before, last = len(text), 0, (0, 0)
    for word, span in enumerate(spans, start=1):
        start, end = span
        if not before <= start < end <= size and span != last:
            raise _misplaced(word, span, f"is not after character {before} in a text of {size}")
        if text[start] == " " or text[end - 1] == " ":
            raise _misplaced(word, span, "begins or ends with a space")
        before, last = end, span


def _misplaced(word: int, span: Span, fault: str) -> TreeError:
    return TreeError(
        f"word {word} has the character span {span[0]}:{span[1]}, which {fault}",
        "give the very text that the trees were made of",
    )


def stretches_outside(text: str, spans: Sequence[Span]) -> int:
    """How many stretches of text that is not white space lie before, between or behind the spans."""
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    gaps = zip(ends, starts, strict=True)
    return sum(end < start and not text[end:start].isspace() for end, start in gaps)


def segments(text: str, spans: Sequence[Span]) -> list[str]:
    """The text cut behind every span but the last: all of it, each part ends with one span."""
    ends = [0, *[end for _, end in spans]]
    ends[-1] = len(text)
    return [text[start:end] for start, end in pairwise(ends)]


def group_units(unit_words: Sequence[Span], subwords: Sequence[list[str]]) -> list[Group]:
    """Groups where every unit has subwords of its own; a unit without is left out."""
    pairs = zip(unit_words, subwords, strict=True)
    return [
        Group(first, end, unit_subwords) for (first, end), unit_subwords in pairs if unit_subwords
    ]


def group_subwords(
    word_spans: Sequence[Span], subwords: Iterable[str], spans: Iterable[Span | None]
) -> list[Group]:
    """Groups of words with the subwords that have these spans, from left to right."""
    groups: list[Group] = []
    waiting: list[str] = []
    word = 0
    for subword, span in zip(subwords, spans, strict=True):
        waiting.append(subword)
        if span is None:
            continue
        start, stop = span
        while word < len(word_spans) and word_spans[word][1] <= start:
            word += 1
        end = word
        while end < len(word_spans) and word_spans[end][0] < stop:
            end += 1
        if end == word:
            continue
        if groups and groups[-1].end > word:
            last = groups[-1]
            last.subwords.extend(waiting)
            groups[-1] = last._replace(end=max(end, last.end))
        else:
            groups.append(Group(word, end, waiting))
        waiting = []
    if waiting and groups:
        groups[-1].subwords.extend(waiting)
    elif waiting and not word_spans:
        raise TreeError("the text has subwords, but the tree no words", "parse the text again")
    elif waiting:
        groups.append(Group(0, len(word_spans), waiting))
    return groups
