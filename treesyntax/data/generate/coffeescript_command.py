"""Random CoffeeScript programs with the JavaScript that the real compiler makes of them.

Needs Node.js with npm, which installs the compiler (package coffeescript) in a folder of your
choice the first time; later runs need no network. Files are lines of tokens, as the formats
coffeescript and javascript of treesyntax binarize read them.

  short, small vocabulary   --size 10 --variables 2 --constants 2
  short, large vocabulary   --size 10 --variables 26
  long                      --size 34
  published (Drissi et al. 2018)   the defaults

No program and no translation is in two splits; the counts printed at the end say so.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from treesyntax.data.generate.coffeescript import Vocabulary
from treesyntax.data.generate.coffeescript_sets import SPLITS, CoffeeScriptOptions, generate_pairs
from treesyntax.data.generate.compiler import PACKAGE, compile_programs, install_compiler
from treesyntax.data.generate.folder import is_current
from treesyntax.data.generate.output import (
    add_small_train,
    pair_files,
    progress_bar,
    report_current,
    small_train_files,
    write_and_report,
)
from treesyntax.errors import OptionError
from treesyntax.trees.formats.coffeescript import COFFEESCRIPT
from treesyntax.trees.formats.javascript import JAVASCRIPT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder to write: {train,valid,test}.{coffee,js}")
    add(
        "--compiler",
        type=Path,
        required=True,
        metavar="FOLDER",
        help=f"where the npm package {PACKAGE} is or shall be installed",
    )
    for split in SPLITS:
        add(f"--{split}", type=int, default=0, help=f"number of {split} programs (default 0)")
    add("--size", type=int, default=32, help="the size to draw programs with (default %(default)s)")
    add(
        "--variables",
        type=int,
        metavar="N",
        help="draw names from N (default: a0, a1, … in order, without limit)",
    )
    add("--constants", type=int, default=10, metavar="N", help="0 to N-1 (default %(default)s)")
    add_small_train(parser)
    add("--seed", type=int, default=1, help="0, 1, 2, … (default %(default)s)")


def generate(args: argparse.Namespace) -> int:
    """Write the data set, unless it is there already; returns 0.

    Raises:
        OptionError: for options that do not fit or cannot be met, or if node or npm is absent.
        InputError: if the folder holds something else, or the compiler cannot be installed.
    """
    options = CoffeeScriptOptions(args.size, Vocabulary(args.variables, args.constants), args.seed)
    wanted = {split: getattr(args, split) for split in SPLITS}
    if not any(wanted.values()):
        raise OptionError("no programs are asked for; set --train, --valid or --test")
    described: dict[str, Any] = {
        "generator": args.generator,
        "compiler": PACKAGE,
        **{name: getattr(args, name) for name in ("size", "variables", "constants", "seed")},
        **wanted,
    }
    if args.small_train:
        described["small_train"] = args.small_train
    if is_current(args.out, described):
        return report_current(args.out)
    install_compiler(args.compiler)
    with progress_bar() as progress:
        bar = progress.add_task("programs", total=sum(wanted.values()))
        split = generate_pairs(
            wanted,
            options,
            lambda programs: compile_programs(args.compiler, programs),
            lambda number: progress.advance(bar, number),
        )
    suffixes = (COFFEESCRIPT.suffix, JAVASCRIPT.suffix)
    files = pair_files(split, suffixes)
    files |= small_train_files(split.train, suffixes, args.small_train)
    return write_and_report(args.out, described, files, dict(split.seen()))
