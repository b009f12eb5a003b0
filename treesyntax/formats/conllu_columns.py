"""The words of many CoNLL-U records at once, as arrays: some ten times as fast as one by one.

Only what `treesyntax parse` and most treebanks write is read: comments, then words numbered 1, 2,
3 … with ten columns each, whose HEADs form a tree. All other records are left to `conllu`, which
reads them or says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treesyntax.forest import Bools, Forest, Ints, ancestors, any_of_each, before, sum_of_each
from treesyntax.formats.offsets import conllu_comment

Codes = NDArray[np.uint8]

TABS = 9
DIGITS = 5  # longer numbers are left to others
TAB, NEWLINE, ZERO, HYPHEN = map(ord, "\t\n0-")
COMMENT = "# text = "
START, END = "start_char=", "|end_char="
# Looking a few characters ahead stays inside.
PADDING = "\0" * len(START + END)


class Columns(NamedTuple):
    """The words of S records, one record after another.

    Attributes:
        records: which of the records these are [S].
        comments: the text in the comment of each, None without one.
        forest: a node for every word.
        text: what ``forms`` are places in.
        forms: first character and the one after the last of every FORM [2, W].
        places: start_char and end_char of every word or its multi-word token, if MISC has nothing
            else; or 0 [2, W].
    """

    records: Ints
    comments: list[str | None]
    forest: Forest
    text: str
    forms: Ints
    places: Ints


class _Rows(NamedTuple):
    """Lines with ten columns: where they start and end, and their tabs [9, R].

    ``numbers`` are their IDs and end at ``after``; a multi-word token has an ID up to ``last``.
    """

    starts: Ints
    ends: Ints
    tabs: Ints
    numbers: Ints
    after: Ints
    is_token: Bools
    last: Ints

    def part(self, rows: Bools) -> _Rows:
        """Some of the rows."""
        return _Rows(*(values[..., rows] for values in self))  # type: ignore[arg-type]

    def faults(self, codes: Codes, counts: Ints) -> Bools:
        """Whether the ID is not that of a word of so many, or FORM, HEAD or DEPREL is empty."""
        expected = np.arange(1, counts.sum() + 1) - np.repeat(before(counts), counts)
        wrong = (self.numbers != expected) | (self.after != self.tabs[0])
        wrong |= codes[self.starts] == ZERO
        for column in (1, 6, 7):
            wrong |= self.tabs[column - 1] + 1 == self.tabs[column]
        return wrong


def read(texts: Sequence[str]) -> Columns:
    """The records of which all words can be read here."""
    commented = [_comment_and_rows(text) for text in texts]
    records = np.array([number for number, found in enumerate(commented) if found], np.int64)
    comments, bodies = zip(*filter(None, commented), strict=True) if len(records) else ((), ())
    text = "".join([f"{body}\n" for body in bodies]) + PADDING
    codes = codes_of(text)
    ends = np.cumsum(np.fromiter(map(len, bodies), np.int64, len(bodies)) + 1)
    newlines = np.flatnonzero(codes == NEWLINE)
    lines = np.diff(np.searchsorted(newlines, ends), prepend=0)
    rows, whole = _rows(codes, newlines, lines)
    lines = lines[whole]
    is_word = ~rows.is_token
    counts = sum_of_each(is_word, lines)
    words = rows.part(is_word)
    heads, after = _numbers(codes, words.tabs[5] + 1)
    faults = words.faults(codes, counts) | (after != words.tabs[6])
    trees = ~(any_of_each(faults, counts) | _no_trees(heads, counts))
    kept = np.repeat(trees, counts)
    usual = np.flatnonzero(whole)[trees]
    return Columns(
        records[usual],
        [comments[number] for number in usual.tolist()],
        _forest(heads[kept], counts[trees]),
        text,
        np.stack([words.tabs[0] + 1, words.tabs[1]])[:, kept],
        _places(codes, rows, lines)[:, is_word][:, kept],
    )


def codes_of(text: str) -> Codes:
    """A byte for every character, in which only those of ASCII can be told apart."""
    return np.frombuffer(text.encode("latin-1", "replace"), np.uint8)


def _comment_and_rows(record: str) -> tuple[str | None, str] | None:
    """The text in the comments of a record, and the rows below; None for an unusual record."""
    if not record.startswith("#"):
        return None, record
    head, _, rows = record.partition("\n1")
    if head.startswith(COMMENT) and "\n" not in head:
        return head[len(COMMENT) :], "1" + rows
    if not all(line.startswith("#") for line in head.split("\n")):
        return None
    return conllu_comment(head), "1" + rows


def _rows(codes: Codes, ends: Ints, lines: Ints) -> tuple[_Rows, Bools]:
    """The rows of the records whose lines have ten columns each, and which records these are."""
    starts = np.append(0, ends[:-1] + 1) if len(ends) else ends
    tabs = np.flatnonzero(codes == TAB)
    first = np.searchsorted(tabs, starts)
    whole = ~any_of_each(np.diff(first, append=len(tabs)) != TABS, lines)
    kept = np.repeat(whole, lines)
    own = tabs[first[kept] + np.arange(TABS)[:, None]]
    numbers, after = _numbers(codes, starts[kept])
    last, after_last = _numbers(codes, after + 1)
    is_token = (codes[after] == HYPHEN) & (after > starts[kept]) & (after_last == own[0])
    is_token &= after_last > after + 1
    return _Rows(starts[kept], ends[kept], own, numbers, after, is_token, last), whole


def _numbers(codes: Codes, starts: Ints) -> tuple[Ints, Ints]:
    """The number at each place, 0 for none, and the place after its last digit."""
    values, ends = np.zeros(len(starts), np.int64), starts.copy()
    digits = np.ones(len(starts), bool)
    for _ in range(DIGITS):
        digit = codes[ends] - np.uint8(ZERO)  # bytes below wrap around
        digits &= digit <= 9
        if not digits.any():
            break
        values = np.where(digits, 10 * values + digit, values)
        ends += digits
    return values, ends


def _no_trees(heads: Ints, counts: Ints) -> Bools:
    """Which sentences have a HEAD out of range, not exactly one root, or a cycle."""
    outside = any_of_each(heads > np.repeat(counts, counts), counts)
    roots = np.append(0, np.cumsum(heads == 0))
    wrong = outside | (np.diff(roots[np.append(0, np.cumsum(counts))]) != 1)
    heads = np.where(np.repeat(wrong, counts), 0, heads)
    last = ancestors(_forest(heads, counts).parents, int(counts.max(initial=0)))[-1]
    return wrong | any_of_each(last[:-1] != len(heads), counts)


def _forest(heads: Ints, counts: Ints) -> Forest:
    parents = np.repeat(before(counts), counts) + heads - 1
    return Forest(counts, np.where(heads == 0, len(heads), parents))


def _places(codes: Codes, rows: _Rows, lines: Ints) -> Ints:
    """The place of every row by its MISC; without one that of the multi-word token around it."""
    starts = rows.tabs[8] + 1
    first, after_first = _numbers(codes, starts + len(START))
    last, after_last = _numbers(codes, after_first + len(END))
    found = (after_first > starts + len(START)) & (after_last > after_first + len(END))
    found &= (after_last == rows.ends) & _stands(codes, starts, START)
    found &= _stands(codes, after_first, END)
    places = np.stack([first, last]) * found
    # Row of the last multi-word token that begins before each row, in its sentence or another.
    token = np.maximum.accumulate(np.where(rows.is_token, np.arange(len(starts)), -1))
    inside = (token >= np.repeat(before(lines), lines)) & (rows.numbers <= rows.last[token])
    return np.where(found | ~inside, places, places[:, token])


def _stands(codes: Codes, starts: Ints, text: str) -> Bools:
    """Whether the text stands at each place."""
    size = len(text)
    windows = np.ndarray(len(codes) - size, f"S{size}", codes, strides=(1,))
    return windows[starts] == text.encode()
