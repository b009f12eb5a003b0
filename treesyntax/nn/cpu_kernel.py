"""Attention with what methods add to pairs, forward and backward, a tile of weights at a time.

PyTorch's fused CPU kernel cannot give the gradient of a bias, and knows nothing of vectors chosen
by pairs. Here the weights of a few rows at a time are made and used while they are in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from treesyntax.nn.pair_bias import clamped, padding_bias
from treesyntax.nn.pair_products import (
    CACHED_WEIGHTS,
    by_pair,
    products,
    reused_memory,
    sums_by_code,
    table_gradient,
    totals_by_code,
)
from treesyntax.nn.pair_vectors import merged
from treesyntax.nn.pairs import Pairs, attend_literally

KEPT_WEIGHTS = 1 << 26
"""Most attention weights of a layer that are kept for the backward pass. Beyond, they are made
again, for about a third more time; then memory grows with n, not with n squared."""


class _Tile(NamedTuple):
    """Some query rows of some sentences."""

    sentences: slice
    rows: slice

    def of(self, pairs: Tensor) -> Tensor:
        """This part of [B or 1, Q or 1, K], as [b or 1, 1, r or 1, K]."""
        some = pairs if len(pairs) == 1 else pairs[self.sentences]
        return (some if some.shape[1] == 1 else some[:, self.rows]).unsqueeze(1)

    def rows_of(self, queries: Tensor) -> Tensor:
        """This part of [B, H, Q, d]: without a copy, as the rows of one sentence are apart alike."""
        return queries[self.sentences, :, self.rows]


def _tiles(q: Tensor, keys: int) -> Iterator[_Tile]:
    """Tiles of [B, H, Q, d] queries: whole sentences where several fit, else rows of one."""
    batch, heads, queries, _ = q.shape
    most = CACHED_WEIGHTS // (heads * keys) if not q.is_cuda else batch * queries
    sentences = min(max(most // queries, 1), batch)
    rows = -(-queries // -(-queries // max(min(most, queries), 1)))
    for first in range(0, batch, sentences):
        for row in range(0, queries, rows):
            yield _Tile(slice(first, first + sentences), slice(row, row + rows))


def attend_to_pairs(
    q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None, pairs: Pairs, dropout: float
) -> Tensor:
    """softmax((q·(k + a)) scale / sqrt(d) + bias) (v + a'), see :class:`Pairs`.

    Shapes and arguments as in :func:`treesyntax.nn.attention.attend`.
    """
    pairs = replace(pairs, vectors=merged(pairs.vectors, most=k.shape[2]))
    biases = [clamped(bias.table, q.dtype) for bias in pairs.biases]
    sides = [side if side is None else side.to(q.dtype) for side in pairs.tables[len(biases) :]]
    scales = [scale.to(q.dtype) for scale in pairs.scales]
    kept = None if keep is None else keep.squeeze(1)
    return _PairAttention.apply(
        *(x.contiguous() for x in (q, k, v)),
        kept,
        replace(pairs, scales=scales),
        dropout,
        *biases,
        *sides,
    )


class _PairAttention(torch.autograd.Function):
    """The formula of :func:`attend_to_pairs`.

    With logits S, weights P, their dropped-out form U = P∘M, output O and its gradient G:
    dV = U'G, dU = G(V + a')', dS = P∘(dU∘M - rowsum(G∘O)), d bias = dS,
    dQ = (dS∘scale)(K + a) / sqrt(d), dK = (dS∘scale)'Q / sqrt(d). What belongs to a code is summed
    over its pairs.
    """

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        keep: Tensor | None,
        pairs: Pairs,
        dropout: float,
        *tables: Tensor | None,
    ) -> Tensor:
        bound = pairs.with_tables(tables)
        output = torch.empty_like(q)
        shares = [_shares_like(q, vectors.values) for vectors in bound.vectors]
        masks: list[Tensor] = []
        kept: list[Tensor] = []
        learning = any(ctx.needs_input_grad)
        keeps = learning and q[..., 0].numel() * k.shape[2] <= KEPT_WEIGHTS
        for tile in _tiles(q, k.shape[2]):
            weights = _weights(q, k, keep, bound, tile)
            if keeps:
                kept.append(weights)
            if dropout:
                weights, mask = torch.native_dropout(weights, dropout, True)
                masks.append(mask)
            found = products(weights, v[tile.sentences], into=tile.rows_of(output))
            for vectors, share in zip(bound.vectors, shares, strict=True):
                if vectors.values is not None and share is not None:
                    part = sums_by_code(weights, tile.of(vectors.codes), vectors.values.shape[-2])
                    tile.rows_of(share).copy_(part)
                    found += part @ vectors.values
        ctx.save_for_backward(q, k, v, keep, output, *tables, *shares, *masks, *kept)
        ctx.pairs, ctx.dropout = pairs, dropout
        ctx.counts = (len(tables), len(shares), len(masks))
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, keep, output, *rest = ctx.saved_tensors
        tables, shares, masks, kept = _split(rest, ctx.counts)
        (grad,) = grads
        if torch.is_grad_enabled():
            factor = _whole(masks, q, k.shape[2], ctx.dropout)
            return _differentiable((q, k, v, *tables), keep, ctx.pairs, factor, grad)
        bound: Pairs = ctx.pairs.with_tables(tables)
        grad = grad.contiguous()
        row_sums = (grad * output).sum(-1, keepdim=True)
        sums = _Gradients(q, k, v, bound)
        for index, tile in enumerate(_tiles(q, k.shape[2])):
            weights = kept[index] if kept else _weights(q, k, keep, bound, tile)
            factor = masks[index].to(weights.dtype).mul_(1 / (1 - ctx.dropout)) if masks else None
            used = weights if factor is None else weights * factor
            tile_grad = tile.rows_of(grad)
            _sum_rows(sums.values, tile, used, tile_grad)
            values = v[tile.sentences].transpose(2, 3)
            grad_used = products(tile_grad, values, into=reused_memory(weights))
            for vectors in bound.vectors:
                if vectors.values is not None:
                    by_code = tile_grad @ vectors.values.transpose(-1, -2)
                    grad_used += by_pair(by_code, tile.of(vectors.codes))
            if factor is not None:
                grad_used *= factor
            grad_logits = grad_used.sub_(tile.rows_of(row_sums)).mul_(weights)
            sums.add_logits(grad_logits, q, k, bound, tile)
        for vectors, share, total in zip(bound.vectors, shares, sums.value_tables, strict=True):
            if total is not None and vectors.values is not None:
                total += table_gradient(share, grad, vectors.values)
        return sums.in_order(q.dtype)


class _Gradients:
    """Gradients of all inputs, filled tile by tile."""

    def __init__(self, q: Tensor, k: Tensor, v: Tensor, pairs: Pairs) -> None:
        self.queries, self.keys, self.values = (torch.empty_like(x) for x in (q, k, v))
        exact = torch.float64 if q.dtype == torch.float64 else torch.float32
        self.biases = [torch.zeros_like(bias.table, dtype=exact) for bias in pairs.biases]
        sides = [(vectors.keys, vectors.values) for vectors in pairs.vectors]
        self.key_tables, self.value_tables = (
            [None if side is None else torch.zeros_like(side) for side in tables]
            for tables in (list(zip(*sides, strict=True)) or [(), ()])
        )

    def add_logits(self, grad: Tensor, q: Tensor, k: Tensor, pairs: Pairs, tile: _Tile) -> None:
        """Take in the gradient [b, H, r, K] of a tile's logits; overwrites it."""
        for bias, by_relation in zip(pairs.biases, self.biases, strict=True):
            by_relation += totals_by_code(grad, tile.of(bias.codes), by_relation.shape[1])
        for scale in pairs.scales:
            grad *= tile.of(scale)
        queries, factor = tile.rows_of(q), q.shape[-1] ** -0.5
        found = products(grad, k[tile.sentences], into=tile.rows_of(self.queries), factor=factor)
        _sum_rows(self.keys, tile, grad, queries, factor)
        for vectors, total in zip(pairs.vectors, self.key_tables, strict=True):
            if total is not None and vectors.keys is not None:
                by_code = sums_by_code(grad, tile.of(vectors.codes), vectors.keys.shape[-2])
                by_code *= factor
                found += by_code @ vectors.keys
                total += table_gradient(by_code, queries, vectors.keys)

    def in_order(self, dtype: torch.dtype) -> tuple[Tensor | None, ...]:
        """As autograd wants them: one for each argument of the function."""
        tables: list[Tensor | None] = [total.to(dtype) for total in self.biases]
        for sides in zip(self.key_tables, self.value_tables, strict=True):
            tables += sides
        return (self.queries, self.keys, self.values, None, None, None, *tables)


def _weights(q: Tensor, k: Tensor, keep: Tensor | None, pairs: Pairs, tile: _Tile) -> Tensor:
    """Attention weights [b, H, r, K] of a tile."""
    queries, keys = tile.rows_of(q), k[tile.sentences].transpose(2, 3)
    factor = q.shape[-1] ** -0.5
    total = None
    for bias in pairs.biases:
        by_code = bias.table.unsqueeze(1).expand(*queries.shape[:3], -1)
        found = by_pair(by_code, tile.of(bias.codes))
        total = found if total is None else total.add_(found)
    # Scales come before biases; without them the bias is added in the product, at no cost.
    logits = products(queries, keys, added=None if pairs.scales else total, factor=factor)
    for vectors in pairs.vectors:
        if vectors.keys is not None:
            by_code = (queries @ vectors.keys.transpose(-1, -2)).mul_(factor)
            logits += by_pair(by_code, tile.of(vectors.codes))
    for scale in pairs.scales:
        logits *= tile.of(scale)
    if pairs.scales and total is not None:
        logits += total
    if keep is not None:
        logits.masked_fill_(~tile.of(keep), padding_bias(logits.dtype))
    return torch.softmax(logits, -1, out=logits)


def _sum_rows(
    total: Tensor, tile: _Tile, by_pair: Tensor, by_row: Tensor, factor: float = 1.0
) -> None:
    """Add the rows [b, H, r, d] of a tile to its keys' [B, H, K, d], weighted [b, H, r, K]."""
    keys = total[tile.sentences]
    begun = tile.rows.start > 0
    products(
        by_pair.transpose(2, 3),
        by_row,
        added=keys if begun else None,
        into=None if begun else keys,
        factor=factor,
    )


def _shares_like(q: Tensor, values: Tensor | None) -> Tensor | None:
    return None if values is None else q.new_empty(*q.shape[:3], values.shape[-2])


def _split(tensors: Sequence[Tensor], counts: tuple[int, ...]) -> list[Sequence[Tensor]]:
    parts = []
    for count in counts:
        parts.append(tensors[:count])
        tensors = tensors[count:]
    return [*parts, tensors]


def _differentiable(
    inputs: Sequence[Tensor | None],
    keep: Tensor | None,
    pairs: Pairs,
    factor: Tensor | None,
    grad: Tensor,
) -> tuple[Tensor | None, ...]:
    """Gradients that can be differentiated again, from the formula written out."""
    q, k, v = (x for x in inputs[:3] if x is not None)
    kept = None if keep is None else keep.unsqueeze(1)
    q = q * q.shape[-1] ** -0.5
    output = attend_literally(q, k, v, kept, pairs.with_tables(inputs[3:]), factor)
    learned = [x for x in inputs if x is not None and x.requires_grad]
    found = iter(torch.autograd.grad(output, learned, grad, create_graph=True))
    grads = [next(found) if x is not None and x.requires_grad else None for x in inputs]
    return (*grads[:3], None, None, None, *grads[3:])


def _whole(masks: Sequence[Tensor], q: Tensor, keys: int, dropout: float) -> Tensor | None:
    """The tiles' dropout masks as factors [B, H, Q, K]."""
    if not masks:
        return None
    factor = q.new_empty(*q.shape[:3], keys)
    for tile, mask in zip(_tiles(q, keys), masks, strict=True):
        tile.rows_of(factor).copy_(mask)
    return factor / (1 - dropout)
