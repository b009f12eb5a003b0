"""Bring the parts of a parallel corpus into one folder, with as many training pairs as wanted.

Files may be packed: where NAME is absent, NAME.gz is read. Of train the first N pairs are taken, or with --seed N random ones, in
the order of the corpus; the smaller of two random sets of one seed is a part of the larger. Nothing
else is dropped or changed: line k stays a pair of source and target.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from treesyntax.data.generate.folder import checksum, is_current
from treesyntax.data.generate.output import Files, report_current, write_and_report
from treesyntax.errors import InputError, OptionError
from treesyntax.files import read_lines

SPLITS = ("train", "valid", "test")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    for split in SPLITS:
        add(
            f"--{split}", nargs=2, type=Path, metavar=("SOURCE", "TARGET"),
            help=f"the two aligned files of {split}",
        )  # fmt: skip
    add("--langs", nargs=2, required=True, metavar=("SOURCE", "TARGET"), help="suffixes, as en de")
    add("--out", type=Path, required=True, help="folder to write, as train.en")
    add("--pairs", type=int, default=0, metavar="N", help="training pairs (0: all, the default)")
    add("--seed", type=int, default=0, help="draw them at random (0: the first N, the default)")


def generate(args: argparse.Namespace) -> int:
    """Write the files, unless they are there already; returns 0.

    Raises:
        OptionError: for options that do not fit or cannot be met.
        InputError: if a file cannot be read, or the folder holds something else.
    """
    if args.langs[0] == args.langs[1]:
        raise OptionError(f"both languages are {args.langs[0]!r}; give them different names")
    for name in ("pairs", "seed"):
        if getattr(args, name) < 0:
            raise OptionError(f"--{name} must be 0 or more")
        if getattr(args, name) and not args.train:
            raise OptionError(f"--{name} is about training pairs: give --train")
    read = {split: _read(*getattr(args, split)) for split in SPLITS if getattr(args, split)}
    if not read:
        raise OptionError("give at least one of --train, --valid and --test")
    described = {
        "generator": args.generator,
        "langs": args.langs,
        "pairs": args.pairs,
        "seed": args.seed,
        "sha256": {split: [checksum(lines) for lines in pair] for split, pair in read.items()},
    }
    if is_current(args.out, described):
        return report_current(args.out)
    if train := read.get("train"):
        taken = _taken(len(train[0]), args.pairs, args.seed)
        read["train"] = [[lines[number] for number in taken] for lines in train]
    files: Files = {
        f"{split}.{lang}": lines
        for split, pair in read.items()
        for lang, lines in zip(args.langs, pair, strict=True)
    }
    return write_and_report(args.out, described, files, {})


def _read(source: Path, target: Path) -> list[list[str]]:
    pair = [list(read_lines(_found(path))) for path in (source, target)]
    if len(pair[0]) != len(pair[1]):
        raise InputError(
            target,
            None,
            f"has {len(pair[1])} lines, but {source} has {len(pair[0])}",
            "the files must be aligned line by line",
        )
    if not pair[0]:
        raise InputError(source, None, "has no lines", "check the file")
    return pair


def _found(path: Path) -> Path:
    packed = path.with_name(f"{path.name}.gz")
    return packed if packed.exists() and not path.exists() else path


def _taken(total: int, pairs: int, seed: int) -> list[int]:
    if pairs > total:
        raise OptionError(f"--pairs is {pairs}, but train has {total}")
    numbers = list(range(total))
    if not pairs:
        return numbers
    if seed:
        random.Random(seed).shuffle(numbers)
    return sorted(numbers[:pairs])
