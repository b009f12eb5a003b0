"""A training saves at the warning signal that a cluster sends before the time limit, and ends.

It saves as soon as an update is done, and does not validate: a training that was interrupted is to be
the same as one that was not. Where fairseq saves after the update anyhow, that is left to it.
"""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed_utils

from treesyntax.jobs.node import SAVED, WARNING

AGREE_EVERY = 10
"""Updates after which several processes ask each other whether one was warned."""

logger = logging.getLogger(__name__)
_warned: list[int] = []


def heed_warnings() -> None:
    """Note the warning signal from now on."""
    _listen(lambda number, _: _warned.append(number))


def _listen(handler: Any) -> None:
    with suppress(ValueError):  # not the main thread
        signal.signal(WARNING, handler)


def _is_warned(trainer: Any) -> bool:
    """Whether this process, or any other of the training, was warned; the same in all of them."""
    if trainer.data_parallel_world_size == 1:
        return bool(_warned)
    if trainer.get_num_updates() % AGREE_EVERY:
        return False
    warning_count = torch.tensor([len(_warned)], device=trainer.device)
    distributed_utils.all_reduce(warning_count, group=trainer.data_parallel_process_group)
    return bool(warning_count.item())


def with_epoch(train_iterator: Callable[..., Any]) -> Callable[..., Any]:
    """Let the trainer know its epoch, which fairseq passes around."""

    @wraps(train_iterator)
    def get_train_iterator(trainer: Any, *args: Any, **kwargs: Any) -> Any:
        trainer.tree_epoch = train_iterator(trainer, *args, **kwargs)
        return trainer.tree_epoch

    return get_train_iterator


def heeding_the_warning(train_step: Callable[..., Any]) -> Callable[..., Any]:
    """Look for the warning after each update, and save."""

    @wraps(train_step)
    def step(trainer: Any, *args: Any, **kwargs: Any) -> Any:
        result = train_step(trainer, *args, **kwargs)
        trainer.tree_warned = getattr(trainer, "tree_warned", False) or _is_warned(trainer)
        every = trainer.cfg.checkpoint.save_interval_updates
        if trainer.tree_warned and (not every or trainer.get_num_updates() % every):
            _save_and_end(trainer)
        return result

    return step


def ending_at_the_warning(fairseq_save: Callable[..., Any]) -> Callable[..., Any]:
    """End a training that was warned and is saved."""

    # fairseq notes the best score on the function of this name, whichever it is.
    @wraps(fairseq_save)
    def save_checkpoint(cfg: Any, trainer: Any, epoch_itr: Any, val_loss: float | None) -> Any:
        saved = fairseq_save(cfg, trainer, epoch_itr, val_loss)
        if getattr(trainer, "tree_warned", False) and _goes_on(trainer):
            logger.info("saved at the warning signal, to be continued")
            _listen(signal.SIG_IGN)  # a second warning would kill Python while it ends
            sys.exit(SAVED)
        return saved

    return save_checkpoint


def _goes_on(trainer: Any) -> bool:
    """Whether an update of this epoch follows; else the training may be done."""
    last = trainer.cfg.optimization.max_update
    return not trainer.tree_epoch.end_of_epoch() and not 0 < last <= trainer.get_num_updates()


def _save_and_end(trainer: Any) -> None:
    if _goes_on(trainer):
        checkpoint_utils.save_checkpoint(trainer.cfg.checkpoint, trainer, trainer.tree_epoch, None)
