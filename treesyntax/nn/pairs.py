"""Everything that methods add to the pairs of one layer, and attention with it written out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from treesyntax.nn.flex_kernel import ComputedBias
from treesyntax.nn.pair_bias import PairBias, lookup, padding_bias
from treesyntax.nn.pair_vectors import PairVectors


@dataclass(frozen=True)
class Pairs:
    """``softmax((q·(k + a)) scale / sqrt(d) + bias) (v + a')``.

    Attributes:
        biases: added to the logits.
        vectors: added to keys (a) and values (a').
        scales: fixed factors of the logits before biases, float [B or 1, Q, K].
        computed: biases without stored codes; then there is nothing else.
    """

    biases: Sequence[PairBias] = ()
    vectors: Sequence[PairVectors] = ()
    scales: Sequence[Tensor] = ()
    computed: Sequence[ComputedBias] = ()

    @property
    def tables(self) -> list[Tensor | None]:
        """What is learned: the tables of the biases, then keys' and values' of each vector."""
        sides = [side for vectors in self.vectors for side in (vectors.keys, vectors.values)]
        return [*(bias.table for bias in self.biases), *sides]

    def with_tables(self, tables: Sequence[Tensor | None]) -> Pairs:
        """The same pairs with other :attr:`tables`."""
        biases = [
            PairBias(bias.codes, table)
            for bias, table in zip(self.biases, tables[: len(self.biases)], strict=True)
            if table is not None
        ]
        keys, values = tables[len(self.biases) :: 2], tables[len(self.biases) + 1 :: 2]
        vectors = [
            PairVectors(old.codes, key, value)
            for old, key, value in zip(self.vectors, keys, values, strict=True)
        ]
        return replace(self, biases=biases, vectors=vectors)


PLAIN = Pairs()


def attend_literally(
    q: Tensor, k: Tensor, v: Tensor, keep: Tensor | None, pairs: Pairs, factor: Tensor | None
) -> Tensor:
    """The formula of :class:`Pairs` with all weights at once, differentiable any number of times.

    Args:
        q: [B, H, Q, d], already divided by sqrt(d).
        k: [B, H, K, d].
        v: [B, H, K, d].
        keep: as :func:`treesyntax.nn.attention.attend` takes it.
        pairs: what methods add.
        factor: [B, H, Q, K] what dropout multiplies the weights with, or None.
    """
    logits = q @ k.transpose(2, 3)
    for vectors in pairs.vectors:
        if vectors.keys is not None:
            logits = logits + vectors.key_bias(q)
    for scale in pairs.scales:
        logits = logits * scale.unsqueeze(1)
    for bias in pairs.biases:
        logits = logits + lookup(bias.table, bias.codes)
    if keep is not None:
        logits = logits.masked_fill(~keep, padding_bias(q.dtype))
    weights = torch.softmax(logits, -1)
    weights = weights if factor is None else weights * factor
    output = weights @ v
    for vectors in pairs.vectors:
        if vectors.values is not None:
            output = output + vectors.value_sum(weights)
    return output
