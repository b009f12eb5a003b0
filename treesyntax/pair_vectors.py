"""Learned vectors of pairs on the key and value side of attention, chosen by integer codes.

The literal formulas of Shaw et al. (2018, Eqs. 3-4) hold a vector for every pair, [Q, K, d]. But
there are only R different vectors: q·(k + a) = q·k + q·a, where q·a is one of R numbers per
query; and the values' part is a sum over R vectors, each weighted by the attention that all pairs
of its code got together.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class PairVectors:
    """Vectors ``keys[codes[b, q, k]]`` and ``values[codes[b, q, k]]``.

    Attributes:
        codes: int64 tensor [B or 1, Q, K].
        keys: [R, d], or [H, R, d] with a table per head; None adds nothing to the keys.
        values: the same for the values.
    """

    codes: Tensor
    keys: Tensor | None
    values: Tensor | None

    def part(self, sentences: slice, heads: slice) -> PairVectors:
        """What concerns some sentences and heads."""
        codes = self.codes if len(self.codes) == 1 else self.codes[sentences]
        keys, values = (
            table[heads] if table is not None and table.dim() == 3 else table
            for table in (self.keys, self.values)
        )
        return PairVectors(codes, keys, values)

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
        return self.codes.unsqueeze(1).expand(like.shape[0], like.shape[1], -1, -1)
