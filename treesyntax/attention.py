"""The one attention of the toolkit, and the fast lookup of relation biases.

All pairwise methods end here as an additive bias on the logits, read from a small learned table
by integer codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PAIRS_PER_TILE = 1 << 16
"""Pairs whose one-hot codes are held at once while a table's gradient is summed."""


@dataclass(frozen=True)
class PairBias:
    """A bias on attention logits: ``bias[b, h, q, k] = table[h, codes[b, q, k]]``.

    Attributes:
        codes: integer tensor [B, Q, K].
        table: float tensor [H, C].
    """

    codes: Tensor
    table: Tensor


class _Lookup(torch.autograd.Function):
    """table [H, C], codes [B, Q, K] to [B, H, Q, K]; linear in the table, transpose: `_Total`."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, codes: Tensor) -> Tensor:
        ctx.save_for_backward(codes)
        ctx.size = table.shape[1]
        batch, queries, keys = codes.shape
        flat = codes.reshape(1, -1).expand(table.shape[0], -1).long()
        found = table.gather(1, flat)
        return found.view(-1, batch, queries, keys).transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (codes,) = ctx.saved_tensors
        return _Total.apply(grads[0], codes, ctx.size), None


class _Total(torch.autograd.Function):
    """values [B, H, Q, K], codes [B, Q, K] to sums [H, C]; linear, transpose: `_Lookup`.

    A product with one-hot codes, tile by tile: a scatter-add over all pairs is 10 times slower.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, codes: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(codes)
        heads = values.shape[1]
        flat_values = values.transpose(0, 1).reshape(heads, -1)
        flat_codes = codes.reshape(-1)
        classes = torch.arange(size, device=codes.device, dtype=codes.dtype)
        total = flat_values.new_zeros(heads, size, dtype=torch.float32)
        if values.dtype == torch.float64:
            total = total.double()
        tiles = zip(
            flat_values.split(PAIRS_PER_TILE, dim=1), flat_codes.split(PAIRS_PER_TILE), strict=True
        )
        for value_tile, code_tile in tiles:
            one_hot = (code_tile.unsqueeze(1) == classes).to(value_tile.dtype)
            total += value_tile @ one_hot
        return total.to(values.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (codes,) = ctx.saved_tensors
        return _Lookup.apply(grads[0], codes), None, None


def lookup(table: Tensor, codes: Tensor) -> Tensor:
    """``table[h, codes[b, q, k]]``: [H, C] and integer [B, Q, K] to [B, H, Q, K], differentiable."""
    return _Lookup.apply(table, codes)


def total_bias(
    biases: Sequence[PairBias], keep: Tensor | None, dtype: torch.dtype
) -> Tensor | None:
    """What is added to the logits, or a keep-mask alone where no method has a bias.

    Args:
        biases: one per method.
        keep: bool tensor that broadcasts to [B, 1, Q, K], True = attend, or None for all.
        dtype: of the queries; the sum is formed in the tables' precision and cast once.

    Returns:
        [B, H, Q, K] float, or ``keep`` itself, or None.
    """
    if not biases:
        return keep
    total = lookup(biases[0].table, biases[0].codes)
    for bias in biases[1:]:
        total = total + lookup(bias.table, bias.codes)
    if keep is not None:
        total = total.masked_fill(~keep, float("-inf"))
    return total.to(dtype)


@dataclass
class KeyValues:
    """Projected keys and values, [B, H, K, d] each: what incremental decoding remembers."""

    keys: Tensor
    values: Tensor

    def reorder(self, order: Tensor) -> KeyValues:
        """The rows ``order`` of the batch, as beam search picks them."""
        return KeyValues(self.keys.index_select(0, order), self.values.index_select(0, order))


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2.2) with fairseq's parameter names.

    Args:
        d_model: width of queries and output, divisible by ``heads``.
        heads: number of heads H.
        dropout: on attention weights, in training.
        d_key: width of the attended sequence, where it differs.
    """

    def __init__(self, d_model: int, heads: int, dropout: float, d_key: int | None = None) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.k_proj = nn.Linear(d_key or d_model, d_model)
        self.v_proj = nn.Linear(d_key or d_model, d_model)
        self.q_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)
        # fairseq's initialisation: the three input projections count as one stacked matrix.
        gain = 2**-0.5 if d_key in (None, d_model) else 1.0
        for projection in (self.k_proj, self.v_proj, self.q_proj):
            nn.init.xavier_uniform_(projection.weight, gain=gain)
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)

    def _split(self, projected: Tensor) -> Tensor:
        return projected.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def project(self, attended: Tensor) -> KeyValues:
        """Keys and values of a sequence [B, K, d_key]."""
        return KeyValues(self._split(self.k_proj(attended)), self._split(self.v_proj(attended)))

    def forward(self, query: Tensor, memory: KeyValues, mask: Tensor | None) -> Tensor:
        """Attend from [B, Q, d_model] to projected keys and values.

        Args:
            query: [B, Q, d_model].
            memory: from :meth:`project`.
            mask: from :func:`total_bias`: float [B, H, Q, K] to add, bool to keep, or None.
        """
        attended = F.scaled_dot_product_attention(
            self._split(self.q_proj(query)),
            memory.keys,
            memory.values,
            attn_mask=mask,
            dropout_p=self.dropout if self.training else 0.0,
        )
        return self.out_proj(attended.transpose(1, 2).flatten(2))
