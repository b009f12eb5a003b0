"""The words of many raw lines at once, by their places: `binarize_offsets` does it one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from treesyntax.data.binarize.forest import Bools, Ints, before
from treesyntax.trees.formats.columns import NEWLINE, Strings, codes_of, numbers, strings

COLON, SPACE = map(ord, ": ")


def places_of(lines: Sequence[str], counts: Ints) -> Ints:
    """The places in lines of a file of offsets, ``0:4 5:8``.

    Args:
        lines: the lines.
        counts: words of each.

    Returns:
        first character of each word and the one after the last [2, W]; 0 for the words of lines
        that are not so many pairs with single spaces between them.
    """
    text = "\n".join(lines) + "\n"
    codes = codes_of(text)
    marks = np.flatnonzero((codes - np.uint8(ord("0"))) > 9)  # bytes below wrap around
    starts = np.append(0, marks[:-1] + 1)
    values, ends = numbers(codes, starts)
    lengths = np.fromiter(map(len, lines), np.int64, len(lines))
    found = np.diff(np.searchsorted(marks, np.cumsum(lengths + 1)), prepend=0)
    odd = (np.arange(len(marks)) - np.repeat(before(found), found)) % 2 == 1
    kinds = codes[marks]
    fits = np.where(odd, (kinds == SPACE) | (kinds == NEWLINE), kinds == COLON)
    fits &= (ends == marks) & (marks > starts)
    total = np.append(0, np.cumsum(fits))
    usual = (found == 2 * counts) & (total[np.cumsum(found)] - total[before(found)] == found)
    places = np.zeros((2, int(counts.sum())), np.int64)
    pairs = values[np.repeat(usual, found)].reshape(-1, 2).T
    places[:, np.repeat(usual, counts)] = pairs
    return places


def cut(lines: Sequence[str], counts: Ints, places: Ints, spaced: bool) -> tuple[Strings, Bools]:
    """The text of each word with what stands before it, as `alignment.segments` cuts a line.

    Args:
        lines: raw text.
        counts: words of each line.
        places: first character of each word in its line, and the one after the last [2, W].
        spaced: whether the first part of a line begins with a space in any case.

    Returns:
        the parts, and which words cannot stand there.
    """
    text = "".join([f" {line}\n" for line in lines])
    if text.count("\n") != len(lines):
        return cut(["" if "\n" in line else line for line in lines], counts, places, spaced)
    codes = codes_of(text)
    lengths = np.fromiter(map(len, lines), np.int64, len(lines))
    base = np.repeat(before(lengths + 2) + 1, counts)
    length = np.repeat(lengths, counts)
    firsts, ends = before(counts), places[1].copy()
    begins = np.append(0, ends[:-1])
    begins[firsts] = 0
    faults = (places[0] < begins) | (places[0] >= ends) | (ends > length)
    for edge in (places[0], ends - 1):
        faults |= codes[np.where(faults, 0, base + edge)] == SPACE
    ends[firsts + counts - 1] = lengths
    if spaced:
        begins[firsts[codes[base[firsts]] != SPACE]] = -1  # the space that every line has got
    begins, ends = (np.where(faults, 0, base + edge) for edge in (begins, ends))
    return strings(text, begins, ends), faults
