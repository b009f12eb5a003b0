"""Many short strings and numbers out of one long text, all at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treesyntax.data.binarize.forest import Bools, Ints, runs

Codes = NDArray[np.uint8]

DIGITS = 5  # longer numbers are left to others
WORDS, BYTES = 2, 8  # short strings are compared as so many numbers of so many characters
LOW_BYTES = np.array([(1 << 8 * size) - 1 for size in range(BYTES + 1)], np.uint64)
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # odd, with its bits all over
ONES, HIGH_BITS, UNKNOWN = (np.uint64(byte * 0x0101010101010101) for byte in (1, 0x80, ord("?")))
NEWLINE, ZERO = map(ord, "\n0")


class Strings(NamedTuple):
    """Strings of which many are the same.

    Attributes:
        different: each of them, at least once.
        which: the index in ``different`` of each [N].
    """

    different: list[str]
    which: Ints


def codes_of(text: str) -> Codes:
    """A byte for every character, in which only those of ASCII can be told apart."""
    return np.frombuffer(text.encode("latin-1", "replace"), np.uint8)


def numbers(codes: Codes, starts: Ints) -> tuple[Ints, Ints]:
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


def stands(codes: Codes, starts: Ints, text: str) -> Bools:
    """Whether the text stands at each place."""
    size = len(text)
    windows = np.ndarray(len(codes) - size, f"S{size}", codes, strides=(1,))
    return windows[starts] == text.encode()


def slices(text: str, starts: Ints, ends: Ints) -> list[str]:
    """``text[start:end]`` of each place; none holds a newline or is the end of the text."""
    name, width = ("latin-1", "<u1") if text.isascii() else ("utf-32-le", "<u4")
    codes = np.frombuffer(text.encode(name, "surrogatepass"), width)
    sizes = ends - starts + 1
    chosen = codes[runs(starts, sizes)]
    chosen[np.cumsum(sizes) - 1] = NEWLINE
    return chosen.tobytes().decode(name, "surrogatepass").split("\n")[:-1]


def strings(text: str, starts: Ints, ends: Ints) -> Strings:
    """What `slices` gives, of which short ones are compared as numbers."""
    codes = np.frombuffer(text.encode("latin-1", "replace") + bytes(WORDS * BYTES), np.uint8)
    windows = np.ndarray(len(codes) - BYTES + 1, "<u8", codes, strides=(1,))
    sizes = ends - starts
    short = sizes <= WORDS * BYTES
    # The same strings have the same key; others hardly ever, and then stay apart all the same.
    keys, parts = sizes.astype(np.uint64), []
    for first in range(0, WORDS * BYTES, BYTES):
        part = windows[np.where(short, starts + first, 0)]
        part &= LOW_BYTES[np.clip(sizes - first, 0, BYTES)]
        if not text.isascii():
            # A byte is zero where its lowest bit borrows from its highest.
            others = part ^ UNKNOWN
            short &= ((others - ONES) & ~others & HIGH_BITS) == 0
        keys = (keys ^ part) * SPREAD
        parts.append(part)
    order = np.flatnonzero(short)
    order = order[np.argsort(keys[order])]
    begins = np.ones(len(order), bool)
    begins[1:] = False
    for values in (sizes, *parts):
        values = values[order]
        begins[1:] |= values[1:] != values[:-1]
    long = np.flatnonzero(~short)
    which = np.empty(len(starts), np.int64)
    which[order] = np.cumsum(begins) - 1
    which[long] = begins.sum() + np.arange(len(long))
    chosen = np.concatenate([order[begins], long])
    return Strings(slices(text, starts[chosen], ends[chosen]), which)
