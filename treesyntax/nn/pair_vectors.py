"""Learned vectors of pairs on the key and value side of attention, chosen by integer codes.

The literal formulas of Shaw et al. (2018, Eqs. 3-4) hold a vector for every pair, [Q, K, d]. But
there are only R different vectors: q·(k + a) = q·k + q·a, where q·a is one of R numbers per
query; and the values' part is a sum over R vectors, each weighted by the attention that all pairs
of its code got together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class PairVectors:
    """Vectors ``keys[codes[b, q, k]]`` and ``values[codes[b, q, k]]``.

    Attributes:
        codes: integer tensor [B or 1, Q, K].
        keys: [R, d], or [H, R, d] with a table per head; None adds nothing to the keys.
        values: the same for the values.
    """

    codes: Tensor
    keys: Tensor | None
    values: Tensor | None

    @property
    def size(self) -> int:
        """Number R of codes."""
        table = self.values if self.keys is None else self.keys
        assert table is not None
        return table.shape[-2]

    def key_bias(self, queries: Tensor) -> Tensor:
        """What the keys' vectors add to the logits, [B, H, Q, K].

        Args:
            queries: [B, H, Q, d], already divided by sqrt(d).
        """
        assert self.keys is not None
        products = queries @ self.keys.to(queries.dtype).transpose(-1, -2)
        return products.gather(3, self._codes_for(queries))

    def value_sum(self, weights: Tensor) -> Tensor:
        """What the values' vectors add to the output, [B, H, Q, d].

        Args:
            weights: attention weights [B, H, Q, K].
        """
        assert self.values is not None
        shares = weights.new_zeros(*weights.shape[:3], self.values.shape[-2])
        shares = shares.scatter_add(3, self._codes_for(weights), weights)
        return shares @ self.values.to(weights.dtype)

    def _codes_for(self, like: Tensor) -> Tensor:
        return self.codes.long().unsqueeze(1).expand(like.shape[0], like.shape[1], -1, -1)


def merged(all_vectors: Sequence[PairVectors], most: int) -> list[PairVectors]:
    """The same sums with fewer codes to look up: one code for two where that is cheap.

    A pair with codes a and b gets ``keys[a] + other_keys[b]``, so two sets of vectors are one set
    with a vector for each (a, b).

    Args:
        all_vectors: to be added up.
        most: merge while no more codes come of it.
    """
    found: list[PairVectors] = []
    for vectors in all_vectors:
        if found and found[-1].size * vectors.size <= most:
            found[-1] = _product(found[-1], vectors)
        else:
            found.append(vectors)
    return found


def _product(first: PairVectors, second: PairVectors) -> PairVectors:
    wide = torch.uint8 if first.size * second.size <= 256 else torch.int16
    codes = first.codes.to(wide) * second.size + second.codes.to(wide)
    sides = ((first.keys, second.keys), (first.values, second.values))
    keys, values = (_table_sums(*side, first.size, second.size) for side in sides)
    return PairVectors(codes, keys, values)


def _table_sums(
    first: Tensor | None, second: Tensor | None, rows: int, columns: int
) -> Tensor | None:
    """[..., R1, d] and [..., R2, d] to their sums [..., R1 * R2, d]."""
    if first is None:
        return None if second is None else second.tile((rows, 1))
    if second is None:
        return first.repeat_interleave(columns, -2)
    return (first.unsqueeze(-2) + second.unsqueeze(-3)).flatten(-3, -2)
