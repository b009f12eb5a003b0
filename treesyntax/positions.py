"""Absolute positions of tokens, numbered as fairseq numbers them."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class SinusoidalPositions(nn.Module):
    """Sines and cosines of positions that count non-padding tokens (Vaswani et al. 2017, 3.5).

    As in fairseq, which follows tensor2tensor: all sines first, then all cosines; the first
    token's position is ``padding_index + 1``; padding gets zeros.
    """

    table: Tensor

    def __init__(self, d_model: int, padding_index: int) -> None:
        super().__init__()
        self.d_model, self.padding_index = d_model, padding_index
        self.register_buffer("table", self._rows(1024), persistent=False)

    def _rows(self, count: int) -> Tensor:
        half = self.d_model // 2
        rates = torch.exp(torch.arange(half) * -(math.log(10000) / max(half - 1, 1)))
        angles = torch.arange(count).unsqueeze(1) * rates
        rows = torch.cat([angles.sin(), angles.cos()], dim=1)
        rows = F.pad(rows, (0, self.d_model - 2 * half))
        rows[self.padding_index] = 0
        return rows

    def forward(self, positions: Tensor) -> Tensor:
        """Rows [..., d_model] of integer positions."""
        needed = self.padding_index + 1 + positions.shape[1]
        if needed > len(self.table):
            self.table = self._rows(2 * needed).to(self.table)
        return self.table[positions]


class LearnedPositions(nn.Embedding):
    """Learned absolute positions under fairseq's name and numbering."""

    def __init__(self, d_model: int, padding_index: int, max_positions: int) -> None:
        super().__init__(max_positions + padding_index + 1, d_model, padding_index)
        nn.init.normal_(self.weight, std=d_model**-0.5)
        nn.init.zeros_(self.weight[padding_index])


def token_positions(tokens: Tensor, padding_index: int) -> Tensor:
    """LongTensor [B, T]: padding_index + 1, + 2, … for tokens, padding_index for padding."""
    real = tokens.ne(padding_index).long()
    return real.cumsum(1) * real + padding_index
