"""Relative positions of tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from treesyntax.nn.injection import Site, register
from treesyntax.nn.relations import by_rows
from treesyntax.nn.tree_batch import TreeBatch
from treesyntax.nn.vectors import DistanceVectors


@register("relative_position")
class RelativePosition(DistanceVectors):
    """A learned vector for each clipped distance j - i of two tokens, on keys and values.

    ``e_ij = x_i W^Q (x_j W^K + a^K_ij)' / sqrt(d)``, ``z_i = sum_j alpha_ij (x_j W^V + a^V_ij)``
    with ``a_ij = w_clip(j - i, k)`` (Shaw, Uszkoreit & Vaswani 2018, section 3.2). Left and right
    padding do not matter, distances are between tokens.

    Its authors' base model has it in encoder and decoder in place of absolute positions, with k = 16
    and a table for each head: the preset (``relative_position_shaw``).

    Omote et al. 2019, who put it beside relative depth, take k = 2, one table for all heads and keep
    absolute positions: ``relative_position_omote``.

    Args:
        site: where the method is built in.
        clip: largest distance k that has a vector of its own.
        keys: add vectors to the keys.
        values: add vectors to the values.
        per_head: a table for each head instead of one for all.
        absolute: keep absolute positions beside the relative ones.
    """

    name = "relative_position"
    paper = "Shaw, Uszkoreit & Vaswani 2018"
    equation = "k_j + w_clip(j-i), v_j + w'_clip(j-i)"
    cost = (
        "two gathers and two sums by relation id a pair and layer; "
        "a whole step of width 128 took 1.05 times the plain one at 64 tokens, 1.25 at 512"
        " (the price of these gathers)"
    )
    linearization = "words"
    needs_tree = False
    replaces_positions = True
    of_the_paper = ("relative_position_shaw", "relative_position_shaw")

    def __init__(
        self,
        site: Site,
        clip: int = 16,
        keys: bool = True,
        values: bool = True,
        per_head: bool = False,
        absolute: bool = False,
    ) -> None:
        """As its base, with the clip of the paper."""
        super().__init__(site, clip, keys, values, per_head)
        self.replaces_positions = not absolute

    def relation_ids(self, tree: TreeBatch) -> Tensor:
        """Integers [1, T, T]: clip(j - i) + clip."""
        positions = torch.arange(tree.token_node.shape[1], device=tree.token_node.device)
        return by_rows(
            tree, lambda rows: self.clipped(positions - positions[rows].unsqueeze(1)).unsqueeze(0)
        )
