"""The state of an optimiser in the order of our parameters.

An optimiser's state knows its parameters by number. Checkpoints of fairseq's own Transformer count them as
our model does, those of earlier versions of this project in another order: with equal shapes, moments
would silently go to the wrong parameters. A checkpoint lists its parameters in the order in which its model had
them, so the numbers can be told from it, whoever wrote it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from treesyntax.errors import InputError


def reorder_moments(state: dict[str, Any], model: nn.Module, path: str) -> None:
    """Bring the optimiser's state of a checkpoint into the order of a model's parameters, in place.

    Args:
        state: the content of the checkpoint.
        model: which goes on from it.
        path: of the checkpoint, for messages.

    Raises:
        InputError: if the orders differ and it cannot be told which number is whose.
    """
    sizes = {
        name: parameter.numel()
        for name, parameter in model.named_parameters()
        if parameter.requires_grad
    }
    then = [name for name in state["model"] if name in sizes]
    now = list(sizes)
    if not state.get("last_optimizer_state") or then == now or set(then) != set(now):
        return  # that other parameters do not fit is told where they are loaded
    moments = state["last_optimizer_state"]
    groups = moments.get("param_groups") if isinstance(moments, dict) else None
    numbers = groups[0]["params"] if groups and len(groups) == 1 else []
    old_indices = [then.index(name) for name in now]
    if len(numbers) == len(now):
        known = moments["state"]
        moved = {numbers[new]: known.get(numbers[old]) for new, old in enumerate(old_indices)}
        moments["state"] = {
            number: moment for number, moment in moved.items() if moment is not None
        }
    elif len(numbers) == 1:  # fairseq's --fp16 keeps all parameters as one vector
        cut = [sizes[name] for name in then]
        for entry in moments["state"].values():
            for key, value in entry.items():
                if isinstance(value, Tensor) and value.numel() == sum(cut):
                    vectors = value.split(cut)
                    entry[key] = torch.cat([vectors[index] for index in old_indices])
    else:
        raise InputError(
            path,
            None,
            "the state of its optimiser is in an older order of the parameters",
            "go on with the version of treesyntax that wrote it, or add --reset-optimizer",
        )
