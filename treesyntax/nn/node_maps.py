"""Linear maps of queries and keys, one a token: what rotary and algebraic encodings have in common.

A map of the query and of the key makes a logit depend on both nodes, with no number for a pair:
``(M_i q_i)·(M_j k_j)``. So every kernel of attention serves, and the kv cache holds mapped keys. Vectors that
other methods add to the keys of pairs meet queries as they were: a turned one would tell where padding ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from treesyntax.nn.coordinates import doubled_ancestors
from treesyntax.nn.devices import can_be_read, full_precision
from treesyntax.nn.tree_batch import TreeBatch

WIDE = 8
"""Smallest width of the matrices in a product: a processor multiplies one of 8 x 8 in less time than
two of 4 x 4."""


class NodeMap(Protocol):
    """A linear map of queries or keys for each token of a batch."""

    @property
    def last(self) -> bool:
        """Whether it comes after all others, as maps by position do.

        Positions may count padding on the left. Only their differences matter if no other map
        stands between ``(R_i q_i)'(R_j k_j)``.
        """
        ...

    def __call__(self, x: Tensor) -> Tensor:
        """Queries or keys [B, H, T, d], mapped, in their type."""
        ...

    def of(self, columns: slice) -> NodeMap:
        """The maps of some tokens."""
        ...


@dataclass(frozen=True, eq=False)
class Turns:
    """Pairs of channels (0, 1), (2, 3), … turned by angles, as complex numbers of length 1.

    Attributes:
        numbers: complex [B or 1, H or 1, T, d / 2].
        last: as in :class:`NodeMap`.
    """

    numbers: Tensor
    last: bool = False

    @classmethod
    def by(cls, angles: Tensor, last: bool = False) -> Turns:
        """Turns by float angles [B or 1, H or 1, T, d / 2]."""
        return cls(torch.polar(torch.ones_like(angles), angles), last)

    def __call__(self, x: Tensor) -> Tensor:
        """[B, H, T, d]: computed in the type of the angles."""
        wide = x.to(self.numbers.real.dtype).unflatten(3, (-1, 2))
        turned = torch.view_as_complex(wide) * self.numbers
        return torch.view_as_real(turned).flatten(3).to(x.dtype)

    def of(self, columns: slice) -> Turns:
        """The turns of some tokens."""
        return Turns(self.numbers[:, :, columns], self.last)


@dataclass(frozen=True, eq=False)
class Blocks:
    """A block-diagonal matrix for each token; blocks of width b act on channels side by side.

    Attributes:
        matrices: [B, T, H or 1, d / b, b, b], one for all heads or one each.
    """

    matrices: Tensor
    last: bool = False

    def __call__(self, x: Tensor) -> Tensor:
        """[B, H, T, d]: computed in the type of the matrices, also under autocast."""
        blocks, width = self.matrices.shape[3:5]
        wide = x.to(self.matrices.dtype).transpose(1, 2).unflatten(3, (blocks, width))
        with full_precision(x.device):
            if self.matrices.shape[2] == 1:  # heads are rows of one product: y' = x' M'
                rows = wide.transpose(2, 3)
                mapped = (rows @ self.matrices[:, :, 0].transpose(3, 4)).transpose(2, 3)
            else:
                mapped = (self.matrices @ wide.unsqueeze(5)).squeeze(5)
        return mapped.flatten(3).transpose(1, 2).to(x.dtype)

    def of(self, columns: slice) -> Blocks:
        """The matrices of some tokens."""
        return Blocks(self.matrices[:, columns])

    def widened(self) -> Blocks:
        """The same maps with blocks of :data:`WIDE` channels, two or more in one, where they fit."""
        blocks, width = self.matrices.shape[3:5]
        count = WIDE // width
        if count < 2 or WIDE % width or blocks % count:
            return self
        grouped = self.matrices.unflatten(3, (-1, count))
        # [.., count, b, b] to [.., count, b, count, b]: zero but where both counts agree.
        same = torch.eye(count, dtype=grouped.dtype, device=grouped.device)[:, None, :, None]
        return Blocks((grouped.unsqueeze(6) * same).flatten(6, 7).flatten(4, 5))


@dataclass(frozen=True, eq=False)
class InTurn:
    """Several maps, the first one first."""

    maps: Sequence[NodeMap]
    last: bool = False

    def __call__(self, x: Tensor) -> Tensor:
        """[B, H, T, d]."""
        for node_map in self.maps:
            x = node_map(x)
        return x

    def of(self, columns: slice) -> InTurn:
        """The maps of some tokens."""
        return InTurn([node_map.of(columns) for node_map in self.maps])


def path_products(tree: TreeBatch, steps: Tensor) -> Tensor:
    """For each node the product of its branches' matrices on the path from the root, first to last.

    Pointer doubling: after r rounds every node has the product of its last 2^r steps. On the CPU it
    stops where no path is longer.

    Args:
        tree: branches must be below ``len(steps)``.
        steps: [degree, …, b, b], a matrix for each branch.

    Returns:
        [B, N, …, b, b], the identity for roots.
    """
    unit = torch.eye(steps.shape[-1], dtype=steps.dtype, device=steps.device)
    matrices = torch.cat([steps, unit.expand_as(steps[:1])])
    product = F.embedding(
        tree.branch.masked_fill(tree.parent < 0, len(steps)), matrices.flatten(1)
    ).unflatten(2, steps.shape[1:])
    for jump, inside in doubled_ancestors(tree.parent):
        if can_be_read(inside) and not bool(inside.any()):
            break
        # Beyond the root stands node 0, a root: the identity.
        product = at_nodes(product, jump) @ product
    return product


def at_nodes(values: Tensor, nodes: Tensor) -> Tensor:
    """Values [B, N, …] of nodes [B, M], [B, M, …]; the gradient is summed row by row."""
    first = torch.arange(len(values), device=values.device).unsqueeze(1) * values.shape[1]
    rows = F.embedding(nodes + first, values.flatten(0, 1).flatten(1))
    return rows.unflatten(2, values.shape[2:])
