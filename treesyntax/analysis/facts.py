"""Size, losses and time of a training, as JSON.

One line with the number of parameters, the validation loss and update of CHECKPOINT, and the
updates and seconds of the whole training.

Example: treesyntax analyse facts checkpoint_best.pt --last checkpoint_last.pt
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from treesyntax.analysis.loading import model_flags
from treesyntax.errors import InputError, misfit
from treesyntax.model.checkpoint import load_checkpoint

BUFFERS = ("version",)
"""Last parts of the names of tensors that are stored with a model but are no parameters."""


def count_parameters(model: Mapping[str, Tensor]) -> int:
    """Number of trained numbers in a state dict; a tensor under two names counts once."""
    tensors = [tensor for name, tensor in model.items() if name.split(".")[-1] not in BUFFERS]
    distinct = {
        (tensor.untyped_storage().data_ptr(), tensor.storage_offset(), tensor.shape): tensor.numel()
        for tensor in tensors
    }
    return sum(distinct.values())


def compute_facts(best: Mapping[str, Any], last: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a training run.

    Args:
        best: the checkpoint that is tested.
        last: the last checkpoint of the same training.

    Returns:
        ``parameters``; ``valid_loss`` and ``best_update`` of the tested checkpoint, or of the last
        of those that were averaged; ``updates`` and ``train_seconds`` (wall clock, over all
        resumes) of the whole training; ``injection``, the methods in the encoder.
    """
    return {
        "parameters": count_parameters(best["model"]),
        "valid_loss": best["extra_state"]["val_loss"],
        "best_update": best["optimizer_history"][-1]["num_updates"],
        "updates": last["optimizer_history"][-1]["num_updates"],
        "train_seconds": last["extra_state"]["previous_training_time"],
        "injection": getattr(model_flags(best), "encoder_injection", ""),
    }


def analyse(checkpoint: Path, last: Path | None) -> None:
    """Print the facts."""
    best = load_checkpoint(checkpoint)
    try:
        facts = json.dumps(compute_facts(best, load_checkpoint(last) if last else best))
    except (KeyError, IndexError, TypeError) as error:
        raise InputError(
            checkpoint, None, f"is no checkpoint of a training: {misfit(error)}"
        ) from None
    print(facts)
