"""The one attention of the toolkit: it chooses the kernel.

Without learned biases, vectors or scales this is PyTorch's fused kernel, otherwise our own; long
inputs on a GPU take FlexAttention where the methods allow.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from treesyntax.nn.cpu_kernel import attend_to_pairs
from treesyntax.nn.flex_kernel import flex_attend
from treesyntax.nn.pair_bias import total_bias
from treesyntax.nn.pairs import PLAIN, Pairs


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    keep: Tensor | None,
    pairs: Pairs = PLAIN,
    dropout: float = 0.0,
) -> Tensor:
    """Scaled dot-product attention.

    Args:
        q: [B, H, Q, d].
        k: [B, H, K, d].
        v: [B, H, K, d].
        keep: bool that broadcasts to [B, 1, Q, K], True = attend, or None for all.
        pairs: what methods add.
        dropout: probability of dropping an attention weight.

    Returns:
        [B, H, Q, d].
    """
    if pairs.computed:
        return flex_attend(q, k, v, keep, pairs.computed)
    learning = torch.is_grad_enabled() and any(bias.table.requires_grad for bias in pairs.biases)
    if pairs.vectors or pairs.scales or (learning and not q.is_cuda):
        return attend_to_pairs(q, k, v, keep, pairs, dropout)
    mask = total_bias(pairs.biases, keep, q.dtype)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)


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

    def forward(
        self,
        query: Tensor,
        memory: KeyValues,
        keep: Tensor | None,
        pairs: Pairs = PLAIN,
    ) -> Tensor:
        """Attend from [B, Q, d_model] to projected keys and values.

        Args:
            query: [B, Q, d_model].
            memory: from :meth:`project`.
            keep: as :func:`attend` takes it.
            pairs: as :func:`attend` takes them.
        """
        dropout = self.dropout if self.training else 0.0
        queries = self._split(self.q_proj(query))
        attended = attend(queries, memory.keys, memory.values, keep, pairs, dropout)
        return self.out_proj(attended.transpose(1, 2).flatten(2))
