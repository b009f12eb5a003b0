"""States that are to keep constituents apart from what stands before them."""

from __future__ import annotations

import torch
from torch import Tensor

from treesyntax.nn.coordinates import depth, last_descendant, root
from treesyntax.nn.devices import full_precision
from treesyntax.nn.injection import LayerStates, register
from treesyntax.nn.supervision import HeadLoss
from treesyntax.nn.tree_batch import TreeBatch


@register("tree_reg")
class TreeReg(HeadLoss):
    """A loss in training: a constituent should fall apart where its children meet.

    TreeReg (Nandi, Manning & Murty 2025). A span is independent of its context if its last state is
    orthogonal to the state before it, and the state after it to its last one. So the score of
    splitting the span i … j after token b is ``|orth(h_b, h_i-1)| + |orth(h_b+1, h_b)| + |orth(h_j,
    h_b)| + |orth(h_j+1, h_j)|`` with ``orth(x, y) = x - (x'y / y'y) y``.

    The loss is the cross-entropy of the right split against all splits of the span, summed over
    constituents. Without a state before the span that part is 0. The last part is the same for all
    splits, so it is left out.

    The paper's trees are binary. Here a split between any two children of a node, or beside its own
    token, is right. The loss is minus the logarithm of what all right ones get together, which for
    binary trees is the paper's. Nodes over fewer than three tokens, or a stretch with gaps, have none.

    Further deviations: h are channels of what a layer gives, where the paper takes what some of its
    heads give. The model sees both sides of a token, where the paper's are causal. Subwords count as
    words. Constituents are summed, not averaged.

    Args:
        site: where the method is built in.
        layer: which layer, counted from 1.
        heads: how many heads wide h is, from the first channel.
        weight: factor of the loss.
    """

    paper = "Nandi, Manning & Murty 2025 (TreeReg)"
    equation = "loss + weight * sum over spans of -log softmax_b(score(i, b, j)) at the right b"
    cost = (
        "products of all pairs of states of a layer in training, and a score for each node and split; "
        "a whole step of width 128 took 1.0 to 1.1 times the plain one at 64 and 512 "
        "tokens, on a busy machine; nothing afterwards"
    )
    linearization = "words"

    def leaks_future(self) -> str:
        """It is about whole trees."""
        return "supervises states with the whole tree"

    def loss(self, layer: int, states: LayerStates, tree: TreeBatch) -> Tensor | None:
        """The sum over constituents in what its layer gives."""
        if layer != self.layer:
            return None
        h = states.outputs[..., : self.heads * (self.site.d_model // self.site.heads)]
        h = h.to(torch.promote_types(h.dtype, torch.float32))
        if h.shape[1] < 2:  # nothing to split
            return h.sum() * 0
        with full_precision(h.device):
            apart = orthogonal_norms(h)
        first, last, inside, right = splits(tree)
        context, width = (first - 1).clamp(min=0), apart.shape[1]
        before = tree.at_tokens(root(tree)).gather(1, context)
        known = (before == root(tree)) & (first > 0)
        from_context = apart.gather(1, context.unsqueeze(2).expand(-1, -1, width))
        from_context = from_context * known.unsqueeze(2)
        of_last = apart.gather(2, last.unsqueeze(1).expand(-1, width, -1)).transpose(1, 2)
        of_next = apart.diagonal(offset=1, dim1=1, dim2=2).unsqueeze(1)
        scores = from_context[..., :-1] + of_next + of_last[..., :-1]
        low = torch.finfo(scores.dtype).min
        of_inside, of_right = (
            scores.masked_fill(~mask, low).logsumexp(2) for mask in (inside, right)
        )
        return self.weight * (of_inside - of_right).masked_fill(~right.any(2), 0).sum()


def orthogonal_norms(h: Tensor) -> Tensor:
    """[B, T, T] of states [B, T, d]: the norm of the part of h_y (column) orthogonal to h_x (row)."""
    tiny = torch.finfo(h.dtype).tiny
    products = h @ h.transpose(1, 2)
    squares = products.diagonal(dim1=1, dim2=2)
    along = products.square() / squares.clamp(min=tiny).unsqueeze(2)
    return (squares.unsqueeze(1) - along).clamp(min=tiny).sqrt()


def splits(tree: TreeBatch) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The spans of nodes over tokens, and where they can be split.

    Returns:
        The first and the last token under each node, LongTensors [B, N]; and bool [B, N, T - 1]:
        whether tokens b and b + 1 are both under the node, and whether a split there is right. Nodes
        over fewer than three tokens, or with gaps, have no splits.
    """
    node, width = tree.token_node.unsqueeze(1), tree.token_node.shape[1]
    nodes = torch.arange(tree.parent.shape[1], device=node.device).unsqueeze(1)
    under = (nodes <= node) & (node <= last_descendant(tree).unsqueeze(2))
    columns = torch.arange(width, device=node.device)
    first = columns.masked_fill(~under, width).amin(2).clamp(max=width - 1)
    last = columns.masked_fill(~under, 0).amax(2)
    count = under.sum(2)
    whole = (last - first + 1 == count) & (count > 2)
    inside = under[..., :-1] & under[..., 1:]
    # Two tokens part in the deepest node over both.
    depths = depth(tree).unsqueeze(2)
    parting = depths.masked_fill(~inside, -1).amax(1, keepdim=True)
    right = inside & (depths == parting) & (node[..., :-1] != node[..., 1:])
    return first, last, inside & whole.unsqueeze(2), right & whole.unsqueeze(2)
