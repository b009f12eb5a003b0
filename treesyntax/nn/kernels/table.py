"""Attention with one learned bias by relation id, or none, forward and backward in as few passes as possible.

On a CPU PyTorch's fused kernel has no gradient of a bias and no dropout, and autograd keeps and walks five tensors
of the size of the weights. Here it is two: the bias is read where the logits are summed up, a mask is one
more relation id, and the gradient of the logits is made in place. Long sentences go tile by tile: a tile
stays in the processor's cache, and keys that none of its queries may see are left out.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from treesyntax.nn.dropout import drop
from treesyntax.nn.kernels.softmax import softmax

SLOTS = 4
"""Sums kept apart for neighbouring keys: they often have the same id, and each sum waits for the last."""
MOST_SUMS = 64
"""Relation ids times slots beyond which slots cost more than they spare."""
TILE = 1 << 17
"""Attention weights of a tile, half a megabyte. Sentences with fewer are computed all at once."""
LEAST_QUERIES = 32
"""Of a tile; products of matrices with fewer rows are slow."""

Tile = tuple[slice, slice, slice]
"""Sentences, queries and keys that are computed at once."""
WHOLE = slice(None)


def attend_with_table(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    ids: Tensor | None,
    table: Tensor | None,
    hidden: float,
    dropout: float = 0.0,
    own: Tensor | None = None,
) -> Tensor:
    """``softmax(q·k + table[h, id] + own) v``.

    Args:
        q: [B, H, Q, d], scaled.
        k: [B, H, K, d].
        v: [B, H, K, d].
        mask: bool that broadcasts to [B, 1, Q, K], True = attend; None for all.
        ids: relation ids, integers [B or 1, Q, K]; None without a table.
        table: [H, R]; None for no bias by id.
        hidden: the bias of a key that must not be attended to.
        dropout: probability of dropping an attention weight.
        own: logits that a model has of its own, [B or 1, H, Q, K].

    Returns:
        [B, H, Q, d].
    """
    if ids is None or table is None:
        ids = table = None
    else:
        ids = ids.expand(len(q), q.shape[2], k.shape[2])
    if mask is not None:
        mask = mask.expand(len(q), 1, q.shape[2], k.shape[2])
    return _TableAttention.apply(q, k, v, table, ids, own, mask, hidden, dropout)


def tiles(q: Tensor, k: Tensor, mask: Tensor | None) -> list[Tile]:
    """What is computed at once, with the keys that queries of a tile may see.

    Args:
        q: [B, H, Q, d].
        k: [B, H, K, d].
        mask: bool [B, 1, Q, K], True = attend; None for all.
    """
    (rows, heads, queries, _), keys = q.shape, k.shape[2]
    if torch.compiler.is_compiling() or heads * queries * keys < TILE:
        return [(WHOLE, WHOLE, WHOLE)]
    height = max(TILE // (heads * keys), LEAST_QUERIES)
    bands = [slice(first, first + height) for first in range(0, queries, height)]
    parts = [(slice(row, row + 1), band) for row in range(rows) for band in bands]
    # A query that may see no key sees all of them.
    if mask is None or not mask.any(-1).all():
        return [(row, band, WHOLE) for row, band in parts]
    seen = torch.stack([mask[:, 0, band].any(1) for band in bands], 1).flatten(0, 1).byte()
    before, behind = seen.argmax(1).tolist(), seen.flip(1).argmax(1).tolist()
    return [
        (row, band, slice(first, keys - last))
        for (row, band), first, last in zip(parts, before, behind, strict=True)
    ]


def _flat(x: Tensor, row: slice, tokens: slice) -> Tensor:
    """A part of [B, H, T, d] as [b * H, t, d]; of one sentence it is a view."""
    return x[row, :, tokens].flatten(0, 1)


def _of_row(x: Tensor, row: slice) -> Tensor:
    """A part of what may be one for all sentences."""
    return x if len(x) == 1 else x[row]


class _TableAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        table: Tensor | None,
        ids: Tensor | None,
        own: Tensor | None,
        mask: Tensor | None,
        hidden: float,
        dropout: float,
    ) -> Tensor:
        ctx.tiles = tiles(q, k, mask)
        ctx.size = 0 if table is None else table.shape[1]
        if table is not None and mask is not None:
            table = torch.cat([table, table.new_full((len(table), 1), hidden)], 1)
        # Heads beside each other, as the layer after it wants them.
        output = q.new_empty(len(q), q.shape[2], q.shape[1], v.shape[3]).transpose(1, 2)
        stored = []
        for row, band, keys in ctx.tiles:
            queries, known = _flat(q, row, band), _flat(k, row, keys).transpose(1, 2)
            shape = (-1, q.shape[1], queries.shape[1], known.shape[2])
            seen = None if mask is None else mask[row, :, band, keys]
            if ids is None or table is None:
                logits = torch.bmm(queries, known)
            else:
                index = ids[row, band, keys].to(torch.long, copy=True)
                if seen is not None:
                    index.masked_fill_(~seen[:, 0], ctx.size)
                by_id = table[None, :, None].expand(len(index), -1, shape[2], -1)
                logits = by_id.gather(3, index.unsqueeze(1).expand(shape)).flatten(0, 1)
                logits.baddbmm_(queries, known)
            if own is not None:
                logits.view(shape).add_(_of_row(own, row)[:, :, band, keys])
            if seen is not None and ids is None:
                logits.view(shape).masked_fill_(~seen, hidden)
            weights = softmax(logits)
            kept = drop(weights, dropout) if dropout else weights
            attended = torch.bmm(kept, _flat(v, row, keys)).unflatten(0, (-1, q.shape[1]))
            if len(ctx.tiles) == 1:
                output = attended
            else:
                output[row, :, band] = attended
            stored += [weights, kept]
        empty = None if mask is None else ~mask.any(-1, keepdim=True)
        ctx.save_for_backward(q, k, v, ids, own, empty, output, *stored)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, ids, own, empty, output, *stored = ctx.saved_tensors
        # Of one type with q, also where mixed precision computed the output: products in place are not cast.
        gradient = gradient.to(q.dtype)
        # A row's sum of weights times their gradients is that of the output times its gradient.
        sums = (gradient * output).sum(-1, keepdim=True)
        # Compiled code cannot look first; it is no work there.
        if empty is not None and not torch.compiler.is_compiling() and not empty.any():
            empty = None
        several = len(ctx.tiles) > 1  # tiles, whose parts add up
        of_q = q.new_empty(q.shape)
        of_k, of_v = (x.new_zeros(x.shape) if several else x.new_empty(x.shape) for x in (k, v))
        slots = SLOTS if ctx.size * SLOTS <= MOST_SUMS else 1
        slot = torch.arange(k.shape[2], device=q.device) % slots * ctx.size
        by_slot = None
        of_own = torch.zeros_like(own) if ctx.needs_input_grad[5] else None
        for (row, band, keys), weights, kept in zip(
            ctx.tiles, stored[::2], stored[1::2], strict=True
        ):
            weights, kept = weights.to(q.dtype), kept.to(q.dtype)
            above, values = _flat(gradient, row, band), _flat(v, row, keys).transpose(1, 2)
            of_logits = above.new_empty(weights.shape).baddbmm_(above, values, beta=0)
            of_logits.mul_(kept).addcmul_(weights, _flat(sums, row, band), value=-1)
            by_pair = of_logits.unflatten(0, (-1, q.shape[1]))
            if empty is not None:
                # There is nothing to learn from whoever sees all keys because it may see none.
                by_pair.masked_fill_(empty[row, :, band], 0)
            _flat(of_q, row, band).baddbmm_(of_logits, _flat(k, row, keys), beta=0)
            for x, one, other in ((of_k, of_logits, _flat(q, row, band)), (of_v, kept, above)):
                _flat(x, row, keys).baddbmm_(one.transpose(1, 2), other, beta=int(several))
            if ctx.size:
                if by_slot is None:  # the first tile is the highest
                    by_slot = q.new_zeros(*by_pair.shape[:3], slots * ctx.size)
                index = (ids[row, band, keys] + slot[keys]).unsqueeze(1).expand(by_pair.shape)
                by_slot[:, :, : by_pair.shape[2]].scatter_add_(3, index, by_pair)
            if of_own is not None:
                alike = by_pair if len(of_own) > 1 else by_pair.sum(0, keepdim=True)
                _of_row(of_own, row)[:, :, band, keys].add_(alike)
        of_table = None
        if by_slot is not None:
            of_table = by_slot.unflatten(3, (slots, ctx.size)).sum((0, 2, 3))
        return of_q, of_k, of_v, of_table, None, of_own, None, None, None
