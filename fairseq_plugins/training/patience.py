"""Early stopping that goes on counting after a resume.

fairseq keeps what ``--patience`` counts in attributes of a function and in no checkpoint: a training that was
killed and goes on would take its next validation for the first one, and train longer than an undisturbed one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

ENTRY = "patience"
"""Of a checkpoint's ``extra_state``: the best score, and how many validations ago it was."""
COUNTED = ("best", "num_runs")
MODULES = ("__main__", "fairseq_cli.train")
"""Where fairseq's training is, started as a module or by its command."""


def _counter() -> Callable[..., bool] | None:
    """The function on which fairseq counts; None outside of a training."""
    functions = (getattr(sys.modules.get(name), "should_stop_early", None) for name in MODULES)
    return next((function for function in functions if function is not None), None)


def with_count(save: Callable[..., Any]) -> Callable[..., Any]:
    """Write the count into each checkpoint."""

    @wraps(save)
    def save_checkpoint(trainer: Any, filename: str, extra_state: dict[str, Any]) -> Any:
        counter = _counter()
        if counter is not None and hasattr(counter, COUNTED[0]):
            extra_state = {**extra_state, ENTRY: {name: getattr(counter, name) for name in COUNTED}}
        return save(trainer, filename, extra_state)

    return save_checkpoint


def count_on(extra_state: dict[str, Any] | None) -> None:
    """Go on from the count of a checkpoint; one without any begins anew."""
    counter = _counter()
    counted = (extra_state or {}).get(ENTRY)
    if counter is not None and counted:
        for name in COUNTED:
            setattr(counter, name, counted[name])


def validations_waited() -> int:
    """How many validations ago the best one was; 0 where nothing is counted."""
    return int(getattr(_counter(), COUNTED[1], 0))
