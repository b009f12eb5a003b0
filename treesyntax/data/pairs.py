"""Which pairs of a data folder a step uses: those that are short enough, and that no list leaves out.

fairseq leaves pairs with a side that is too long out of a training, and stops at them in validation and
generation. Which pairs these are follows from the lengths in the binarized data and the limits of
the step, so it is known before a training begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treesyntax.data.token_files import TokenData, find_prefix
from treesyntax.errors import InputError
from treesyntax.files import read_json, write_json

Numbers = NDArray[np.int64]
"""Numbers of pairs in a split, from 0, in order."""


class Limits(NamedTuple):
    """Most tokens of a source and of a target, the end-of-sentence mark included; None for no limit."""

    source: int | None = None
    target: int | None = None

    def least(self, other: Limits) -> Limits:
        """What both allow."""
        return Limits(*(_least(*pair) for pair in zip(self, other, strict=True)))

    def __str__(self) -> str:
        """In words, such as ``1024 source and 300 target tokens``."""
        if self.source == self.target:
            return f"{self.source} tokens on either side"
        texts = [
            f"{most} {side}"
            for side, most in zip(self._fields, self, strict=True)
            if most is not None
        ]
        return f"{' and '.join(texts)} tokens"


def _least(first: int | None, second: int | None) -> int | None:
    known = [most for most in (first, second) if most is not None]
    return min(known, default=None)


class Lengths(NamedTuple):
    """The lengths of both sides of the pairs of a split, their end-of-sentence marks included."""

    source: NDArray[np.int32]
    target: NDArray[np.int32]

    @property
    def empty(self) -> Numbers:
        """The pairs of which a side has no token."""
        return np.flatnonzero((self.source <= 1) | (self.target <= 1))

    def too_long(self, limits: Limits) -> Numbers:
        """The pairs of which a side has more tokens than it may have."""
        long = np.zeros(len(self.source), bool)
        for sizes, most in zip(self, limits, strict=True):
            if most is not None:
                long |= np.asarray(sizes) > most
        return np.flatnonzero(long)


def read_lengths(folder: Path, split: str) -> Lengths:
    """The lengths in a data folder.

    Raises:
        InputError: if the folder has no such split, or its files are damaged.
    """
    return Lengths(*(TokenData(find_prefix(folder, split, side)).sizes for side in Lengths._fields))


def write_left_out(path: str | Path, pairs: Mapping[str, Iterable[int]]) -> None:
    """Write which pairs of each split are left out, as `read_left_out` reads it."""
    write_json(
        path, {split: [int(number) for number in numbers] for split, numbers in pairs.items()}, None
    )


def read_left_out(path: str | Path) -> dict[str, Numbers]:
    """The pairs that are left out of each split.

    Raises:
        InputError: if the file cannot be read, or is no object with lists of whole numbers from 0 on.
    """
    content = read_json(path)
    lists = content.values() if isinstance(content, dict) else [None]
    if not all(
        isinstance(numbers, list)
        and all(type(number) is int and 0 <= number < 1 << 62 for number in numbers)
        for numbers in lists
    ):
        raise InputError(
            path, None, "is no list of pairs by split", 'write as in {"train": [3, 17]}, from 0 on'
        )
    return {split: np.array(sorted(numbers), np.int64) for split, numbers in content.items()}


def some(numbers: Iterable[int], most: int = 3) -> str:
    """The first numbers of pairs as lines are counted, from 1: ``4, 18, 90, …``."""
    line_numbers = [int(number) + 1 for number in numbers]
    return ", ".join(map(str, line_numbers[:most])) + (", …" if len(line_numbers) > most else "")
