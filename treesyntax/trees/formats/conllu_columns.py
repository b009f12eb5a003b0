"""The words of many CoNLL-U records at once, as arrays: some ten times as fast as one by one.

Only what `treesyntax parse` and most treebanks write is read: comments and words numbered 1, 2,
3 … with ten columns each, whose HEADs form a tree. All other records are left to `conllu`, which
reads them or says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from treesyntax.data.binarize.forest import (
    Bools,
    Forest,
    Ints,
    ancestors,
    any_of_each,
    before,
    sum_of_each,
)
from treesyntax.trees.formats.columns import (
    NEWLINE,
    ZERO,
    Codes,
    Strings,
    codes_of,
    numbers,
    slices,
    stands,
    strings,
)

TABS = 9
TAB, HYPHEN, HASH, SPACE = map(ord, "\t-# ")
COMMENT = "# text ="
START, END = "start_char=", "|end_char="
# Looking a few characters ahead stays inside.
PADDING = "\0" * len(START + END)


class Columns(NamedTuple):
    """The words of S records, one record after another.

    Attributes:
        records: which of the records these are [S].
        forest: a node for every word.
        text: what ``comments`` and ``forms`` are places in.
        comments: first character and the one after the last of the text in the comments of each
            record, 0 without one [2, S].
        forms: the same of every FORM [2, W].
        places: start_char and end_char of every word or its multi-word token, if MISC has nothing
            else; or 0 [2, W].
    """

    records: Ints
    forest: Forest
    text: str
    comments: Ints
    forms: Ints
    places: Ints

    def lines(self) -> list[str | None]:
        """The text in the comments of each record, None without one."""
        texts = slices(self.text, *self.comments)
        found = self.comments[1].tolist()
        return [text if end else None for text, end in zip(texts, found, strict=True)]

    def words(self) -> Strings:
        """The FORMs."""
        return strings(self.text, *self.forms)


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
    text = "\n".join(texts) + "\n" + PADDING
    codes = codes_of(text)
    ends = np.flatnonzero(codes == NEWLINE)
    starts = np.append(0, ends[:-1] + 1)
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    lines = np.diff(np.searchsorted(ends, np.cumsum(lengths + 1)), prepend=0)
    is_row = codes[starts] != HASH
    comments = _comments(codes, starts, ends, lines, ~is_row)
    rows, lines, whole = _rows(codes, starts, ends, lines, is_row)
    is_word = ~rows.is_token
    counts = sum_of_each(is_word, lines)
    words = rows.part(is_word)
    heads, after = numbers(codes, words.tabs[5] + 1)
    faults = words.faults(codes, counts) | (after != words.tabs[6])
    trees = ~(any_of_each(faults, counts) | _no_trees(heads, counts))
    kept = np.repeat(trees, counts)
    usual = np.flatnonzero(whole)[trees]
    return Columns(
        usual,
        _forest(heads[kept], counts[trees]),
        text,
        comments[:, usual],
        np.stack([words.tabs[0] + 1, words.tabs[1]])[:, kept],
        _places(codes, rows, lines)[:, is_word][:, kept],
    )


def _comments(codes: Codes, starts: Ints, ends: Ints, lines: Ints, is_comment: Bools) -> Ints:
    """The place of the text in the first comment with one of each record, 0 without [2, S]."""
    named = np.flatnonzero(is_comment)
    named = named[stands(codes, starts[named], COMMENT)]
    record, first = np.unique(np.repeat(np.arange(len(lines)), lines)[named], return_index=True)
    begin = starts[named[first]] + len(COMMENT)
    places = np.zeros((2, len(lines)), np.int64)
    places[:, record] = begin + (codes[begin] == SPACE), ends[named[first]]
    return places


def _rows(
    codes: Codes, starts: Ints, ends: Ints, lines: Ints, is_row: Bools
) -> tuple[_Rows, Ints, Bools]:
    """The rows of the records whose rows have ten columns each; how many each of them has; which
    records these are.
    """
    tabs = np.flatnonzero(codes == TAB)
    first = np.searchsorted(tabs, starts)
    whole = ~any_of_each(is_row & (np.diff(first, append=len(tabs)) != TABS), lines)
    kept = is_row & np.repeat(whole, lines)
    starts, ends = starts[kept], ends[kept]
    own = tabs[first[kept] + np.arange(TABS)[:, None]]
    ids, after = numbers(codes, starts)
    last, after_last = numbers(codes, after + 1)
    is_token = (codes[after] == HYPHEN) & (after > starts) & (after_last == own[0])
    is_token &= after_last > after + 1
    rows = _Rows(starts, ends, own, ids, after, is_token, last)
    return rows, sum_of_each(is_row, lines)[whole], whole


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
    first, after_first = numbers(codes, starts + len(START))
    last, after_last = numbers(codes, after_first + len(END))
    found = (after_first > starts + len(START)) & (after_last > after_first + len(END))
    found &= (after_last == rows.ends) & stands(codes, starts, START)
    found &= stands(codes, after_first, END)
    places = np.stack([first, last]) * found
    # Row of the last multi-word token that begins before each row, in its sentence or another.
    token = np.maximum.accumulate(np.where(rows.is_token, np.arange(len(starts)), -1))
    inside = (token >= np.repeat(before(lines), lines)) & (rows.numbers <= rows.last[token])
    return np.where(found | ~inside, places, places[:, token])
