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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from treesyntax.data.generate.coffeescript_programs import Vocabulary
from treesyntax.data.generate.coffeescript_sets import CoffeeScriptOptions, generate_pairs
from treesyntax.data.generate.compiler import PACKAGE, compile_programs, install_compiler
from treesyntax.data.generate.data_set import (
    Files,
    pair_files,
    tell_of_test,
    wanted_numbers,
    write_data_set,
)
from treesyntax.jobs.terminal import progress_bar
from treesyntax.trees.formats.coffeescript import COFFEESCRIPT
from treesyntax.trees.formats.javascript import JAVASCRIPT


def generate(args: argparse.Namespace) -> None:
    """Write the data set, unless the folder is up to date."""
    vocabulary = Vocabulary(args.variables, args.constants)
    options = CoffeeScriptOptions(args.size, vocabulary, args.seed, args.fixed_test)
    wanted = wanted_numbers(args)
    described: dict[str, Any] = {
        "generator": args.generator,
        "compiler": PACKAGE,
        **{name: getattr(args, name) for name in ("size", "variables", "constants", "seed")},
        **wanted,
    }
    if args.small_train:
        described["small_train"] = args.small_train
    if args.fixed_test:
        described["fixed_test"] = True
    write_data_set(
        args.out, described, lambda: _make(args.compiler, wanted, options, args.small_train)
    )
    tell_of_test(args)


def _make(
    folder: Path, wanted: dict[str, int], options: CoffeeScriptOptions, small_train: Sequence[int]
) -> tuple[Files, dict[str, Any]]:
    install_compiler(folder)
    with progress_bar() as progress:
        bar = progress.add_task("programs", total=sum(wanted.values()))
        split = generate_pairs(
            wanted,
            options,
            lambda programs: compile_programs(folder, programs),
            lambda number: progress.advance(bar, number),
        )
    suffixes = (COFFEESCRIPT.suffix, JAVASCRIPT.suffix)
    return pair_files(split, suffixes, small_train), split.seen()
