"""Resuming from a checkpoint: in every process, by one training, and only with data that fit it.

In fairseq 0.12.3 the first process reads the checkpoint and sends it to the others, in classes that
``torch.load`` refuses under ``weights_only=True``, its default today. Its own flag
``--load-checkpoint-on-all-dp-ranks`` has every process read the file instead, which needs
no such class; it becomes the default.

In training fairseq does not pass the checkpoint to the task, so the data are compared here.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from fairseq import options
from fairseq.trainer import Trainer

from fairseq_plugins.data_record import ESSENTIAL, FIELDS
from fairseq_plugins.training.launch import hold_folder
from fairseq_plugins.training.warning import heed_warnings
from treesyntax.errors import InputError
from treesyntax.model.checkpoint import peek

_add_checkpoint_args = options.add_checkpoint_args
_load_checkpoint = Trainer.load_checkpoint

RESETS = ("reset_optimizer", "reset_lr_scheduler", "reset_meters", "reset_dataloader")


def _with_default(parser: ArgumentParser) -> Any:
    group = _add_checkpoint_args(parser)
    parser.set_defaults(load_checkpoint_on_all_dp_ranks=True)
    return group


def resume_in_every_process() -> None:
    """Make ``--load-checkpoint-on-all-dp-ranks`` the default of fairseq's training."""
    options.add_checkpoint_args = _with_default


def _checked_load(
    trainer: Any, filename: str, reset_optimizer: bool = False, *rest: Any, **named: Any
) -> Any:
    hold_folder(trainer.cfg)
    heed_warnings()
    find_misfit = getattr(trainer.task, "find_misfit", None)
    if find_misfit is not None and Path(filename).is_file():
        # Fine-tuning (--finetune-from-model sets a reset) may use trees of another kind.
        flags = trainer.cfg.checkpoint
        anew = reset_optimizer or any(getattr(flags, reset) for reset in RESETS)
        fields = ESSENTIAL if anew else FIELDS
        misfit = find_misfit(peek(filename).get("task_state") or {}, fields)
        if misfit is not None:
            remedy = "go on with the data of its training, or train anew in another --save-dir"
            raise InputError(filename, None, misfit.cause, misfit.remedy if anew else remedy)
    return _load_checkpoint(trainer, filename, reset_optimizer, *rest, **named)


def resume_on_data_that_fit() -> None:
    """Let fairseq's trainer compare the data of a checkpoint with its own before it resumes.

    It raises InputError if they do not fit.
    """
    Trainer.load_checkpoint = _checked_load
