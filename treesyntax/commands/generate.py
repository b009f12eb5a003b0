"""Make synthetic data sets, or bring text files into train, valid and test.

  treesyntax generate for2lam --out data/for2lam --train 100000 --valid 10000 --test 10000
  treesyntax generate coffeescript --out data/cj --compiler data/npm --train 10000 --test 1000
  treesyntax generate split --source geo.src --target geo.tgt --out data/geo --valid 60
  treesyntax generate questions --data my.tsv --out data/my --valid 60 --test 200 --notation sexpr

The folder gets a manifest.json with options, counts, mean lengths and checksums. If it is up to
date, the same command does nothing. A split of 0 lines gets no files.
"""

from __future__ import annotations

import argparse
import importlib

from treesyntax.commands.nested import add_commands
from treesyntax.data.generate.arguments import ARGUMENTS

MODULES = {
    "for2lam": "treesyntax.data.generate.for2lam_command",
    "coffeescript": "treesyntax.data.generate.coffeescript_command",
    "split": "treesyntax.data.generate.split_command",
    "pairs": "treesyntax.data.generate.pairs_command",
    "questions": "treesyntax.data.generate.questions",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare each generator with its options."""
    add_commands(parser, "generator", MODULES, ARGUMENTS)


def run(args: argparse.Namespace) -> int:
    """Write the data set, unless the folder is up to date."""
    importlib.import_module(MODULES[args.generator]).generate(args)
    return 0
