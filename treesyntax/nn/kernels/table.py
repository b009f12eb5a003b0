"""Attention with one learned bias by relation id, or none, forward and backward in as few passes as possible.

On a CPU PyTorch's fused kernel has no gradient of a bias and no dropout, and autograd keeps and walks five tensors
of the size of the weights. Here it is two: the bias is read where the logits are summed up, a mask is one
more relation id, and the gradient of the logits is made in place. Long sentences go tile by tile, and keys that
none of a tile's queries may see are left out. Weights are kept for the backward pass while they are few: to compute
them again takes a product of matrices, a lookup and a softmax. Many new ones take as long to write as to compute.

Two neighbouring keys are looked up together where that makes few kinds of pairs. Their biases are the parts of a complex
number, which takes as long to read or to add as a real one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from treesyntax.nn.dropout import drop
from treesyntax.nn.kernels.derivatives import differentiable_once
from treesyntax.nn.kernels.lookup import as_bytes, for_all_layers
from treesyntax.nn.kernels.softmax import softmax

SLOTS = 4
"""Sums kept apart for neighbouring keys: they often have the same id, and each sum waits for the last."""
MOST_SUMS = 1 << 10
"""Entries of a head's table that stay in the fastest memory, copies for slots included."""
WEIGHTS_A_SUM = 4
"""Of a sentence and head, from which on keys are looked up two by two: more kinds have more sums to clear and add."""
WHOLE_BATCH = 1 << 17
"""Weights of a sentence below which all sentences are computed at once."""
TILE = 1 << 20
"""Most weights of a tile, 4 MiB. Operators cost more on many small tiles than memory does on few."""
NARROW = 1 << 18
"""Weights of a tile where its queries may leave keys out."""
LEAST_QUERIES = 128
"""Of a tile; products of matrices with fewer rows are slow."""
LEFT_OUT = 0.2
"""The share of weights that must be left out for narrow tiles to pay."""

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
    model_logits: Tensor | None = None,
) -> Tensor:
    """``softmax(q·k / sqrt(d) + table[h, id] + model_logits) v``.

    Args:
        q: [B, H, Q, d].
        k: [B, G, K, d]; each of the G heads serves H / G neighbouring ones of ``q``.
        v: [B, G, K, d].
        mask: bool that broadcasts to [B, 1, Q, K], True = attend; None for all.
        ids: relation ids, integers [B or 1, Q, K]; None without a table.
        table: [H, R]; None for no bias by id.
        hidden: the bias of a key that must not be attended to.
        dropout: probability of dropping an attention weight.
        model_logits: logits that a model has of its own, [B or 1, H, Q, K].

    Returns:
        [B, H, Q, d].
    """
    if ids is None or table is None:
        ids = table = plan = None
    elif torch.compiler.is_compiling():
        plan = None  # it takes tensors alone
    else:
        size = table.shape[1] + 1
        plan = for_all_layers(
            ids, mask, (*q.shape[:3], k.shape[2], size), lambda: _plan(q, k, mask, ids, size)
        )
    return _TableAttention.apply(q, k, v, table, model_logits, ids, mask, plan, hidden, dropout)


@dataclass(frozen=True)
class _Plan:
    """How the pairs of a batch are computed, the same in all layers.

    Attributes:
        tiles: what is computed at once.
        empty: bool [B or 1, 1, Q, 1], which queries may see no key; None if there is none.
        mask: bool [B or 1, 1, Q, K]; None if all keys are seen, or there are ids, which say it.
        group: neighbouring keys that are looked up together, 1 or 2.
        slots: copies of the table, for neighbouring groups.
        index: for each tile, where its groups are in the copies, int64 [b, H, q * k / group], one for all heads;
            None without ids.
    """

    tiles: Tiles
    empty: Tensor | None
    mask: Tensor | None
    group: int
    slots: int
    index: list[Tensor] | None

    def table(self, table: Tensor, hidden: float) -> Tensor:
        """[H, R] as it is looked up, [H, slots * (R + 1) ** group]; the last id is that of hidden keys."""
        table = torch.cat([table, table.new_full((len(table), 1), hidden)], 1)
        if self.group == 2:
            both = torch.broadcast_tensors(table.unsqueeze(2), table.unsqueeze(1))
            table = torch.view_as_complex(torch.stack(both, 3)).flatten(1)
        return table.repeat(1, self.slots)

    def sums(self, total: Tensor, size: int) -> Tensor:
        """The gradient [H, R] of the table from that of what :meth:`table` made of it."""
        total = total.unflatten(1, (self.slots, -1)).sum(1)
        if self.group == 2:
            pairs = torch.view_as_real(total).unflatten(1, (size + 1, size + 1))
            total = pairs[..., 0].sum(2) + pairs[..., 1].sum(1)
        return total[:, :size]

    def grouped(self, pairs: Tensor, like: Tensor) -> Tensor:
        """Numbers of pairs [b, H, q, k] as those of groups, in the shape of their index."""
        if self.group == 2:
            return torch.view_as_complex(pairs.view(*like.shape, 2))
        return pairs.view(like.shape)


def _plan(q: Tensor, k: Tensor, mask: Tensor | None, ids: Tensor | None, size: int) -> _Plan:
    count, keys = q.shape[2], k.shape[2]
    if mask is not None:
        mask = mask.expand(-1, 1, count, keys)
    # On bytes: operators on booleans and choices by them are ten times as slow.
    seen = None if mask is None else as_bytes(mask)
    # No keys at all give zeros.
    empty = None if seen is None or not keys else seen.amax(-1, keepdim=True) == 0
    # Compiled code cannot look first; it is no work there.
    if empty is not None and not torch.compiler.is_compiling() and not empty.any():
        empty = None
    tiled = tiles(q, k, mask, empty)
    if ids is None:
        return _Plan(tiled, empty, mask, 1, 1, None)
    pairwise = (
        not keys % 2
        and size**2 <= min(MOST_SUMS, count * keys // (SLOTS * WEIGHTS_A_SUM))
        and not torch.compiler.is_compiling()
    )
    group = 1 + pairwise
    slots = SLOTS if size**group * SLOTS <= MOST_SUMS else 1
    codes = _holding(ids.expand(-1, count, keys), size)
    if seen is not None:
        codes = (codes - (size - 1)) * seen[:, 0] + (size - 1)  # small types wrap around and back
    codes = _holding(codes, slots * size**group)
    if group == 2:
        codes = codes[..., ::2] * size + codes[..., 1::2]
    slot = torch.arange(codes.shape[2], device=q.device) % slots * size**group
    codes = codes + slot.to(codes.dtype)
    index = []
    for row, ends in tiled:
        for band, seen_keys in ends:
            positions = _of_row(codes, row)[:, band, _grouped(seen_keys, group)].long().flatten(1)
            index.append(positions.unsqueeze(1).expand(len(q[row]), q.shape[1], -1))
    return _Plan(tiled, empty, None, group, slots, index)


def _holding(codes: Tensor, size: int) -> Tensor:
    """Integers in a type that holds numbers up to a size as well, the smallest if theirs does not."""
    types = (codes.dtype, torch.int16, torch.int32)
    return codes.to(next(kind for kind in types if torch.iinfo(kind).max >= size))


def _grouped(keys: slice, group: int) -> slice:
    return keys if keys == WHOLE else slice(keys.start // group, keys.stop // group)


def tiles(q: Tensor, k: Tensor, mask: Tensor | None, empty: Tensor | None) -> Tiles:
    """What is computed at once, with the keys that queries of a tile may see.

    Args:
        q: [B, H, Q, d].
        k: [B, G, K, d].
        mask: bool [B or 1, 1, Q, K], True = attend; None for all.
        empty: bool, which queries may see no key; None if there is none.
    """
    (rows, heads, queries, _), keys = q.shape, k.shape[2]
    if torch.compiler.is_compiling() or heads * queries * keys < WHOLE_BATCH or not rows:
        return [(WHOLE, [(WHOLE, WHOLE)])]
    wide, narrow = (_bands(queries, size // (heads * keys)) for size in (TILE, NARROW))
    sentences = [slice(row, row + 1) for row in range(rows)]
    # A query that may see no key sees all of them.
    if mask is None or empty is not None:
        return [(row, [(band, slice(0, keys)) for band in wide]) for row in sentences]
    bits = as_bytes(mask)
    choices = []
    for bands in (wide, narrow):
        seen = torch.stack([bits[:, 0, band].amax(1) for band in bands], 1)
        # Keys that are looked up together stay together.
        starts = seen.argmax(2) // 2 * 2
        ends = keys - seen.flip(2).argmax(2)
        ends = torch.stack([starts, (ends + ends % 2).clamp(max=keys)], 2).expand(rows, -1, -1)
        choices.append(
            [
                [(band, slice(*pair)) for band, pair in zip(bands, pairs, strict=True)]
                for pairs in ends.tolist()
            ]
        )
    return [
        (row, fine if _weights(fine) <= (1 - LEFT_OUT) * _weights(coarse) else coarse)
        for row, coarse, fine in zip(sentences, *choices, strict=True)
    ]


def _bands(queries: int, height: int) -> list[slice]:
    """Queries of each tile."""
    height = max(height, LEAST_QUERIES)
    return [slice(first, min(first + height, queries)) for first in range(0, queries, height)]


def _weights(areas: list[tuple[slice, slice]]) -> int:
    """Of a head, in some tiles."""
    return sum((band.stop - band.start) * (keys.stop - keys.start) for band, keys in areas)


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
        table: what :meth:`_Plan.table` made; None for no bias by id.
        plan: of the batch.
    """

    def __init__(
        self,
        row: slice,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        table: Tensor | None,
        model_logits: Tensor | None,
        plan: _Plan,
        hidden: float,
    ) -> None:
        self.plan, self.hidden = plan, hidden
        self.q, self.k, self.v = q[row], k[row].flatten(0, 1), v[row].flatten(0, 1)
        self.across_k, self.across_v = self.k.transpose(1, 2), self.v.transpose(1, 2)
        self.table = None if table is None else table.expand(len(self.q), -1, -1)
        self.mask, self.model_logits = (
            None if x is None else _of_row(x, row) for x in (plan.mask, model_logits)
        )
        self.scale, self.shared = q.shape[3] ** -0.5, q.shape[1] // k.shape[1]

    def of_band(self, x: Tensor, band: slice) -> Tensor:
        """Rows of queries [b, H, Q, d] that meet the same keys, [b * G, H / G * q, d]."""
        queries = x[:, :, band]
        return queries.reshape(len(self.k), queries.shape[2] * self.shared, x.shape[3])

    def write(self, x: Tensor, band: slice, by_row: Tensor, values: Tensor, scale: float) -> None:
        """Products of matrices to rows of queries, where they come from and go to as in :meth:`of_band`."""
        target = x[:, :, band]
        if band != WHOLE and self.shared == 1:
            target[0].baddbmm_(by_row, values, beta=0, alpha=scale)
        else:
            product = torch.bmm(by_row, values)
            product = product if scale == 1 else product.mul_(scale)
            target.copy_(product.view(target.shape))

    def weights(
        self, queries: Tensor, band: slice, keys: slice, index: Tensor | None, memory: Tensor | None
    ) -> Tensor:
        """The attention weights [b, H, q, k] of a tile, in some memory or in new one."""
        known = self.across_k[:, :, keys]
        rows, heads = self.q.shape[:2]
        shape = (rows, heads, queries.shape[1] // self.shared, known.shape[2])
        pairs = _room(queries, shape, memory)
        logits = pairs.view(*queries.shape[:2], shape[3])
        if index is None or self.table is None:
            logits.baddbmm_(queries, known, beta=0, alpha=self.scale)
        else:
            torch.gather(self.table, 2, index, out=self.plan.grouped(pairs, index))
            logits.baddbmm_(queries, known, alpha=self.scale)
        if self.model_logits is not None:
            pairs.add_(self.model_logits[:, :, band, keys])
        if self.mask is not None:
            pairs.masked_fill_(~self.mask[:, :, band, keys], self.hidden)
        return softmax(pairs) if band == WHOLE else torch.softmax(pairs, -1, out=pairs)


class _TableAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        table: Tensor | None,
        model_logits: Tensor | None,
        ids: Tensor | None,
        mask: Tensor | None,
        plan: _Plan | None,
        hidden: float,
        dropout: float,
    ) -> Tensor:
        plan = plan or _plan(q, k, mask, ids, 0 if table is None else table.shape[1] + 1)
        several = plan.tiles[0][0] != WHOLE
        ctx.layout = plan.tiles, plan.group, plan.slots
        ctx.hidden, ctx.drops = hidden, dropout > 0
        ctx.keeps = ctx.drops or not several or q.shape[:3].numel() * k.shape[2] <= KEPT
        ctx.size = 0 if table is None else table.shape[1]
        by_group = None if table is None else plan.table(table, hidden)
        memory = None if ctx.keeps else q.new_empty(_largest(plan.tiles, q))
        # Heads beside each other, as the layer after it wants them.
        output = q.new_empty(len(q), q.shape[2], q.shape[1], v.shape[3]).transpose(1, 2)
        stored, indices = [], iter(plan.index or ())
        for row, areas in plan.tiles:
            sentences = _Sentences(row, q, k, v, by_group, model_logits, plan, hidden)
            of_sentences = output[row]
            for band, keys in areas:
                queries = sentences.of_band(sentences.q, band)
                weights = sentences.weights(queries, band, keys, next(indices, None), memory)
                kept = drop(weights, dropout) if dropout else weights
                by_row = kept.view(*queries.shape[:2], kept.shape[3])
                sentences.write(of_sentences, band, by_row, sentences.v[:, keys], 1)
                if ctx.keeps:
                    stored += [weights, kept] if dropout else [weights]
        index = plan.index or []
        ctx.indices = len(index)
        ctx.save_for_backward(
            q, k, v, by_group, model_logits, plan.empty, plan.mask, *index, *stored
        )
        return output

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, table, model_logits, empty, mask, *rest = ctx.saved_tensors
        tiles, group, slots = ctx.layout
        plan = _Plan(tiles, empty, mask, group, slots, rest[: ctx.indices])
        stored, scale = iter(rest[ctx.indices :]), q.shape[3] ** -0.5
        indices = iter(rest[: ctx.indices])
        softmax_backward = torch.ops.aten._softmax_backward_data.out
        # Of one type with q, also where mixed precision computed the output: products in place are not cast.
        gradient = gradient.to(q.dtype)
        several = plan.tiles[0][0] != WHOLE  # tiles, whose parts add up
        count = 1 if ctx.keeps else 2
        memory = [q.new_empty(_largest(plan.tiles, q)) if several else None for _ in range(count)]
        # Beside each other in memory where what they are gradients of is.
        of_q = torch.empty_like(q)
        of_k, of_v = (torch.zeros_like(x) if several else x.new_empty(x.shape) for x in (k, v))
        total = None if table is None else torch.zeros_like(table)
        of_model_logits = torch.zeros_like(model_logits) if ctx.needs_input_grad[4] else None
        for row, areas in plan.tiles:
            sentences = _Sentences(row, q, k, v, table, model_logits, plan, ctx.hidden)
            to_q, to_k, to_v = of_q[row], of_k[row].flatten(0, 1), of_v[row].flatten(0, 1)
            sentence_gradient = gradient[row]
            sums = None  # of each sentence apart: long sums in single precision are inexact
            for band, keys in areas:
                queries, index = sentences.of_band(sentences.q, band), next(indices, None)
                if ctx.keeps:
                    weights = next(stored).to(q.dtype)
                else:
                    weights = sentences.weights(queries, band, keys, index, memory[1])
                kept = next(stored).to(q.dtype) if ctx.drops else weights
                band_gradient = sentences.of_band(sentence_gradient, band)
                pairs = _room(q, weights.shape, memory[0])
                of_logits = pairs.view(*band_gradient.shape[:2], pairs.shape[3])
                of_logits.baddbmm_(band_gradient, sentences.across_v[:, :, keys], beta=0)
                if not ctx.drops:
                    softmax_backward(pairs, weights, -1, q.dtype, grad_input=pairs)
                else:
                    pairs.mul_(kept)
                    pairs.addcmul_(weights, pairs.sum(-1, keepdim=True), value=-1)
                if plan.empty is not None:
                    # There is nothing to learn from whoever sees all keys because it may see none.
                    pairs.masked_fill_(_of_row(plan.empty, row)[:, :, band], 0)
                sentences.write(to_q, band, of_logits, sentences.k[:, keys], scale)
                add = {"beta": int(several)}
                to_k[:, keys].baddbmm_(of_logits.transpose(1, 2), queries, **add, alpha=scale)
                by_key = kept.view(of_logits.shape).transpose(1, 2)
                to_v[:, keys].baddbmm_(by_key, band_gradient, **add)
                if index is not None and total is not None:
                    if sums is None:
                        sums = total.new_zeros(*index.shape[:2], total.shape[1])
                    sums.scatter_add_(2, index, plan.grouped(pairs, index))
                if of_model_logits is not None:
                    alike = pairs if len(of_model_logits) > 1 else pairs.sum(0, keepdim=True)
                    _of_row(of_model_logits, row)[:, :, band, keys].add_(alike)
            if sums is not None and total is not None:
                total += sums.sum(0)
        of_table = None if total is None else plan.sums(total, ctx.size)
        return of_q, of_k, of_v, of_table, of_model_logits, None, None, None, None, None


def _largest(sentences: Tiles, q: Tensor) -> int:
    """Weights of the largest tile of a sentence."""
    ends = [(band, keys) for _, areas in sentences for band, keys in areas]
    return q.shape[1] * max((b.stop - b.start) * (k.stop - k.start) for b, k in ends)
