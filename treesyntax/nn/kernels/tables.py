"""Attention with several tables by relation id, and sums of weights by id, in as little memory as possible.

By single operations, each table leaves autograd some tensors of the size of the weights: read, added, kept for
the backward pass, and on a CPU every new one costs as much time as what is written into it. Here a few sentences, or the
heads of one, are computed at a time, and their weights are all that is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from treesyntax.nn.dropout import drop
from treesyntax.nn.kernels.derivatives import differentiable_once
from treesyntax.nn.kernels.softmax import softmax

MANY = 1 << 24
"""Weights of a layer from which on this kernel pays, such as 8 heads of 1,500 tokens."""
TILE = 1 << 22
"""Weights computed at once."""


def pays(q: Tensor, k: Tensor) -> bool:
    """Whether this kernel is for such queries and keys: of fewer weights, single operations are as quick."""
    exact = q.device.type == "cpu" and q.dtype in (torch.float32, torch.float64)
    large = q.shape[:3].numel() * k.shape[2] >= MANY
    return exact and large and not torch.compiler.is_compiling()


@dataclass(frozen=True)
class Table:
    """What is read by one relation id.

    Attributes:
        ids: integers [B or 1, Q, K], from 0 to R - 1.
        logits: float [B or 1, H, Q or 1, R], added to the logits; None to read nothing.
        summed: R, to sum the weights by id; 0 for no sums.
    """

    ids: Tensor
    logits: Tensor | None = None
    summed: int = 0


def attend_with_tables(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    tables: Sequence[Table],
    hidden: float,
    dropout: float = 0.0,
) -> tuple[Tensor, list[Tensor | None]]:
    """``softmax(q·k + sum of tables) v``, and the weights summed by id.

    Args:
        q: [B, H, Q, d], scaled.
        k: [B, H, K, d].
        v: [B, H, K, d].
        mask: bool that broadcasts to [B, H, Q, K], True = attend; None for all.
        tables: what is read and summed.
        hidden: the logit of a key that must not be attended to.
        dropout: probability of dropping an attention weight.

    Returns:
        [B, H, Q, d], and for each table [B, H, Q, R], or None without sums.
    """
    plan = _Plan(mask, tuple(table.ids for table in tables), tuple(t.summed for t in tables), hidden, dropout)  # fmt: skip
    output, *sums = _Attention.apply(q, k, v, plan, *(table.logits for table in tables))
    rest = iter(sums)
    return output, [next(rest) if table.summed else None for table in tables]


@dataclass(frozen=True)
class _Plan:
    mask: Tensor | None
    ids: tuple[Tensor, ...]
    summed: tuple[int, ...]
    hidden: float
    dropout: float

    def indices(self, rows: slice, heads: int) -> list[Tensor]:
        """The ids of some sentences as indices [b, h, Q, K] of a tensor [b, h, Q, R]."""
        return [
            _of(ids, rows).long().unsqueeze(1).expand(rows.stop - rows.start, heads, -1, -1)
            for ids in self.ids
        ]

    def unseen(self, rows: slice, heads: slice) -> Tensor | None:
        """Where a key must not be attended to."""
        return None if self.mask is None else ~_of(_of(self.mask, rows), heads, 1)


def _of(x: Tensor, span: slice, dim: int = 0) -> Tensor:
    """A part of a dimension, all of it where it is one for all."""
    return x if x.shape[dim] == 1 else x.narrow(dim, span.start, span.stop - span.start)


def _tiles(shape: tuple[int, ...]) -> Iterator[tuple[slice, list[slice]]]:
    """Sentences, and the heads of each tile of them; weights [B, H, Q, K] in the order of memory."""
    batch, heads, queries, keys = shape
    each = max(queries * keys, 1)
    at_once = max(TILE // (heads * each), 1)
    step = heads if heads * each <= TILE else max(TILE // each, 1)
    for start in range(0, batch, at_once):
        stop = min(start + at_once, batch)
        firsts = range(0, heads, step)
        yield slice(start, stop), [slice(head, min(head + step, heads)) for head in firsts]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, plan: _Plan, *tables: Tensor | None
    ) -> tuple[Tensor, ...]:
        shape = (*q.shape[:3], k.shape[2])
        output = q.new_empty(*q.shape[:3], v.shape[3])
        sums = [q.new_empty(*q.shape[:3], size) if size else None for size in plan.summed]
        tiles: list[Tensor] = []
        for rows, head_slices in _tiles(shape):
            indices = plan.indices(rows, shape[1])
            for heads in head_slices:
                logits = q[rows, heads] @ k[rows, heads].transpose(2, 3)
                for table, index in zip(tables, indices, strict=True):
                    if table is not None:
                        by_id = _of(_of(table, rows), heads, 1)
                        by_id = by_id.expand(*logits.shape[:3], -1)
                        logits += by_id.gather(3, index[:, : logits.shape[1]])
                if (unseen := plan.unseen(rows, heads)) is not None:
                    logits.masked_fill_(unseen, plan.hidden)
                weights = softmax(logits)
                del logits
                kept = drop(weights, plan.dropout) if plan.dropout else weights
                output[rows, heads] = kept @ v[rows, heads]
                for total, index in zip(sums, indices, strict=True):
                    if total is not None:
                        total[rows, heads] = _summed(
                            kept, index[:, : kept.shape[1]], total.shape[3]
                        )
                tiles.append(torch.where(kept > 0, weights, -weights) if plan.dropout else weights)
        ctx.plan, ctx.count = plan, len(tables)
        ctx.save_for_backward(q, k, v, *tables, *tiles)
        return output, *(total for total in sums if total is not None)

    @staticmethod
    @differentiable_once
    def backward(ctx: Any, of_output: Tensor, *of_sums: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, *rest = ctx.saved_tensors
        plan, tables, tiles = ctx.plan, rest[: ctx.count], iter(rest[ctx.count :])
        of_q, of_k, of_v = (torch.empty(x.shape, dtype=x.dtype) for x in (q, k, v))
        of_tables = [
            torch.zeros_like(table) if table is not None and needs_gradient else None
            for table, needs_gradient in zip(tables, ctx.needs_input_grad[4:], strict=True)
        ]
        later = iter(of_sums)
        of_totals = [next(later) if size else None for size in plan.summed]
        for rows, head_slices in _tiles((*q.shape[:3], k.shape[2])):
            indices = plan.indices(rows, q.shape[1])
            for heads in head_slices:
                weights = kept = next(tiles)
                if plan.dropout:  # those that were dropped have a minus sign
                    weights, kept = weights.abs(), weights.clamp(min=0) / (1 - plan.dropout)
                of_tile = of_output[rows, heads]
                of_logits = of_tile @ v[rows, heads].transpose(2, 3)
                for total, index in zip(of_totals, indices, strict=True):
                    if total is not None:
                        of_logits += total[rows, heads].gather(3, index[:, : weights.shape[1]])
                of_logits *= kept
                of_logits.addcmul_(weights, of_logits.sum(3, keepdim=True), value=-1)
                unseen = plan.unseen(rows, heads)
                if unseen is not None and (empty := unseen.all(3, keepdim=True)).any():
                    # Whoever may see no key sees all of them, and there is nothing to learn from it.
                    of_logits.masked_fill_(empty, 0)
                of_q[rows, heads] = of_logits @ k[rows, heads]
                of_k[rows, heads] = of_logits.transpose(2, 3) @ q[rows, heads]
                of_v[rows, heads] = kept.transpose(2, 3) @ of_tile
                for of_table, index in zip(of_tables, indices, strict=True):
                    if of_table is not None:
                        target = _of(_of(of_table, rows), heads, 1)
                        by_id = _summed(of_logits, index[:, : weights.shape[1]], target.shape[3])
                        target += by_id.sum_to_size(target.shape)
        return of_q, of_k, of_v, None, *of_tables


def _summed(weights: Tensor, index: Tensor, size: int) -> Tensor:
    return weights.new_zeros(*weights.shape[:3], size).scatter_add_(3, index, weights)
