"""What the generators share: the progress bar, parts of the training data, and the report."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from treesyntax.data.generate.folder import write_folder
from treesyntax.data.generate.split import Pair, Split
from treesyntax.errors import OptionError

if TYPE_CHECKING:
    from rich.progress import Progress

Files = dict[str, list[str]]
"""The lines of each file by its name."""


def progress_bar() -> Progress:
    """A bar on stderr, silent where that is no terminal."""
    from rich.console import Console
    from rich.progress import Progress

    return Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())


def add_small_train(parser: argparse.ArgumentParser) -> None:
    """Declare the option for small training sets."""
    parser.add_argument(
        "--small-train",
        type=int,
        nargs="+",
        default=[],
        metavar="N",
        help="also write train.N.SUFFIX for each N: N training examples, the smaller among the "
        "larger",
    )


def pair_files(split: Split, suffixes: Sequence[str]) -> Files:
    """The two files of each part, ``train.SUFFIX`` and so on; suffixes begin with a dot."""
    return {
        f"{name}{suffix}": [pair[side] for pair in pairs]
        for name, pairs in split._asdict().items()
        for side, suffix in enumerate(suffixes)
    }


def small_train_files(train: list[Pair], suffixes: Sequence[str], sizes: Sequence[int]) -> Files:
    """The first N training pairs, as ``train.N.SUFFIX``, for each N of `sizes`.

    Raises:
        OptionError: if an N is not between 1 and the number of pairs.
    """
    for size in sizes:
        if not 1 <= size <= len(train):
            raise OptionError(f"small-train is {size}; it must be 1 to {len(train)}, as train has")
    return {
        f"train.{size}{suffix}": [pair[side] for pair in train[:size]]
        for size in sorted(set(sizes))
        for side, suffix in enumerate(suffixes)
    }


def write_and_report(
    folder: Path, options: dict[str, Any], files: Files, notes: dict[str, Any]
) -> int:
    """Write the folder and print what it holds; returns 0.

    Raises:
        InputError: if it cannot be written.
    """
    manifest = write_folder(folder, options, files, notes)
    for name, facts in manifest["files"].items():
        mean = f"mean length {facts['mean_length']:.1f} tokens"
        print(f"{folder / name}: {facts['lines']} lines, {mean}")
    for name, value in notes.items():
        print(f"{name}: {value}")
    return 0


def report_current(folder: Path) -> int:
    """Say that there is nothing to do; returns 0."""
    print(f"{folder}: up to date")
    return 0
