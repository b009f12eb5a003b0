"""Heads that learn to attend to the parent."""

from __future__ import annotations

import torch
from torch import Tensor

from treesyntax.nn.injection import LayerStates, register
from treesyntax.nn.supervision import HeadLoss, out_of_reach
from treesyntax.nn.tree_batch import TreeBatch


@register("parent_head")
class ParentHead(HeadLoss):
    """A loss in training: each token's attention should be on its parent.

    ``-log a_t,parent(t)``, summed over tokens, is added to the loss (Strubell et al. 2018, LISA). The
    root attends to itself. A parent of several tokens is its first one. Tokens without a node,
    children of a node without tokens, and tokens that a mask keeps from their parent are left out.

    Deviations: the head has the usual scaled dot product, not a biaffine score. Gold parents are
    not put in place of its weights, in training or after.

    Args:
        site: where the method is built in.
        layer: which layer, counted from 1.
        heads: how many of its heads, from the first.
        weight: factor of the loss.
    """

    paper = "Strubell et al. 2018 (LISA)"
    equation = "loss + weight * sum_t -log a_t,parent(t)"
    linearization = "words"

    def loss(self, layer: int, states: LayerStates, tree: TreeBatch) -> Tensor | None:
        """The sum of cross-entropies of the heads of its layer."""
        if layer != self.layer:
            return None
        target = parent_tokens(tree)
        index = target.clamp(min=0)[:, None, :, None].expand(-1, self.heads, -1, 1)
        chosen = states.log_attention(self.heads).gather(3, index).squeeze(3)
        left_out = (target < 0).unsqueeze(1) | out_of_reach(chosen)
        return -self.weight * chosen.masked_fill(left_out, 0).sum()


def parent_tokens(tree: TreeBatch) -> Tensor:
    """LongTensor [B, T]: the first token of each token's parent node, of the root for the root.

    -1 for tokens without a node, or where the parent has no token.
    """
    width, node = tree.token_node.shape[1], tree.token_node.clamp(min=0)
    columns = torch.arange(width, device=node.device).expand_as(node)
    columns = columns.masked_fill(tree.token_node < 0, width)
    first = torch.full_like(tree.parent, width).scatter_reduce(1, node, columns, "amin")
    parent = tree.parent.gather(1, node)
    parent_token = first.gather(1, torch.where(parent < 0, node, parent))
    return parent_token.masked_fill((parent_token == width) | (tree.token_node < 0), -1)
