"""Attention with one learned bias by relation id, or none, forward and backward in as few passes as possible.

On a CPU PyTorch's fused kernel has no gradient of a bias and no dropout, and autograd keeps and walks five tensors
of the size of the weights. Here it is two: the bias is read where the logits are summed up, a mask is one
more relation id, and the gradient of the logits is made in place.
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
    ids = None if ids is None else ids.long()
    if mask is None:
        return _TableAttention.apply(q, k, v, table, ids, own, None, None, hidden, dropout)
    unseen = None
    if ids is None or table is None:
        unseen = ~mask
    else:
        ids = torch.where(mask[:, 0], ids, table.shape[1])
        table = torch.cat([table, table.new_full((len(table), 1), hidden)], 1)
    empty = ~mask[:, 0].any(-1, keepdim=True).expand(-1, q.shape[2], -1)
    return _TableAttention.apply(q, k, v, table, ids, own, unseen, empty, hidden, dropout)


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
        unseen: Tensor | None,
        empty: Tensor | None,
        hidden: float,
        dropout: float,
    ) -> Tensor:
        shape = (*q.shape[:3], k.shape[2])
        queries, keys = q.flatten(0, 1), k.flatten(0, 1).transpose(1, 2)
        if ids is None or table is None:
            logits = torch.bmm(queries, keys)
            if own is not None:
                logits.view(shape).add_(own)
            if unseen is not None:
                logits.view(shape).masked_fill_(unseen, hidden)
        else:
            by_id = table[None, :, None].expand(*q.shape[:3], -1)
            logits = by_id.gather(3, ids.unsqueeze(1).expand(shape))
            if own is not None:
                logits += own
            logits = logits.flatten(0, 1)
            logits.baddbmm_(queries, keys)
        weights = softmax(logits)
        kept = drop(weights, dropout) if dropout else weights
        output = torch.bmm(kept, v.flatten(0, 1)).unflatten(0, q.shape[:2])
        ctx.save_for_backward(q, k, v, ids, empty, weights, kept, output)
        ctx.size = 0 if table is None else table.shape[1]
        ctx.own = 0 if own is None else len(own)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, ids, empty, weights, kept, output = ctx.saved_tensors
        shape, flat = q.shape, gradient.flatten(0, 1)
        # A row's sum of weights times their gradients is that of the output times its gradient.
        sums = (gradient * output).sum(-1, keepdim=True).flatten(0, 1)
        of_logits = torch.bmm(flat, v.flatten(0, 1).transpose(1, 2))
        of_logits.mul_(kept).addcmul_(weights, sums, value=-1)
        by_pair = of_logits.view(*shape[:3], k.shape[2])
        # Compiled code cannot look first; it is no work there.
        if empty is not None and (torch.compiler.is_compiling() or empty.any()):
            # Whoever may see no key sees all of them, and there is nothing to learn from it.
            by_pair.masked_fill_(empty.unsqueeze(1), 0)
        of_own = None
        if ctx.needs_input_grad[5]:
            of_own = by_pair if ctx.own == shape[0] else by_pair.sum(0, keepdim=True)
        return (
            torch.bmm(of_logits, k.flatten(0, 1)).view(shape),
            torch.bmm(of_logits.transpose(1, 2), q.flatten(0, 1)).view(k.shape),
            torch.bmm(kept.transpose(1, 2), flat).view(v.shape),
            _sums(by_pair, ids, ctx.size) if ctx.size else None,
            None,
            of_own,
            *[None] * 4,
        )


def _sums(gradient: Tensor, ids: Tensor, size: int) -> Tensor:
    """[B, H, Q, K] summed by ids [B or 1, Q, K] to [H, R]."""
    slots = SLOTS if size * SLOTS <= MOST_SUMS else 1
    if slots > 1:
        ids = ids + torch.arange(ids.shape[2], device=ids.device) % slots * size
    sums = gradient.new_zeros(*gradient.shape[:3], slots * size)
    sums.scatter_add_(3, ids.unsqueeze(1).expand(gradient.shape), gradient)
    return sums.unflatten(3, (slots, size)).sum((0, 2, 3))
