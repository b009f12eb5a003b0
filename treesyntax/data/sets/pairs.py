"""Bring the parts of a parallel corpus into one folder, with as many training pairs as wanted.

If a file NAME is absent, NAME.gz is read. --pairs N takes the first N pairs of train, with --seed N
random ones in the order of the corpus. Of two random sets with one seed, the larger holds the smaller.

--most-words N first leaves out training pairs with more words on either side, counted between spaces.
Nothing else is dropped or changed: line k stays a pair of source and target.

With several pairs of files after --test all become one test set. The file test.set then names the set of
each line, as the categories of a study, which scores each set by itself.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

from treesyntax.data.sets.folder import read_aligned, write_data_set
from treesyntax.data.sets.split import SPLITS
from treesyntax.errors import InputError, OptionError
from treesyntax.files import there_or_packed
from treesyntax.made.digests import sha256_of_lines

SETS = "set"
"""The suffix of the file that names the test set of each line."""


def generate(args: argparse.Namespace) -> None:
    """Write the files, unless the folder is up to date."""
    if args.langs[0] == args.langs[1]:
        raise OptionError(f"both languages are {args.langs[0]!r}; give them different names")
    for name in ("pairs", "seed", "most_words"):
        flag = name.replace("_", "-")
        if getattr(args, name) < 0:
            raise OptionError(f"--{flag} must be 0 or more")
        if getattr(args, name) and not args.train:
            raise OptionError(f"--{flag} is about training pairs: give --train")
    tests = args.test or []
    if len(tests) % 2:
        raise OptionError(
            f"--test names {len(tests)} files; give a source and a target for each set"
        )
    read = {split: _read(*getattr(args, split)) for split in SPLITS[:2] if getattr(args, split)}
    sets = {
        source.name: _read(source, target)
        for source, target in zip(tests[::2], tests[1::2], strict=True)
    }
    if len({Path(name).stem for name in sets}) * 2 != len(tests):
        raise OptionError("--test has two sources of one name; give each set a name of its own")
    if len(sets) > 1 and SETS in args.langs:
        raise OptionError(f"test.{SETS} names the set of each line; give the language another name")
    if sets:
        read["test"] = tuple(
            [line for lines in side for line in lines] for side in zip(*sets.values(), strict=True)
        )
    if not read:
        raise OptionError("give at least one of --train, --valid and --test")
    described: dict[str, Any] = {
        "generator": args.generator,
        "langs": args.langs,
        "pairs": args.pairs,
        "seed": args.seed,
        "sha256": {
            split: [sha256_of_lines(lines) for lines in pair] for split, pair in read.items()
        },
    }
    if args.most_words:
        described["most_words"] = args.most_words
    notes: dict[str, int] = {}
    if train := read.get("train"):
        short = _short_enough(train, args.most_words)
        if args.most_words:
            notes["too_long_left_out"] = len(train[0]) - len(short)
        indices = _chosen(short, args.pairs, args.seed)
        read["train"] = tuple([lines[index] for index in indices] for lines in train)
    files = {
        f"{split}.{lang}": lines
        for split, pair in read.items()
        for lang, lines in zip(args.langs, pair, strict=True)
    }
    if len(sets) > 1:
        sizes = {Path(name).stem: len(pair[0]) for name, pair in sets.items()}
        described["sets"] = sizes
        files[f"test.{SETS}"] = [name for name, size in sizes.items() for _ in range(size)]
    write_data_set(args.out, described, lambda: (files, notes))


def _read(source: Path, target: Path) -> tuple[list[str], ...]:
    pair = read_aligned(*(there_or_packed(file) or file for file in (source, target)))
    if not pair[0]:
        raise InputError(source, None, "has no lines", "check the file")
    return pair


def _short_enough(sides: tuple[list[str], ...], most_words: int) -> list[int]:
    """The indices of the pairs with no more words on either side; of all for 0."""
    if not most_words:
        return list(range(len(sides[0])))
    sizes = (max(len(line.split()) for line in pair) for pair in zip(*sides, strict=True))
    return [index for index, size in enumerate(sizes) if size <= most_words]


def _chosen(indices: list[int], pairs: int, seed: int) -> list[int]:
    if pairs > len(indices):
        raise OptionError(f"--pairs is {pairs}, but train has {len(indices)}")
    if not pairs:
        return indices
    if seed:
        random.Random(seed).shuffle(indices)
    return sorted(indices[:pairs])
