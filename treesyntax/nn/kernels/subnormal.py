"""Numbers so small that processors compute with them a hundred times as slowly as with others.

Below 1.2e-38 single precision has fewer digits, which processors treat apart. Powers get there, and so do the squares
of gradients in Adam: of a projection that powers weigh, it took eight times as long as of any other.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from treesyntax.nn.devices import is_transformed


def without_subnormal(x: Tensor) -> Tensor:
    """Zero for numbers below 1e-30 in single precision, from where a product may be subnormal."""
    return F.hardshrink(x, _least(x.dtype) * 1e8)


def without_subnormal_squares(x: Tensor) -> Tensor:
    """The same numbers, with a gradient that is zero where it is below 1e-16 in single precision.

    A thousandth of its square, which Adam keeps, would be subnormal. An update by it is below 1e-8 of the
    learning rate, as Adam adds 1e-8 to the root.
    """
    return x if is_transformed() else _WithoutSubnormalSquares.apply(x)


def _least(dtype: torch.dtype) -> float:
    """The least normal number of a type, or of single precision, in which optimizers keep squares of others."""
    return torch.finfo(torch.promote_types(dtype, torch.float32)).tiny


class _WithoutSubnormalSquares(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return F.hardshrink(gradient, _least(gradient.dtype) ** 0.5 * 1e3)
