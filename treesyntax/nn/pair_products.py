"""Products and sums of tiles of pairs, which :mod:`treesyntax.nn.cpu_kernel` is made of."""

from __future__ import annotations

import threading

import torch
from torch import Tensor

CACHED_WEIGHTS = 1 << 21
"""Attention weights computed at once on a CPU: larger tensors leave the cache and come fresh from
the system with every call, which costs more than the arithmetic."""

LANES = 4
"""Sums by code go to that many places in turn. Codes come in long runs, in which each addition
would wait for the one before."""


def products(
    first: Tensor,
    second: Tensor,
    *,
    added: Tensor | None = None,
    into: Tensor | None = None,
    factor: float = 1.0,
) -> Tensor:
    """Matrix products [b, H, m, n] of [b, H, m, d] and [b, H, d, n], times ``factor``.

    They are written into one tensor, or added to another in its place, where there is one.
    """
    left, right = first.flatten(0, 1), second.flatten(0, 1)
    if added is None:
        found = first.new_empty(*first.shape[:3], second.shape[3]) if into is None else into
    else:
        found = added
    flat = found.view(-1, *found.shape[2:])
    flat.baddbmm_(left, right, beta=0 if added is None else 1, alpha=factor)
    return found


class _Buffers(threading.local):
    """Memory of tiles, for each thread and type of number."""

    def __init__(self) -> None:
        self.by_type: dict[torch.dtype, Tensor] = {}


_BUFFERS = _Buffers()


def reused_memory(like: Tensor) -> Tensor:
    """A tensor of this shape with any content, on a CPU in memory that the next call gets again.

    Fresh memory of this size comes from the system page by page, which can cost more than the
    products written into it.
    """
    if like.is_cuda or like.numel() > CACHED_WEIGHTS:
        return torch.empty_like(like)
    buffer = _BUFFERS.by_type.get(like.dtype)
    if buffer is None or len(buffer) < like.numel():
        buffer = _BUFFERS.by_type[like.dtype] = like.new_empty(like.numel())
    return buffer[: like.numel()].view(like.shape)


def by_pair(by_code: Tensor, codes: Tensor) -> Tensor:
    """[b, H, r, R] and codes [b or 1, 1, r or 1, K] to [b, H, r, K]."""
    return by_code.gather(3, codes.long().expand(*by_code.shape[:3], -1))


def sums_by_code(pairs: Tensor, codes: Tensor, size: int) -> Tensor:
    """[b, H, r, K] summed by codes [b or 1, 1, r or 1, K] to [b, H, r, size]."""
    exact = pairs.double() if pairs.dtype == torch.float64 else pairs.float()
    lanes = LANES if LANES * size <= pairs.shape[3] else 1
    lane = torch.arange(pairs.shape[3], device=pairs.device) % lanes * size
    total = exact.new_zeros(*pairs.shape[:3], lanes * size)
    total.scatter_add_(3, (codes.long() + lane).expand_as(pairs), exact)
    return total.unflatten(3, (lanes, size)).sum(3).to(pairs.dtype)


def totals_by_code(pairs: Tensor, codes: Tensor, size: int) -> Tensor:
    """[b, H, r, K] summed by codes [b or 1, 1, r or 1, K] to [H, size].

    On a GPU, where the order in which a scatter-add sums varies, it is a product with one-hot codes.
    """
    if not pairs.is_cuda:
        return sums_by_code(pairs, codes, size).sum((0, 2))
    classes = torch.eye(size, dtype=pairs.dtype, device=pairs.device)
    codes = codes.expand(len(codes), 1, *pairs.shape[2:])
    one_hot = classes.index_select(0, codes.flatten().long()).unflatten(0, (len(codes), -1))
    return (pairs.flatten(2) @ one_hot).sum(0)


def table_gradient(by_code: Tensor, other: Tensor, table: Tensor) -> Tensor:
    """[b, H, r, R] and [b, H, r, d] to the shape of the table, [R, d] or [H, R, d]."""
    product = (by_code.transpose(2, 3) @ other).sum(0)
    return product if table.dim() == 3 else product.sum(0)
