"""What a checkpoint says about its training, as one line of JSON.

Example: python -m treesyntax.analysis.facts checkpoint_best.pt --last checkpoint_last.pt
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from treesyntax.errors import InputError, TreeSyntaxError
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
        ``parameters``; ``valid_loss`` and ``best_update`` of the checkpoint that is tested, or of
        the last of those that were averaged; ``updates`` and
        ``train_seconds`` (wall clock, over all resumes) of the whole training; ``injection``, the
        methods in the encoder.
    """
    return {
        "parameters": count_parameters(best["model"]),
        "valid_loss": best["extra_state"]["val_loss"],
        "best_update": best["optimizer_history"][-1]["num_updates"],
        "updates": last["optimizer_history"][-1]["num_updates"],
        "train_seconds": last["extra_state"]["previous_training_time"],
        "injection": _model_settings(best).get("encoder_injection", ""),
    }


def _model_settings(state: Mapping[str, Any]) -> dict[str, Any]:
    model = state["cfg"]["model"]
    return model if isinstance(model, dict) else vars(model)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the facts; a fault is one line and status 2."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("best", type=Path, help="the checkpoint that is tested")
    parser.add_argument("--last", type=Path, help="the last one of the training (default: BEST)")
    args = parser.parse_args(argv)
    try:
        best = load_checkpoint(args.best)
        last = load_checkpoint(args.last) if args.last else best
        try:
            facts = compute_facts(best, last)
        except (KeyError, IndexError, TypeError) as error:
            raise InputError(
                args.best, None, f"is no checkpoint of a training ({error!r})"
            ) from None
    except TreeSyntaxError as error:
        print(f"checkpoint_facts: {error}", file=sys.stderr)
        return 2
    print(json.dumps(facts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
