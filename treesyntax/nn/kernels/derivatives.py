"""Kernels that compute their gradient by hand, and so have no second derivative."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from treesyntax.errors import OptionError
from treesyntax.nn.devices import is_transformed

Backward = Callable[..., Any]


def differentiable_once(backward: Backward) -> Backward:
    """Refuse a backward pass that is itself to be differentiated.

    PyTorch's ``once_differentiable`` refuses later, and only where a gradient comes back to it: with
    ``torch.autograd.grad`` none does, and the second derivative lacks the terms of this kernel unseen.
    """
    with_late_refusal = once_differentiable(backward)

    @wraps(backward)
    def checked(ctx: Any, *gradients: Any) -> Any:
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            raise OptionError(
                "create_graph=True: this attention has no second derivative; compute the output within "
                "torch.nn.attention.sdpa_kernel(SDPBackend.MATH), or leave create_graph out"
            )
        return with_late_refusal(ctx, *gradients)

    return checked


def is_wanted_twice() -> bool:
    """Return whether operations with a second derivative are to be taken.

    That is said as to PyTorch's attention, whose fused kernels have none: by ``sdpa_kernel(SDPBackend.MATH)``.
    ``torch.func`` may want any derivative.
    """
    if torch.compiler.is_compiling():
        return False
    return is_transformed() or not torch.backends.cuda.flash_sdp_enabled()
