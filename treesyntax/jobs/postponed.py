"""Load fairseq without the libraries that it imports for criteria and tasks which few trainings use.

scikit-learn, with pandas behind it, and the statistics of SciPy take a quarter of the processor time of
``import fairseq``. They are loaded when a function of theirs is called. The garbage collector, which finds nothing
in modules, takes a sixth of the rest. What fairseq alone can mend, a use of torch that torch warns of, is not printed.
"""

from __future__ import annotations

import builtins
import gc
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pkgutil import resolve_name
from typing import Any

POSTPONED = ("sklearn", "sklearn.metrics", "scipy.stats")
IMPORTER = "fairseq."
JIT = "`torch.jit.script` is deprecated"
"""Begins what torch 2.14 warns of at each start of a command, since a module of fairseq uses it."""


class Later:
    """Stands for a module, or for a function in it, until the function is called.

    Args:
        name: the full name, with dots.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Later:
        if name.startswith("__"):
            raise AttributeError(name)
        return Later(f"{self._name}.{name}")

    def __call__(self, *positional: Any, **named: Any) -> Any:
        """Load the module and call its function."""
        return resolve_name(self._name)(*positional, **named)


@contextmanager
def postponed() -> Iterator[None]:
    """Give modules of fairseq, and nobody else, a `Later` in place of each of `POSTPONED` that they import meanwhile.

    Garbage is not collected until then.
    """
    load, collects = builtins.__import__, gc.isenabled()

    def load_later(
        name: str, variables: Mapping[str, object] | None = None, *others: Any, **named: Any
    ) -> Any:
        if name in POSTPONED and str((variables or {}).get("__name__")).startswith(IMPORTER):
            return Later(name)
        return load(name, variables, *others, **named)

    builtins.__import__ = load_later  # type: ignore[assignment]
    gc.disable()
    # Not catch_warnings, which would take back the filters that torch adds.
    known = list(warnings.filters)
    warnings.filterwarnings("ignore", JIT, FutureWarning)
    unsaid = warnings.filters[0]
    try:
        yield
    finally:
        builtins.__import__ = load
        if unsaid in warnings.filters and unsaid not in known:
            warnings.filters.remove(unsaid)  # type: ignore[attr-defined]
        if collects:
            gc.enable()
