"""Make synthetic data sets, or bring text files into train, valid and test.

  treesyntax generate for2lam --out data/for2lam --train 100000 --valid 10000 --test 10000
  treesyntax generate coffeescript --out data/cj --compiler data/npm --train 10000 --test 1000
  treesyntax generate split --source geo.src --target geo.tgt --out data/geo --valid 60
  treesyntax generate questions --data my.tsv --out data/my --valid 60 --test 200 --notation sexpr

The folder gets a manifest.json with options, counts, mean lengths and checksums. The same command
again finds it and does nothing. A split of 0 lines gets no files.
"""

from __future__ import annotations

import argparse

from treesyntax.data.generate import (
    coffeescript_command,
    for2lam_command,
    pairs_command,
    questions,
    split_command,
)

GENERATORS = {
    "for2lam": (for2lam_command, "random FOR programs with their LAMBDA twins"),
    "coffeescript": (coffeescript_command, "random CoffeeScript programs and their JavaScript"),
    "split": (split_command, "cut aligned text files into train, valid, test"),
    "pairs": (pairs_command, "a parallel corpus, with as many training pairs as wanted"),
    "questions": (questions, "questions with logical forms, from text files or a TSV"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare each generator with its options."""
    generators = parser.add_subparsers(dest="generator", metavar="WHAT", required=True)
    for name, (module, summary) in GENERATORS.items():
        own = generators.add_parser(
            name,
            help=summary,
            description=module.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        own.set_defaults(generate=module.generate)
        module.add_arguments(own)


def run(args: argparse.Namespace) -> int:
    """Write the data set, unless it is there already; returns 0.

    Raises:
        OptionError: for options that do not fit or cannot be met.
        InputError: if the folder holds something else, or a file cannot be read or written.
    """
    status: int = args.generate(args)
    return status
