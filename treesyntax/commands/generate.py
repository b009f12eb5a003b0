"""Make a data set as treesyntax data make does, with the random programs of versions before 0.2.

  treesyntax generate for2lam --out data/for2lam --train 100000 --valid 10000 --test 10000

All its commands and options are those of treesyntax data make. Only for2lam and coffeescript differ: here another
--train has another valid and test. Recipes whose results are published keep this name, and so their data.
"""

from __future__ import annotations

import argparse

from treesyntax.commands.data import add_makers
from treesyntax.commands.data import make as run

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare each command of ``data make`` with its options."""
    add_makers(parser)
    parser.set_defaults(fixed_test=False)
