"""Attention with one learned bias by relation id, or none, forward and backward in as few passes as possible.

On a CPU PyTorch's fused kernel has no gradient of a bias and no dropout, and autograd keeps and walks five tensors
of the size of the weights. Here it is two: the bias is read where the logits are summed up, a mask is one
more relation id, and the gradient of the logits is made in place. Long sentences go tile by tile, and keys that
none of a tile's queries may see are left out. Weights are kept for the backward pass while they are few: to compute
them again takes a product of matrices, a lookup and a softmax. Many new ones take as long to write as to compute.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from treesyntax.nn.dropout import drop
from treesyntax.nn.kernels.lookup import as_bytes
from treesyntax.nn.kernels.softmax import softmax

SLOTS = 4
"""Sums kept apart for neighbouring keys: they often have the same id, and each sum waits for the last."""
MOST_SUMS = 64
"""Relation ids times slots beyond which slots cost more than they spare."""
TILE = 1 << 17
"""Attention weights of a tile, half a megabyte. Sentences with fewer are computed all at once."""
LEAST_QUERIES = 64
"""Of a tile; products of matrices with fewer rows are slow."""

KEPT = 1 << 24
"""Most weights of a layer that are kept, 64 MiB. Beyond, they are computed again; dropped ones cannot be."""

Tiles = list[tuple[slice, list[tuple[slice, slice]]]]
"""Sentences, with the queries and keys of each of their tiles."""
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
    """``softmax(q·k / sqrt(d) + table[h, id] + own) v``.

    Args:
        q: [B, H, Q, d].
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
        ids = ids.expand(-1, q.shape[2], k.shape[2])
    if mask is not None:
        mask = mask.expand(-1, 1, q.shape[2], k.shape[2])
    return _TableAttention.apply(q, k, v, table, ids, own, mask, hidden, dropout)


def tiles(q: Tensor, k: Tensor, mask: Tensor | None, empty: Tensor | None) -> Tiles:
    """What is computed at once, with the keys that queries of a tile may see.

    Args:
        q: [B, H, Q, d].
        k: [B, H, K, d].
        mask: bool [B or 1, 1, Q, K], True = attend; None for all.
        empty: bool, which queries may see no key; None if there is none.
    """
    (rows, heads, queries, _), keys = q.shape, k.shape[2]
    if torch.compiler.is_compiling() or heads * queries * keys < TILE or not rows:
        return [(WHOLE, [(WHOLE, WHOLE)])]
    height = max(TILE // (heads * keys), LEAST_QUERIES)
    bands = [slice(first, min(first + height, queries)) for first in range(0, queries, height)]
    sentences = [slice(row, row + 1) for row in range(rows)]
    # A query that may see no key sees all of them.
    if mask is None or empty is not None:
        return [(row, [(band, slice(0, keys)) for band in bands]) for row in sentences]
    bits = as_bytes(mask)
    seen = torch.stack([bits[:, 0, band].amax(1) for band in bands], 1)
    ends = torch.stack([seen.argmax(2), keys - seen.flip(2).argmax(2)], 2)
    return [
        (row, [(band, slice(*pair)) for band, pair in zip(bands, pairs, strict=True)])
        for row, pairs in zip(sentences, ends.expand(rows, -1, -1).tolist(), strict=True)
    ]


def _of_row(x: Tensor, row: slice) -> Tensor:
    """A part of what may be one for all sentences."""
    return x if len(x) == 1 else x[row]


def _room(like: Tensor, shape: tuple[int, ...], memory: Tensor | None) -> Tensor:
    """A tensor to write into, new or at the start of some memory."""
    return like.new_empty(shape) if memory is None else memory[: math.prod(shape)].view(shape)


class _Sentences:
    """Some sentences b, and the weights of their tiles.

    Args:
        row: which sentences.
        q: [B, H, Q, d]; the others as in :func:`attend_with_table`.
        table: [H, slots * R + 1], of which the last is the bias of hidden keys; None for no bias by id.
        ids: where pairs are in the table, [B or 1, Q, K]; None without one.
        mask: None if there are ids, which say it.
    """

    def __init__(
        self,
        row: slice,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        table: Tensor | None,
        ids: Tensor | None,
        own: Tensor | None,
        mask: Tensor | None,
        hidden: float,
    ) -> None:
        self.heads, self.table, self.hidden = q.shape[1], table, hidden
        self.q, self.k, self.v = (x[row].flatten(0, 1) for x in (q, k, v))
        self.ids, self.mask, self.own = (
            None if x is None else _of_row(x, row) for x in (ids, mask, own)
        )

    def index(self, band: slice, keys: slice) -> Tensor | None:
        """Where the pairs of a tile are in the table, int64 [b, H, q, k]."""
        if self.ids is None:
            return None
        index = self.ids[:, band, keys].long().unsqueeze(1)
        return index.expand(len(self.q) // self.heads, self.heads, -1, -1)

    def weights(self, band: slice, keys: slice, memory: Tensor | None) -> Tensor:
        """The attention weights [b * H, q, k] of a tile, in some memory or in new one."""
        queries, known = self.q[:, band], self.k[:, keys].transpose(1, 2)
        shape = (len(queries) // self.heads, self.heads, queries.shape[1], known.shape[2])
        pairs, index = _room(queries, shape, memory), self.index(band, keys)
        logits, scale = pairs.flatten(0, 1), queries.shape[2] ** -0.5
        if index is None or self.table is None:
            logits.baddbmm_(queries, known, beta=0, alpha=scale)
        else:
            by_id = self.table[None, :, None].expand(shape[0], -1, shape[2], -1)
            torch.gather(by_id, 3, index, out=pairs)
            logits.baddbmm_(queries, known, alpha=scale)
        if self.own is not None:
            pairs.add_(self.own[:, :, band, keys])
        if self.mask is not None:
            pairs.masked_fill_(~self.mask[:, :, band, keys], self.hidden)
        return softmax(logits) if band == WHOLE else torch.softmax(logits, -1, out=logits)


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
        # On bytes: operators on booleans and choices by them are ten times as slow.
        seen = None if mask is None else as_bytes(mask)
        # No keys at all give zeros.
        empty = None if seen is None or not seen.shape[-1] else seen.amax(-1, keepdim=True) == 0
        # Compiled code cannot look first; it is no work there.
        if empty is not None and not torch.compiler.is_compiling() and not empty.any():
            empty = None
        ctx.tiles, ctx.hidden, ctx.drops = tiles(q, k, mask, empty), hidden, dropout > 0
        ctx.keeps = (
            ctx.drops or ctx.tiles[0][0] == WHOLE or q.shape[:3].numel() * k.shape[2] <= KEPT
        )
        ctx.size = 0 if table is None else table.shape[1]
        ctx.slots = SLOTS if ctx.size * SLOTS <= MOST_SUMS else 1
        if table is not None and ids is not None:
            last = ctx.slots * ctx.size
            slot = torch.arange(k.shape[2], device=q.device) % ctx.slots * ctx.size
            # Small types wrap around and come back.
            slot = (slot - last).to(ids.dtype if last <= torch.iinfo(ids.dtype).max else slot.dtype)
            ids = (ids + slot) * (1 if seen is None else seen[:, 0]) + last
            ids = ids.long() if ctx.keeps else ids
            table = torch.cat(
                [table.repeat(1, ctx.slots), table.new_full((len(table), 1), hidden)], 1
            )
            mask = None
        given = (q, k, v, table, ids, own, mask)
        several = ctx.tiles[0][0] != WHOLE
        memory = None if ctx.keeps else q.new_empty(_largest(ctx.tiles, q))
        # Heads beside each other, as the layer after it wants them.
        output = q.new_empty(len(q), q.shape[2], q.shape[1], v.shape[3]).transpose(1, 2)
        stored = []
        for row, parts in ctx.tiles:
            sentences = _Sentences(row, *given, hidden)
            for band, keys in parts:
                weights = sentences.weights(band, keys, memory)
                kept = drop(weights, dropout) if dropout else weights
                attended = torch.bmm(kept, sentences.v[:, keys]).unflatten(0, (-1, q.shape[1]))
                if several:
                    output[row, :, band] = attended
                else:
                    output = attended
                if ctx.keeps:
                    stored += [weights, kept] if dropout else [weights]
        ctx.save_for_backward(*given, empty, *stored)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, table, ids, own, mask, empty, *rest = ctx.saved_tensors
        stored, scale = iter(rest), q.shape[3] ** -0.5
        softmax_backward = torch.ops.aten._softmax_backward_data.out
        # Of one type with q, also where mixed precision computed the output: products in place are not cast.
        gradient = gradient.to(q.dtype)
        several = ctx.tiles[0][0] != WHOLE  # tiles, whose parts add up
        count = 1 if ctx.keeps else 2
        memory = [q.new_empty(_largest(ctx.tiles, q)) if several else None for _ in range(count)]
        of_q = q.new_empty(q.shape)
        of_k, of_v = (x.new_zeros(x.shape) if several else x.new_empty(x.shape) for x in (k, v))
        by_slot = None
        of_own = torch.zeros_like(own) if ctx.needs_input_grad[5] else None
        for row, parts in ctx.tiles:
            sentences = _Sentences(row, q, k, v, table, ids, own, mask, ctx.hidden)
            above, to_q, to_k, to_v = (x[row].flatten(0, 1) for x in (gradient, of_q, of_k, of_v))
            for band, keys in parts:
                if ctx.keeps:
                    weights = next(stored).to(q.dtype)
                else:
                    weights = sentences.weights(band, keys, memory[1])
                kept = next(stored).to(q.dtype) if ctx.drops else weights
                given, index = above[:, band], sentences.index(band, keys)
                of_logits = _room(q, weights.shape, memory[0])
                of_logits.baddbmm_(given, sentences.v[:, keys].transpose(1, 2), beta=0)
                if not ctx.drops:
                    softmax_backward(of_logits, weights, -1, q.dtype, grad_input=of_logits)
                else:
                    of_logits.mul_(kept)
                    of_logits.addcmul_(weights, of_logits.sum(-1, keepdim=True), value=-1)
                by_pair = of_logits.unflatten(0, (-1, q.shape[1]))
                if empty is not None:
                    # There is nothing to learn from whoever sees all keys because it may see none.
                    by_pair.masked_fill_(_of_row(empty, row)[:, :, band], 0)
                queries = sentences.q[:, band]
                to_q[:, band].baddbmm_(of_logits, sentences.k[:, keys], beta=0, alpha=scale)
                add = {"beta": int(several)}
                to_k[:, keys].baddbmm_(of_logits.transpose(1, 2), queries, **add, alpha=scale)
                to_v[:, keys].baddbmm_(kept.transpose(1, 2), given, **add)
                if index is not None:
                    if by_slot is None:  # the first tile is the highest
                        by_slot = q.new_zeros(*by_pair.shape[:3], table.shape[1])
                    by_slot[:, :, : by_pair.shape[2]].scatter_add_(3, index, by_pair)
                if of_own is not None:
                    alike = by_pair if len(of_own) > 1 else by_pair.sum(0, keepdim=True)
                    _of_row(of_own, row)[:, :, band, keys].add_(alike)
        of_table = None
        if by_slot is not None:
            of_table = by_slot[..., :-1].unflatten(3, (ctx.slots, ctx.size)).sum((0, 2, 3))
        return of_q, of_k, of_v, of_table, None, of_own, None, None, None


def _largest(parts: Tiles, q: Tensor) -> int:
    """Weights of the largest tile of a sentence."""
    ends = [(band, keys) for _, tiles in parts for band, keys in tiles]
    return q.shape[1] * max((b.stop - b.start) * (k.stop - k.start) for b, k in ends)
