"""Learned biases of attention logits, read from small tables by the integer codes of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class PairBias:
    """A bias on attention logits: ``bias[b, h, q, k] = table[h, codes[b, q, k]]``.

    Attributes:
        codes: integer tensor [B, Q, K].
        table: float tensor [H, C].
    """

    codes: Tensor
    table: Tensor


class _Lookup(torch.autograd.Function):
    """table [H, C], codes [B, Q, K] to [B, H, Q, K]; linear in the table, transpose: `_Total`."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, codes: Tensor) -> Tensor:
        ctx.save_for_backward(codes)
        ctx.size = table.shape[1]
        found = table.index_select(1, codes.flatten().long())
        return found.unflatten(1, codes.shape).transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (codes,) = ctx.saved_tensors
        return _Total.apply(grads[0], codes, ctx.size), None


class _Total(torch.autograd.Function):
    """values [B, H, Q, K], codes [B, Q, K] to sums [H, C]; linear, transpose: `_Lookup`.

    A product with one-hot codes, sentence by sentence: a scatter-add over all pairs is 10 times
    slower, and its order of summation varies on a GPU.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, codes: Tensor, size: int) -> Tensor:
        ctx.save_for_backward(codes)
        exact = torch.float64 if values.dtype == torch.float64 else torch.float32
        classes = torch.eye(size, dtype=values.dtype, device=values.device)
        total = torch.zeros(values.shape[1], size, dtype=exact, device=values.device)
        for sentence, sentence_codes in zip(values, codes, strict=True):
            one_hot = classes.index_select(1, sentence_codes.flatten().long())
            total += sentence.flatten(1) @ one_hot.T
        return total.to(values.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (codes,) = ctx.saved_tensors
        return _Lookup.apply(grads[0], codes), None, None


def lookup(table: Tensor, codes: Tensor) -> Tensor:
    """``table[h, codes[b, q, k]]``: [H, C] and integer [B, Q, K] to [B, H, Q, K], differentiable."""
    return _Lookup.apply(table, codes)


def total_bias(
    biases: Sequence[PairBias], keep: Tensor | None, dtype: torch.dtype
) -> Tensor | None:
    """What is added to the logits, or a keep-mask alone where no method has a bias.

    Args:
        biases: one per method.
        keep: bool tensor that broadcasts to [B, 1, Q, K], True = attend, or None for all.
        dtype: of the queries and of the sum.

    Returns:
        [B, H, Q, K] float, or ``keep`` itself, or None.
    """
    if not biases:
        return keep
    tables = [clamped(bias.table, dtype) for bias in biases]
    total = lookup(tables[0], biases[0].codes)
    for table, bias in zip(tables[1:], biases[1:], strict=True):
        total = total + lookup(table, bias.codes)
    if keep is not None:
        total = total.masked_fill(~keep, padding_bias(dtype))
    return total


def padding_bias(dtype: torch.dtype) -> float:
    """The bias of a key that must not be attended to.

    Finite, so that a row of padding alone stays a number; next to a real key its weight is 0.
    """
    return torch.finfo(dtype).min / 2


def clamped(table: Tensor, dtype: torch.dtype) -> Tensor:
    """A table in the type of the queries, without infinities, and far above :func:`padding_bias`.

    exp(20), the bias of a strength of 20, is beyond half precision. Sums of several tables stay
    in range as well.
    """
    most = torch.finfo(dtype).max / 16
    return table.clamp(-most, most).to(dtype)
