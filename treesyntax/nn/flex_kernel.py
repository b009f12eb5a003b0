"""Long inputs on a GPU: relations computed inside the attention kernel, no tensor of n x n at all.

FlexAttention (He et al., PyTorch 2.5 and later) compiles a function of one logit into its kernel.
Ours computes the code of a pair from coordinates of its two tokens and looks the bias up in a small
table, so memory grows with n. Gradients of the tables are summed by atomic additions, so they
are not the same to the last bit from run to run. It knows neither dropout on weights nor vectors on
the values; such inputs take the kernel of :mod:`treesyntax.nn.cpu_kernel`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention

from treesyntax.nn.pair_bias import clamped, padding_bias
from treesyntax.nn.tree_batch import TreeBatch

LONG_FROM = 2048
"""Tokens from which on a GPU takes this kernel."""

CodeOf = Callable[[Tensor, Tensor, Tensor], Tensor]
"""The code of a pair from sentence, query position and key position, scalars all of them."""


@dataclass(frozen=True)
class ComputedBias:
    """A bias ``table[h, code_of(b, i, j)]``; the codes are never stored.

    Attributes:
        code_of: the code of a pair.
        table: float tensor [H, C].
    """

    code_of: CodeOf
    table: Tensor


def is_long(tree: TreeBatch) -> bool:
    """Whether a batch is one for this kernel."""
    return tree.token_node.is_cuda and tree.token_node.shape[1] >= LONG_FROM


def flex_attend(
    q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None, biases: Sequence[ComputedBias]
) -> Tensor:
    """Scaled dot-product attention with computed biases.

    Args:
        q: [B, H, Q, d].
        k: [B, H, K, d].
        v: [B, H, K, d].
        keep: bool [B, 1, 1, K], True = attend, or None for all.
        biases: added to the logits.

    Returns:
        [B, H, Q, d].
    """
    tables = [(bias.code_of, clamped(bias.table, q.dtype)) for bias in biases]
    # Always a mask, and never a view: other kinds of it would be compiled apart.
    keys = (
        q.new_ones(len(q), k.shape[2], dtype=torch.bool) if keep is None else keep[:, 0, 0].clone()
    )
    dtype = q.dtype

    def score(logit: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        for code_of, table in tables:
            logit = logit + table[h, code_of(b, i, j)]
        # A number captured from outside becomes a variable once it differs: that does not compile.
        return torch.where(keys[b, j], logit, padding_bias(dtype))

    return _kernel(q.is_cuda)(q, k, v, score_mod=score)


@cache
def _kernel(fused: bool) -> Any:
    # Without compilation, on a CPU, it is the slow reference, forward only. On a GPU it would take
    # n x n numbers a head; PyTorch falls back to it when it has compiled the function for too many
    # kinds of input, unless told that this is an error.
    return torch.compile(flex_attention, fullgraph=True) if fused else flex_attention
