"""Dropout that can stay on when a model searches."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn


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
        return F.dropout(x, self.rate, self.on)
