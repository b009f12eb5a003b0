"""Cut aligned text files into train, valid and test, the same for a seed on every machine.

Test pairs are drawn at random, or with --longest are those with the longest sources: then lines as
long as the shortest of them are left out of train and valid, and their number is printed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from treesyntax.data.generate.folder import checksum, is_current
from treesyntax.data.generate.output import (
    add_small_train,
    pair_files,
    report_current,
    small_train_files,
    write_and_report,
)
from treesyntax.data.generate.split import Pair, Split, shuffled, split_pairs
from treesyntax.errors import InputError, OptionError
from treesyntax.files import read_lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--source", type=Path, required=True, help="text file, one example a line; may be .gz")
    add("--target", type=Path, required=True, help="aligned with it, with another suffix")
    add("--out", type=Path, required=True, help="folder to write: {train,valid,test}.SUFFIX")
    add("--valid", type=int, default=0, help="number of valid lines (default 0)")
    add("--test", type=int, default=0, help="number of test lines (default 0)")
    add("--seed", type=int, default=1, help="0, 1, 2, … (default %(default)s)")
    add("--dedup", action="store_true", help="keep only the first of equal pairs")
    add("--longest", action="store_true", help="test: the longest sources, not random ones")
    add_small_train(parser)


def generate(args: argparse.Namespace) -> int:
    """Write the parts, unless they are there already; returns 0.

    Raises:
        OptionError: for options that do not fit or cannot be met.
        InputError: if a file cannot be read, or the folder holds something else.
    """
    suffixes = [_suffix(path) for path in (args.source, args.target)]
    if suffixes[0] == suffixes[1]:
        raise OptionError(f"both files end in {suffixes[0]}; give them different suffixes")
    source, target = list(read_lines(args.source)), list(read_lines(args.target))
    if len(source) != len(target):
        raise InputError(
            args.target,
            None,
            f"has {len(target)} lines, but {args.source} has {len(source)}",
            "the files must be aligned line by line",
        )
    described = {
        "generator": args.generator,
        "source": {"name": args.source.name, "sha256": checksum(source)},
        "target": {"name": args.target.name, "sha256": checksum(target)},
        **{name: getattr(args, name) for name in ("valid", "test", "seed", "dedup")},
        **{name: getattr(args, name) for name in ("longest", "small_train") if getattr(args, name)},
    }
    pairs = list(zip(source, target, strict=True))
    split = split_pairs(pairs, args.valid, args.test, args.seed, args.dedup, args.longest)
    if is_current(args.out, described):
        return report_current(args.out)
    files = pair_files(split, suffixes)
    files |= small_train_files(shuffled(split.train, args.seed), suffixes, args.small_train)
    return write_and_report(args.out, described, files, _notes(pairs, split, args))


def _notes(pairs: list[Pair], split: Split, args: argparse.Namespace) -> dict[str, int]:
    notes = split.seen()
    if args.longest:
        distinct = len(set(pairs)) if args.dedup else len(pairs)
        notes |= {**split.length_range(), "left_out": distinct - sum(map(len, split))}
    return notes


def _suffix(path: Path) -> str:
    suffix = Path(path.name.removesuffix(".gz")).suffix
    if not suffix:
        raise OptionError(f"{path} has no suffix, which the new files would be named by")
    return suffix
