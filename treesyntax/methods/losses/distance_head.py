"""Heads that learn to attend by distance in the tree."""

from __future__ import annotations

import torch
from torch import Tensor

from treesyntax.nn.injection import LayerStates, register
from treesyntax.nn.relations import path_lengths
from treesyntax.nn.supervision import HeadLoss, out_of_reach
from treesyntax.nn.tree_batch import TreeBatch


@register("distance_head")
class DistanceHead(HeadLoss):
    """A loss in training: each token's attention should fall off with distance in the tree.

    ``KL(s_i || a_i)``, summed over tokens, is added to the loss. ``s_ij`` is proportional to
    ``exp(-d_ij)``, with d_ij the number of edges between the nodes of i and j (tree-planting: Yoshida,
    Someya & Oseki 2024). Of a word's subwords each is a token of its own.

    Tokens without a node are left out, as queries and in s. So are pairs that a mask keeps the head
    from, for which the divergence would be infinite.

    The paper plants trees in causal language models, so that its s ends at i; here it is the whole
    sentence. The direction of the divergence is our reading.

    Args:
        site: where the method is built in.
        layer: which layer, counted from 1.
        heads: how many of its heads, from the first.
        weight: factor of the loss.
    """

    paper = "Yoshida, Someya & Oseki 2024 (tree-planting)"
    equation = "loss + weight * sum_i KL(softmax_j(-d_ij) || a_i)"
    linearization = "words"

    def loss(self, layer: int, states: LayerStates, tree: TreeBatch) -> Tensor | None:
        """The sum of divergences of the heads of its layer."""
        if layer != self.layer:
            return None
        attention = states.log_attention(self.heads)
        lengths = path_lengths(tree).to(attention.dtype).unsqueeze(1)
        apart = (lengths < 0) | out_of_reach(attention)
        wanted = (-lengths).masked_fill(apart, torch.finfo(attention.dtype).min).log_softmax(3)
        divergence = wanted.exp() * (wanted - attention)
        return self.weight * divergence.masked_fill(apart, 0).sum()
