"""One file a method: importing this package registers every module beside this one."""

from importlib import import_module
from pkgutil import iter_modules

from treesyntax.nn.injection import METHODS

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

__all__ = ["METHODS"]
