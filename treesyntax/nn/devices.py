"""What a training step may ask of the device that it runs on."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def can_be_read(tensor: Tensor) -> bool:
    """Return whether a number of a tensor may be looked at to save work.

    On the CPU that is free. Elsewhere the host would wait until the device has caught up, and in a
    traced graph or under ``torch.func`` there are no numbers: there the work is done.
    """
    return tensor.is_cpu and not torch.compiler.is_compiling() and not is_transformed()


def is_transformed() -> bool:
    """Return whether ``torch.func`` transforms what is computed now: ``grad``, ``vmap``, ``jvp`` and the like.

    Tensors then stand for others: their memory cannot be looked at, and kernels of our own do not know them.
    """
    return not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active()


def full_precision(device: torch.device) -> AbstractContextManager[object]:
    """Switch autocast off on a device, where it has autocast (``meta`` has none)."""
    if not torch.amp.is_autocast_available(device.type):
        return nullcontext()
    return torch.autocast(device.type, enabled=False)


def attention_type(device: torch.device) -> torch.dtype | None:
    """Return the type in which attention is computed under autocast on a device, None where that is off.

    On a CPU that is float32. Attention is a twentieth of a training's products: there is little to gain, and sums
    over pairs stay exact.
    """
    kind = device.type
    if not (torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)):
        return None
    return torch.float32 if kind == "cpu" else torch.get_autocast_dtype(kind)
