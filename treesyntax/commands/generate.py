"""Make a data set: the same as treesyntax data make, under the name that it had before.

  treesyntax generate for2lam --out data/for2lam --train 100000 --valid 10000 --test 10000

All its commands and options are those of treesyntax data make.
"""

from __future__ import annotations

from treesyntax.commands.data import add_makers as add_arguments
from treesyntax.commands.data import make as run

__all__ = ["add_arguments", "run"]
