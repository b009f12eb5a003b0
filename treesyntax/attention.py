"""The one attention of the toolkit.

Without learned biases or vectors this is PyTorch's fused kernel. With them, training on a CPU goes
through an autograd function of our own: PyTorch's fused CPU kernel cannot give the gradient of a
bias, and its fallback takes about 1.5 times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from treesyntax.pair_bias import PairBias, padding_bias, total_bias
from treesyntax.pair_vectors import PairVectors

CACHED_WEIGHTS = 1 << 20
"""Attention weights computed at once: larger tensors leave the cache and come fresh from the
system with every call, which costs more than the arithmetic."""


class _BiasedAttention(torch.autograd.Function):
    """softmax(q k' / sqrt(d) + bias) v with the gradient of the bias, and the weights.

    Shapes: q [B, H, Q, d] (already divided by sqrt(d)), k and v [B, H, K, d], bias [B, H, Q, K].
    With weights P, their dropped-out form U = P∘M, output O = U V, and gradients G of O and A of
    U: dV = U' G, dU = G V' + A, dS = P∘(dU∘M - rowsum(dU∘U)), dQ = dS K, dK = dS' Q, dbias = dS.
    """

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, bias: Tensor, dropout: float
    ) -> tuple[Tensor, Tensor]:
        queries, keys, values = q.flatten(0, 1), k.flatten(0, 1), v.flatten(0, 1)
        weights = torch.baddbmm(bias.flatten(0, 1), queries, keys.transpose(1, 2))
        torch.softmax(weights, -1, out=weights)
        used, kept = torch.native_dropout(weights, dropout, True) if dropout else (weights, None)
        output = used @ values
        ctx.dropout, ctx.batch_heads = dropout, q.shape[:2]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(queries, keys, values, weights, output, *([kept] if dropout else []))
        return output.unflatten(0, q.shape[:2]), used.unflatten(0, q.shape[:2])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        queries, keys, values, weights, output, *kept = ctx.saved_tensors
        grad_output, grad_used = grads
        if grad_output is None and grad_used is None:
            return (None,) * 5
        flat = torch.zeros_like(output) if grad_output is None else grad_output.flatten(0, 1)
        row = (flat * output).sum(-1, keepdim=True)
        factor = kept[0].to(weights.dtype) / (1 - ctx.dropout) if kept else None
        used = weights if factor is None else weights * factor
        if grad_used is None and factor is None:
            grad_logits = torch.baddbmm(
                row.expand_as(weights), flat, values.transpose(1, 2), beta=-1
            )
        else:
            grad_logits = flat @ values.transpose(1, 2)
            if grad_used is not None:
                extra = grad_used.flatten(0, 1)
                grad_logits += extra
                row = row + (extra * used).sum(-1, keepdim=True)
            grad_logits = (grad_logits if factor is None else grad_logits * factor).sub_(row)
        grad_logits *= weights
        parts = (
            grad_logits @ keys,
            grad_logits.transpose(1, 2) @ queries,
            used.transpose(1, 2) @ flat,
            grad_logits,
        )
        return (*(part.unflatten(0, ctx.batch_heads) for part in parts), None)


@dataclass(frozen=True)
class Pairs:
    """Everything that methods add to the pairs of one layer.

    Attributes:
        biases: added to the logits.
        vectors: added to keys and values.
    """

    biases: Sequence[PairBias] = ()
    vectors: Sequence[PairVectors] = ()

    def part(self, sentences: slice, heads: slice) -> Pairs:
        """What concerns some sentences and heads."""
        return Pairs(
            [bias.part(sentences, heads) for bias in self.biases],
            [pair.part(sentences, heads) for pair in self.vectors],
        )


PLAIN = Pairs()


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
    learning = torch.is_grad_enabled() and any(bias.table.requires_grad for bias in pairs.biases)
    if not pairs.vectors and not (learning and not q.is_cuda):
        mask = total_bias(pairs.biases, keep, q.dtype)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
    queries = q * q.shape[-1] ** -0.5
    sentences, heads = _chunk(q, k, split_heads=not pairs.biases)
    rows = []
    for start in range(0, len(q), sentences):
        some = slice(start, start + sentences)
        kept = keep if keep is None or len(keep) == 1 else keep[some]
        columns = []
        chunks = (tensor[some].split(heads, 1) for tensor in (queries, k, v))
        for index, (some_q, some_k, some_v) in enumerate(zip(*chunks, strict=True)):
            part = pairs.part(some, slice(index * heads, (index + 1) * heads))
            columns.append(_attend_with(some_q, some_k, some_v, kept, part, dropout))
        rows.append(torch.cat(columns, 1) if len(columns) > 1 else columns[0])
    return torch.cat(rows) if len(rows) > 1 else rows[0]


def _chunk(q: Tensor, k: Tensor, split_heads: bool) -> tuple[int, int]:
    """How many sentences and heads to take at once on a CPU: what stays in its cache."""
    batch, heads, queries = q.shape[:3]
    if q.is_cuda:
        return batch, heads
    most = CACHED_WEIGHTS // (queries * k.shape[2])
    if most >= heads:
        return min(most // heads, batch), heads
    return 1, max(most, 1) if split_heads else heads


def _attend_with(
    queries: Tensor, k: Tensor, v: Tensor, keep: Tensor | None, pairs: Pairs, dropout: float
) -> Tensor:
    shape = (*queries.shape[:3], k.shape[2])
    bias = total_bias(pairs.biases, None, queries.dtype)
    for pair in pairs.vectors:
        if pair.keys is not None:
            added = pair.key_bias(queries)
            bias = added if bias is None else bias + added
    bias = queries.new_zeros(shape) if bias is None else bias
    if keep is not None:
        bias = bias.masked_fill(~keep, padding_bias(queries.dtype))
    output, weights = _BiasedAttention.apply(queries, k, v, bias, dropout)
    for pair in pairs.vectors:
        if pair.values is not None:
            output = output + pair.value_sum(weights)
    return output


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
