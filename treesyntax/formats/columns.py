"""Many short strings and numbers out of one long text, all at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from treesyntax.forest import Bools, Ints, runs

Codes = NDArray[np.uint8]

DIGITS = 5  # longer numbers are left to others
NEWLINE, ZERO = map(ord, "\n0")


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
