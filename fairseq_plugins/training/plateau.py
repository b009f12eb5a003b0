"""A learning rate that waits for better validations, and goes on waiting after a resume.

fairseq's ``reduce_lr_on_plateau`` keeps in no checkpoint how many validations were no better, and one of the end of an
epoch is written before the scheduler learns of its validation: a training that was killed and goes on would lower its
rate later than an undisturbed one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from fairseq.optim.lr_scheduler.reduce_lr_on_plateau import ReduceLROnPlateauLRSchedule

WAITED = "num_bad_epochs"
"""Of a scheduler's state, by the name that torch gives it: how many validations were no better."""


def with_waited(fairseq_state: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Write the number of validations that were no better into each checkpoint."""

    @wraps(fairseq_state)
    def state_dict(self: Any) -> dict[str, Any]:
        return {**fairseq_state(self), WAITED: self.lr_scheduler.num_bad_epochs}

    return state_dict


def waiting_on(fairseq_load: Callable[..., None]) -> Callable[..., None]:
    """Go on from the number of a checkpoint; one without any begins anew."""

    @wraps(fairseq_load)
    def load_state_dict(self: Any, state_dict: Mapping[str, Any]) -> None:
        fairseq_load(self, state_dict)
        self.lr_scheduler.num_bad_epochs = state_dict.get(WAITED, 0)

    return load_state_dict


def count_last_validation(trainer: Any, extra_state: Mapping[str, Any]) -> None:
    """Let a scheduler that waits learn of the validation with which a checkpoint's epoch ended."""
    batches = extra_state.get("train_iterator", {})
    waits = isinstance(trainer.lr_scheduler, ReduceLROnPlateauLRSchedule)
    if waits and batches.get("iterations_in_epoch") == 0:  # of the next epoch, so one has ended
        trainer.lr_step(batches["epoch"] - 1, extra_state.get("val_loss"))
