"""A file for every checkpoint that --keep-interval-updates keeps, at ends of epochs too.

fairseq names a checkpoint by its update only inside an epoch. Where an epoch has 10 updates,
--save-interval-updates 50 leaves nothing but checkpoint_best.pt and checkpoint_last.pt, whatever
--keep-interval-updates says, and there is nothing to average.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from fairseq import checkpoint_utils
from fairseq.dataclass.configs import CheckpointConfig


def keeping_ends_of_epochs(fairseq_save: Callable[..., Any]) -> Callable[..., Any]:
    """Keep checkpoints of ends of epochs, too, if --keep-interval-updates asks for more than one."""

    # fairseq notes the best score on the function of this name, whichever it is.
    @wraps(fairseq_save)
    def save_checkpoint(
        cfg: CheckpointConfig, trainer: Any, epoch_itr: Any, val_loss: float | None
    ) -> Any:
        saved = fairseq_save(cfg, trainer, epoch_itr, val_loss)
        updates = trainer.get_num_updates()
        if (
            epoch_itr.end_of_epoch()
            and cfg.keep_interval_updates > 1
            and cfg.keep_interval_updates_pattern == -1  # else fairseq keeps some for good
            and cfg.save_interval_updates > 0
            and updates % cfg.save_interval_updates == 0
            and not (cfg.no_save or cfg.no_last_checkpoints or cfg.write_checkpoints_asynchronously)
            and trainer.should_save_checkpoint_on_current_rank
        ):
            _keep(cfg, f"{epoch_itr.epoch}_{updates}", trainer.checkpoint_suffix)
        return saved

    return save_checkpoint


def _keep(cfg: CheckpointConfig, moment: str, suffix: str) -> None:
    folder = Path(cfg.save_dir)
    staged = folder / f"checkpoint_{moment}{suffix}.tmp"
    shutil.copy2(folder / f"checkpoint_last{suffix}.pt", staged)
    os.replace(staged, staged.with_suffix(".pt"))
    pattern = rf"checkpoint_\d+_(\d+){suffix}\.pt"
    # Newest first, as fairseq sorts them.
    for old in checkpoint_utils.checkpoint_paths(cfg.save_dir, pattern)[
        cfg.keep_interval_updates :
    ]:
        Path(old).unlink()
