"""One file a method: importing this package registers every module in it and in its folders.

A user's own methods come with it, see :mod:`treesyntax.jobs.imports`.
"""

from importlib import import_module
from pkgutil import walk_packages

from treesyntax.nn.injection import METHODS

for _module in walk_packages(__path__, f"{__name__}."):
    import_module(_module.name)
METHODS.import_all()

__all__ = ["METHODS"]
