"""Numbers of pairs read from tables by relation id, and summed back to them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import torch
from torch import Tensor

from treesyntax.nn.devices import is_transformed


def for_all_layers(ids: Tensor, mask: Tensor | None, key: Hashable, make: Callable[[], Any]) -> Any:
    """What ``make`` computes from relation ids and a mask, once for all layers that share them.

    It is remembered with the ids and goes with them; a change of either in place makes it anew.

    Args:
        ids: relation ids.
        mask: keys that may be attended to; None for all.
        key: what else it depends on.
        make: gives it.
    """
    given = [ids] if mask is None else [ids, mask]
    if torch.compiler.is_compiling() or is_transformed() or any(x.is_inference() for x in given):
        return make()
    # Views of a mask are as good as itself. The mask is remembered too, or another might take its place in memory.
    full_key = (key, *((x.data_ptr(), x.shape, x.stride(), x._version) for x in given))
    known: dict[Hashable, Any] = ids.__dict__.setdefault("_treesyntax_known", {})
    if full_key not in known:
        known[full_key] = (mask, make())
    return known[full_key][1]


def read_table(by_id: Tensor, index: Tensor) -> Tensor:
    """[B, H, Q, R] read at ids [B, H, Q, K]; its gradient is summed in 32 bits at least.

    On a GPU those sums are atomic additions, not the same to the last bit from run to run.
    """
    exact = torch.promote_types(by_id.dtype, torch.float32)
    return by_id.to(exact).gather(3, index).to(by_id.dtype)


def sums_by_id(weights: Tensor, index: Tensor, size: int) -> Tensor:
    """[B, H, Q, K] summed by ids [B, H, Q, K] to [B, H, Q, R]; the transpose of :func:`read_table`."""
    exact = torch.promote_types(weights.dtype, torch.float32)
    sums = weights.new_zeros(*weights.shape[:3], size, dtype=exact)
    return sums.scatter_add(3, index, weights.to(exact)).to(weights.dtype)


def as_bytes(condition: Tensor) -> Tensor:
    """A condition as numbers, 0 and 1: without a copy, except in compiled code.

    Compilers before PyTorch 2.13 know no such view of a condition, and make no copy of their own.
    """
    return condition.byte() if torch.compiler.is_compiling() else condition.view(torch.uint8)


def padding_bias(dtype: torch.dtype) -> float:
    """The logit of a key that must not be attended to.

    Finite, so that a row of padding alone stays a number; next to a real key its weight is 0.
    """
    return torch.finfo(dtype).min / 2


def clamped(table: Tensor, dtype: torch.dtype) -> Tensor:
    """A table in the type of the queries, without infinities, and far above :func:`padding_bias`.

    exp(20), the bias of a strength of 20, is beyond half precision. Sums of several tables stay
    in range as well.
    """
    most = min(torch.finfo(kind).max for kind in (dtype, table.dtype)) / 16
    return table.clamp(-most, most).to(dtype)
