"""A training that is over stays as it is when it is started again.

fairseq looks whether a training is over only after an update: started from the last checkpoint, as after a kill
before it could say so, or where a cluster starts a job once more, it would train one update too many.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

from fairseq_plugins.training.patience import validations_waited

logger = logging.getLogger(__name__)


def end_if_over(trainer: Any, filename: str) -> None:
    """End the process if a checkpoint is the last one of its training.

    Args:
        trainer: which has loaded the checkpoint.
        filename: of the checkpoint; one from another folder may be over, and is gone on from.
    """
    if Path(filename).parent != Path(trainer.cfg.checkpoint.save_dir):
        return
    last, patience = trainer.cfg.optimization.max_update, trainer.cfg.checkpoint.patience
    updates = trainer.get_num_updates()
    rested = 0 < patience <= validations_waited()
    if 0 < last <= updates or rested:
        logger.info(f"{filename} is of a training that is over, at update {updates}")
        if rested:  # in fairseq's words, for those who read the log of an extended training
            logger.info(
                f"early stop since valid performance hasn't improved for last {patience} runs"
            )
        logger.info("done training in 0.0 seconds")
        sys.exit(0)
