"""The arguments of every generator, declared without importing what it needs to run."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from treesyntax.data.generate.compiler import PACKAGE
from treesyntax.data.generate.split import SPLITS

Add = Callable[..., Any]


def _numbers(add: Add, of: str, splits: Sequence[str] = SPLITS) -> None:
    for split in splits:
        add(
            f"--{split}",
            type=int,
            default=0,
            metavar="N",
            help=f"number of {split} {of} (default 0)",
        )


def _seed_and_small_train(add: Add, taken: str = "the first N training examples") -> None:
    add("--seed", type=int, default=1, help="0, 1, 2, … (default 1)")
    add(
        "--small-train", type=int, nargs="+", default=[], metavar="N",
        help=f"also write train.N.SUFFIX for each N, with {taken}: nested sets beside one valid and test",
    )  # fmt: skip


def _fixed_test(add: Add) -> None:
    add(
        "--fixed-test", action="store_true",
        help="draw the same valid and test for every number of training programs, and training sets of which the "
        "smaller is the beginning of the larger; else another --train has another valid and test",
    )  # fmt: skip


def _for2lam(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder to write: {train,valid,test}.{for,lambda}")
    _numbers(add, "programs")
    add(
        "--style",
        choices=("drissi", "chen"),
        default="drissi",
        help="distribution of the programs (default drissi)",
    )
    size = parser.add_mutually_exclusive_group().add_argument
    size("--size", type=int, default=15, help="the size to draw programs with (default 15)")
    size("--length", type=int, help="mean length in tokens, in place of --size with --style chen")
    hard = parser.add_mutually_exclusive_group().add_argument
    hard(
        "--test-length", type=int, metavar="N",
        help="with --length: test programs of mean length N, longer than any in train and valid",
    )  # fmt: skip
    hard(
        "--held-out", type=int, default=0, metavar="K",
        help="test programs with K names and K constants that train has in single assignments only",
    )  # fmt: skip
    smaller = "leave out smaller programs (0); 9: single assignments"
    add("--min-nodes", type=int, default=0, help=smaller)
    add("--repeats", action="store_true", help="let a program occur again within its split")
    _fixed_test(add)
    _seed_and_small_train(add)


def _coffeescript(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder to write: {train,valid,test}.{coffee,js}")
    add(
        "--compiler", type=Path, required=True, metavar="FOLDER",
        help=f"folder of the npm package {PACKAGE}, which is installed if absent",
    )  # fmt: skip
    _numbers(add, "programs")
    add("--size", type=int, default=32, help="the size to draw programs with (default 32)")
    limit = "draw names from N (default: a0, a1, … without limit)"
    add("--variables", type=int, metavar="N", help=limit)
    add("--constants", type=int, default=10, metavar="N", help="numbers are 0 to N-1 (default 10)")
    _fixed_test(add)
    _seed_and_small_train(add)


def _split(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--source", type=Path, required=True, help="text file, one example a line; may be .gz")
    add("--target", type=Path, required=True, help="aligned with it, with another suffix")
    add("--out", type=Path, required=True, help="folder to write: {train,valid,test}.SUFFIX")
    _numbers(add, "lines", SPLITS[1:])
    add("--dedup", action="store_true", help="keep only the first of equal pairs")
    add("--longest", action="store_true", help="test gets the longest sources, not random ones")
    _seed_and_small_train(
        add, "N training examples drawn at random, the smaller sets in the larger"
    )


def _pairs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    pair = ("SOURCE", "TARGET")
    for split in SPLITS[:2]:
        add(f"--{split}", nargs=2, type=Path, metavar=pair, help=f"two aligned files of {split}")
    several = "two aligned files of test, or of several test sets: SOURCE TARGET SOURCE TARGET …"
    add("--test", nargs="+", type=Path, metavar="FILE", help=several)
    add("--langs", nargs=2, required=True, metavar=pair, help="suffixes, such as en de")
    add("--out", type=Path, required=True, help="folder to write: train.SOURCE and so on")
    add("--pairs", type=int, default=0, metavar="N", help="training pairs (default 0: all)")
    add("--seed", type=int, default=0, help="draw them at random (default 0: the first N)")
    most = "leave out training pairs with more words on either side (default 0: none)"
    add("--most-words", type=int, default=0, metavar="N", help=most)


def _questions(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--data", type=Path, required=True, help="folder or TSV file with the data")
    add("--out", type=Path, required=True, help="folder to write: {train,valid,test}.{src,tgt}")
    for split in SPLITS[1:]:
        add(f"--{split}", type=int, default=0, help=f"pairs to draw if there is no {split} set")
    add("--seed", type=int, default=1, help="0, 1, 2, … (default 1)")
    add(
        "--notation",
        help="notation of the logical forms, such as sexpr: checks each, and puts single spaces between "
        "its tokens (default: any text)",
    )


ARGUMENTS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "for2lam": _for2lam,
    "coffeescript": _coffeescript,
    "split": _split,
    "pairs": _pairs,
    "questions": _questions,
}
"""Declares the arguments of each generator, by its name."""
