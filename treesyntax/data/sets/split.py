"""Cutting a set of aligned lines into train, valid and test."""

from __future__ import annotations

import argparse
import random
from collections.abc import Mapping
from typing import NamedTuple

from treesyntax.errors import OptionError

Pair = tuple[str, str]
SPLITS = ("train", "valid", "test")
TRAIN_SHARE = 4
"""With a fixed test, training programs for each program of valid and test that turns up."""


class Split(NamedTuple):
    """Aligned lines in three parts, each in the original order."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]

    def seen(self) -> dict[str, int]:
        """How many pairs of valid and of test, and how many test sources, are also in train."""
        train, sources = set(self.train), {source for source, _ in self.train}
        return {
            "valid_in_train": sum(pair in train for pair in self.valid),
            "test_in_train": sum(pair in train for pair in self.test),
            "test_sources_in_train": sum(source in sources for source, _ in self.test),
        }

    def length_range(self) -> dict[str, int]:
        """Tokens of the longest source in train and valid, and of the shortest in test."""
        known = (len(source.split()) for source, _ in (*self.train, *self.valid))
        tested = (len(source.split()) for source, _ in self.test)
        return {"longest_known": max(known, default=0), "shortest_test": min(tested, default=0)}


def check_numbers(numbers: Mapping[str, int]) -> None:
    """Refuse a number below 0, by its name."""
    for name, number in numbers.items():
        if number < 0:
            raise OptionError(f"{name} is {number}; it must be 0 or more")


def wanted_numbers(args: argparse.Namespace) -> dict[str, int]:
    """The number of programs of each split, as the options say."""
    numbers = {split: getattr(args, split) for split in SPLITS}
    if not any(numbers.values()):
        raise OptionError("no programs are asked for; set --train, --valid or --test")
    return numbers


def tell_of_test(args: argparse.Namespace) -> None:
    """Say that valid and test belong to this number of training programs, where they do (treesyntax generate)."""
    if args.train and (args.valid or args.test) and not (args.fixed_test or args.small_train):
        print(
            f"valid and test are those of --train {args.train}, another number has others; treesyntax data make "
            "draws the same for every number"
        )


def fixed_shares(numbers: Mapping[str, int]) -> dict[str, float]:
    """Return how often a new program goes to each split, whatever the number of training programs.

    So the programs of valid and test are the same for every size of train, and a smaller train is the
    beginning of a larger one. All are drawn alike where train is `TRAIN_SHARE` times the others together;
    a larger one has fewer of the frequent, short programs, which turn up first.
    """
    others = {split: float(number) for split, number in numbers.items() if split != "train"}
    return {"train": TRAIN_SHARE * sum(others.values()) or 1.0, **others}


def split_pairs(
    pairs: list[Pair], valid: int, test: int, seed: int, dedup: bool, longest: bool = False
) -> Split:
    """Draw valid and test at random, the same for a seed on every machine; the rest is train.

    Args:
        pairs: a source and a target line each.
        valid, test: numbers of pairs.
        seed: 0, 1, 2, …
        dedup: keep only the first of equal pairs, so that the parts share none.
        longest: test gets the pairs with the longest sources, and every source of train and valid
            is shorter; others as long as the shortest of test are left out.
    """
    check_numbers({"valid": valid, "test": test, "seed": seed})
    kept = list(dict.fromkeys(pairs)) if dedup else pairs
    if valid + test >= len(kept):
        kind = "different pairs" if dedup else "pairs"
        raise OptionError(
            f"valid and test take {valid + test} of {len(kept)} {kind}; leave some for train"
        )
    rng = random.Random(seed)
    if longest:
        tested, others = _longest(kept, test, rng)
        if valid >= len(others):
            raise OptionError(
                f"valid takes {valid} of the {len(others)} pairs with shorter sources than test; "
                "leave some for train"
            )
        held_out = {"valid": set(rng.sample(others, valid)), "test": tested}
        numbers = sorted((*others, *tested))
    else:
        numbers = list(range(len(kept)))
        drawn = rng.sample(numbers, valid + test)
        held_out = {"valid": set(drawn[:valid]), "test": set(drawn[valid:])}
    by_split: dict[str, list[Pair]] = {"train": [], "valid": [], "test": []}
    for number in numbers:
        home = next((name for name, members in held_out.items() if number in members), "train")
        by_split[home].append(kept[number])
    return Split(**by_split)


def _longest(pairs: list[Pair], test: int, rng: random.Random) -> tuple[set[int], list[int]]:
    """The indices of the longest sources, and of all that are shorter than each of them."""
    lengths = [len(source.split()) for source, _ in pairs]
    order = rng.sample(range(len(pairs)), len(pairs))
    tested = sorted(order, key=lambda number: -lengths[number])[:test]
    shortest = min((lengths[number] for number in tested), default=max(lengths) + 1)
    return set(tested), [number for number, length in enumerate(lengths) if length < shortest]


def shuffled(pairs: list[Pair], seed: int) -> list[Pair]:
    """The pairs in a random order, the same for a seed on every machine."""
    return random.Random(seed).sample(pairs, len(pairs))
