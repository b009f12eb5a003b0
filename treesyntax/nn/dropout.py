"""Dropout that can stay on when a model searches, and costs little on a CPU."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from treesyntax.nn.devices import is_transformed

STEPS = 2**16
"""Values of the random numbers on a CPU: shares of dropped values are whole numbers of STEPS-ths there."""


def drop(x: Tensor, rate: float) -> Tensor:
    """Values set to 0 with probability ``rate``, the others divided by 1 - rate (Srivastava et al. 2014).

    PyTorch draws a number of 32 bits for each value on a CPU, one by one, which there takes longer than the
    matrix product whose result is dropped. Here four values share one of 64 bits.

    Args:
        x: any shape.
        rate: of values that are dropped, 0 to 1.
    """
    dropped = round(rate * STEPS)
    plain = x.device.type != "cpu" or torch.compiler.is_compiling() or is_transformed()
    if plain or not 0 < dropped < STEPS:
        return F.dropout(x, rate)
    lanes = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    numbers = lanes.view(torch.int16)[: x.numel()].view(x.shape)
    kept = numbers.ge(dropped - STEPS // 2).to(x.dtype)
    return x * kept.div_(1 - rate)


class Dropout(nn.Module):
    """Dropout in training, and where it is retained also in evaluation.

    Args:
        rate: probability that a value is set to 0.

    Attributes:
        retained: whether it is on in evaluation too, as samples of a model's uncertainty need it
            (Gal & Ghahramani 2016).
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate, self.retained = rate, False

    @property
    def on(self) -> bool:
        """Whether values are dropped now."""
        return self.training or self.retained

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return drop(x, self.rate) if self.on and self.rate else x
