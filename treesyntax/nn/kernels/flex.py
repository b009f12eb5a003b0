"""Long inputs on a GPU: relations computed inside the attention kernel, no tensor of n x n at all.

FlexAttention (He et al., PyTorch 2.5 and later) compiles a function of one logit into its kernel.
Ours computes the relation id of a pair from coordinates of its two tokens and reads the bias from a
small table, so memory grows with n. Gradients of the tables are summed by atomic additions, so they
are not the same to the last bit from run to run. It knows neither dropout on weights nor vectors on
the values; such inputs take :func:`treesyntax.nn.pairs.attend_to_pairs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import flex_attention

from treesyntax.nn.kernels.lookup import clamped, padding_bias
from treesyntax.nn.pairs import PairTerm
from treesyntax.nn.tree_batch import TreeBatch

LONG_FROM = 2048
"""Tokens from which on a GPU takes this kernel."""


def is_long(tree: TreeBatch) -> bool:
    """Whether a batch is one for this kernel."""
    return tree.token_node.is_cuda and tree.token_node.shape[1] >= LONG_FROM


def flex_attend(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, terms: Sequence[PairTerm]
) -> Tensor:
    """Scaled dot-product attention with biases whose relation ids are functions of a pair.

    Shapes and arguments as in :func:`treesyntax.nn.attention.attend`; the mask is [B, 1, 1, K].
    """
    tables = [
        (term.ids, clamped(term.bias, q.dtype))
        for term in terms
        if callable(term.ids) and term.bias is not None
    ]
    # Always a mask, and never a view: other kinds of it would be compiled apart.
    keys = (
        q.new_ones(len(q), k.shape[2], dtype=torch.bool) if mask is None else mask[:, 0, 0].clone()
    )
    dtype = q.dtype

    def score(logit: Tensor, b: Tensor, h: Tensor, i: Tensor, j: Tensor) -> Tensor:
        for relation_of, table in tables:
            logit = logit + table[h, relation_of(b, i, j)]
        # A number captured from outside becomes a variable once it differs: that does not compile.
        return torch.where(keys[b, j], logit, padding_bias(dtype))

    return _kernel(q.is_cuda)(q, k, v, score_mod=score)


@cache
def _kernel(fused: bool) -> Any:
    # Without compilation, on a CPU, it is the slow reference, forward only. On a GPU it would take
    # n x n numbers a head; PyTorch falls back to it when it has compiled the function for too many
    # kinds of input, unless told that this is an error.
    return torch.compile(flex_attention, fullgraph=True) if fused else flex_attention
