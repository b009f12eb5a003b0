"""What the generators share: reading aligned files, the progress bar, and writing the folder."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from treesyntax.data.generate.folder import is_current, same_lines, write_folder
from treesyntax.data.generate.split import SPLITS, Pair, Split
from treesyntax.errors import InputError, OptionError
from treesyntax.files import read_lines
from treesyntax.source import code_of_module

Files = dict[str, list[str]]
"""The lines of each file by its name."""


def wanted_numbers(args: argparse.Namespace) -> dict[str, int]:
    """The number of programs of each split, as the options say."""
    numbers = {split: getattr(args, split) for split in SPLITS}
    if not any(numbers.values()):
        raise OptionError("no programs are asked for; set --train, --valid or --test")
    return numbers


def tell_of_test(args: argparse.Namespace) -> None:
    """Say that valid and test belong to this number of training programs, where they do."""
    if args.train and (args.valid or args.test) and not (args.fixed_test or args.small_train):
        print(
            f"valid and test are those of --train {args.train}, another number has others; for training sets of "
            "several sizes with one test add --fixed-test to each, or --small-train"
        )


def pair_files(
    split: Split,
    suffixes: Sequence[str],
    small_train: Sequence[int] = (),
    small_pairs: list[Pair] | None = None,
) -> Files:
    """The two files of each part, ``train.SUFFIX`` and so on; suffixes begin with a dot.

    ``train.N.SUFFIX`` has the first N training pairs, or ``small_pairs``, for each N of
    ``small_train``.
    """
    train = split.train if small_pairs is None else small_pairs
    for size in small_train:
        if not 1 <= size <= len(train):
            raise OptionError(f"small-train is {size}; it must be 1 to {len(train)}, as train has")
    parts = {
        **split._asdict(),
        **{f"train.{size}": train[:size] for size in sorted(set(small_train))},
    }
    return {
        f"{name}{suffix}": [pair[side] for pair in pairs]
        for name, pairs in parts.items()
        for side, suffix in enumerate(suffixes)
    }


def write_data_set(
    folder: Path, options: dict[str, Any], make: Callable[[], tuple[Files, dict[str, Any]]]
) -> None:
    """Write a folder unless it is current, and print what it holds.

    What other code made is made once more, and refused if it is not the same.

    Args:
        folder: absent, empty, or made with the same options.
        options: everything that the contents depend on, of JSON types.
        make: returns the files, and notes for the manifest; a function of the module that makes them.
    """
    code = code_of_module(make.__module__)
    current = is_current(folder, options, code)
    if not current:
        files, notes = make()
    if current or same_lines(folder, files, code):
        print(f"{folder}: up to date")
        return
    manifest = write_folder(folder, options, files, notes, code)
    for name, facts in manifest["files"].items():
        mean = f"mean length {facts['mean_length']:.1f} tokens"
        print(f"{folder / name}: {facts['lines']} lines, {mean}")
    for name, value in notes.items():
        print(f"{name}: {value}")


def read_aligned(source: Path, target: Path) -> tuple[list[str], list[str]]:
    """The lines of two text files, which must have equally many."""
    pair = list(read_lines(source)), list(read_lines(target))
    if len(pair[0]) != len(pair[1]):
        raise InputError(
            target,
            None,
            f"has {len(pair[1])} lines, but {source} has {len(pair[0])}",
            "the files must be aligned line by line",
        )
    return pair


def packed(path: Path) -> Path | None:
    """The file, or the one with ``.gz`` behind its name; None without either."""
    other = path.with_name(f"{path.name}.gz")
    return next((file for file in (path, other) if file.is_file()), None)
