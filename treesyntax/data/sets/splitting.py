"""Cut aligned text files into train, valid and test, the same for a seed on every machine.

Test pairs are drawn at random. With --longest they are those with the longest sources. Then lines as
long as the shortest of them are left out of train and valid, and their number is printed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from treesyntax.data.sets.folder import pair_files, read_aligned, write_data_set
from treesyntax.data.sets.split import Pair, Split, shuffled, split_pairs
from treesyntax.errors import OptionError
from treesyntax.files import plain_name
from treesyntax.made.digests import sha256_of_lines


def generate(args: argparse.Namespace) -> None:
    """Write the parts, unless the folder is up to date."""
    suffixes = [_suffix(path) for path in (args.source, args.target)]
    if suffixes[0] == suffixes[1]:
        raise OptionError(f"both files end in {suffixes[0]}; give them different suffixes")
    source, target = read_aligned(args.source, args.target)
    described = {
        "generator": args.generator,
        "source": {"name": args.source.name, "sha256": sha256_of_lines(source)},
        "target": {"name": args.target.name, "sha256": sha256_of_lines(target)},
        **{name: getattr(args, name) for name in ("valid", "test", "seed", "dedup")},
        **{name: getattr(args, name) for name in ("longest", "small_train") if getattr(args, name)},
    }
    pairs = list(zip(source, target, strict=True))
    split = split_pairs(pairs, args.valid, args.test, args.seed, args.dedup, args.longest)
    files = pair_files(split, suffixes, args.small_train, shuffled(split.train, args.seed))
    write_data_set(args.out, described, lambda: (files, _notes(pairs, split, args)))


def _notes(pairs: list[Pair], split: Split, args: argparse.Namespace) -> dict[str, int]:
    notes = split.seen()
    distinct = len(set(pairs)) if args.dedup else len(pairs)
    if args.dedup:
        notes["duplicates_left_out"] = len(pairs) - distinct
    if args.longest:
        notes |= {**split.length_range(), "left_out": distinct - sum(map(len, split))}
    return notes


def _suffix(path: Path) -> str:
    suffix = Path(plain_name(path)).suffix
    if not suffix:
        raise OptionError(f"{path} has no suffix, and the new files need one")
    return suffix
