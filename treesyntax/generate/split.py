"""Cutting a set of aligned lines into train, valid and test."""

from __future__ import annotations

import random
from typing import NamedTuple

from treesyntax.errors import OptionError

Pair = tuple[str, str]


class Split(NamedTuple):
    """Aligned lines in three parts, each in the order of the original."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]

    def seen(self) -> dict[str, int]:
        """How many pairs of valid and of test also stand in train."""
        train = set(self.train)
        return {
            "valid_in_train": sum(pair in train for pair in self.valid),
            "test_in_train": sum(pair in train for pair in self.test),
        }


def split_pairs(pairs: list[Pair], valid: int, test: int, seed: int, dedup: bool) -> Split:
    """Draw valid and test at random, the same for a seed on every machine; the rest is train.

    Args:
        pairs: a source and a target line each.
        valid: number of pairs, like `test`.
        test: see `valid`.
        seed: 0, 1, 2, …
        dedup: keep only the first of equal pairs, so that the parts share none.

    Raises:
        OptionError: for a negative number, or if nothing would be left for train.
    """
    for name, number in (("valid", valid), ("test", test), ("seed", seed)):
        if number < 0:
            raise OptionError(f"{name} is {number}; it must be 0 or more")
    kept = list(dict.fromkeys(pairs)) if dedup else pairs
    if valid + test >= len(kept):
        kind = "different pairs" if dedup else "pairs"
        raise OptionError(
            f"valid and test take {valid + test} of {len(kept)} {kind}; leave some for train"
        )
    drawn = random.Random(seed).sample(range(len(kept)), valid + test)
    held_out = {"valid": set(drawn[:valid]), "test": set(drawn[valid:])}
    parts: dict[str, list[Pair]] = {"train": [], "valid": [], "test": []}
    for number, pair in enumerate(kept):
        home = next((name for name, numbers in held_out.items() if number in numbers), "train")
        parts[home].append(pair)
    return Split(**parts)
