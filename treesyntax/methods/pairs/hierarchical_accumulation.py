"""Values of inner nodes accumulated from what is below them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treesyntax.nn.coordinates import in_one_tree, last_descendant
from treesyntax.nn.devices import full_precision
from treesyntax.nn.injection import Injection, Site, ValueMap, register
from treesyntax.nn.kernels.lookup import as_bytes
from treesyntax.nn.relations import by_rows
from treesyntax.nn.tree_batch import TreeBatch


@register("hierarchical_accumulation")
class HierarchicalAccumulation(Injection):
    """The value of an inner node is a mean over its leaves of means over the paths to them.

    ``v'_i = 1/|L_i| sum over leaves j below i of w_j / |P_ij| sum over t in P_ij of v_t``, with L_i
    the leaves below the node i and P_ij the nodes on the path from i to j, both ends included (Nguyen,
    Joty, Hoi & Socher 2020). In the paper's words: upward cumulative average, then weighted
    aggregation, on the values of each layer and head.

    Leaves keep their values, and queries and keys are those of the nodes themselves. With ``masked``, an
    inner node attends to its subtree and a leaf to leaves, as in the authors' program.

    What differs: words and nonterminals are one sequence of tokens (``preorder``), not two. The paper
    has ``w_j = u'l_j`` and is silent about how u starts; ``w_j = 1 + u'v_j`` starts at the plain
    mean. The hierarchical embeddings, added to ``v_t`` for each leaf below it, are not built
    (compose with an encoding), nor is the decoder's attention to accumulated values.

    A node of several tokens has the mean of theirs. Nodes without a token are left out of paths. Tokens
    without a node keep their values, see all and are seen by all. With ``masked``, the trees of one
    input do not see each other.

    Args:
        site: where the method is built in.
        weighted: learn u; False is the plain mean.
        masked: mask what is not below an inner node, and inner nodes from leaves.

    Attributes:
        weight: [layers, heads, d], the vectors u, starts at 0.
    """

    paper = "Nguyen et al. 2020"
    equation = "v'_i = mean over leaves j below i of w_j * (mean of v_t on the path from i to j)"
    cost = (
        "one product of an n x n matrix with the values a layer, as attention itself has; "
        "a whole step of width 128 took 1.02 times the plain one at 64 tokens, 1.21 at 512"
        " (the price of that product)"
    )

    masks: Tensor
    like: Tensor
    weight: nn.Parameter | None

    def __init__(self, site: Site, weighted: bool = True, masked: bool = True) -> None:
        super().__init__(site)
        self.masked = masked
        masks = torch.tensor([[False, True]] * site.heads)
        self.register_buffer("masks", masks, persistent=False)
        # Tells the type of the model, also where there is no parameter.
        self.register_buffer("like", torch.empty(0), persistent=False)
        shape = (site.layers, site.heads, site.d_model // site.heads)
        self.register_parameter("weight", nn.Parameter(torch.zeros(shape)) if weighted else None)

    def leaks_future(self) -> str:
        """What is below a node comes later."""
        return "sums values of descendants, which come later"

    def relation_ids(self, tree: TreeBatch) -> Tensor | None:
        """uint8 [B, T, T]: 1 for pairs that are masked, else 0."""
        if not self.masked:
            return None
        node = tree.token_node
        last = tree.at_tokens(last_descendant(tree))

        def ids(rows: slice) -> Tensor:
            first, end = node[:, rows].unsqueeze(2), last[:, rows].unsqueeze(2)
            key = node.unsqueeze(1)
            below = (first <= key) & (key <= end)
            leaves = (first == end) & (node == last).unsqueeze(1) & in_one_tree(tree, rows)
            return as_bytes(~(below | leaves | (first < 0) | (key < 0)))

        return by_rows(tree, ids)

    def bias_table(self, layer: int) -> Tensor | None:
        """[H, 2], the same for all layers."""
        if not self.masked:
            return None
        table = torch.zeros(self.masks.shape, device=self.masks.device)
        return table.masked_fill(self.masks, torch.finfo(table.dtype).min)

    def value_map(self, tree: TreeBatch) -> ValueMap:
        """What makes values [B, H, T, d] of a layer those of accumulated nodes."""
        operator = _Accumulation(tree, torch.promote_types(self.like.dtype, torch.float32))

        def accumulated(layer: int, values: Tensor) -> Tensor:
            return operator(values, None if self.weight is None else self.weight[layer])

        return accumulated


class _Accumulation:
    """The linear part of the formula, the same for all layers and heads of a batch."""

    def __init__(self, tree: TreeBatch, dtype: torch.dtype) -> None:
        size = tree.parent.shape[1]
        self.node = tree.token_node.clamp(min=0)
        self.placed = tree.token_node >= 0
        self.last = last_descendant(tree)
        self.parent = tree.parent
        nodes = torch.arange(size, device=self.node.device)
        tokens = self.placed.to(dtype)
        self.count = torch.zeros_like(self.last, dtype=tokens.dtype).scatter_add(
            1, self.node, tokens
        )
        present = (self.count > 0).to(tokens.dtype)
        length = self._along_path(present.unsqueeze(2)).squeeze(2)
        leaf = present * (self.last == nodes)
        inside = (nodes[:, None] <= nodes) & (nodes <= self.last.unsqueeze(2))
        share = inside * leaf.unsqueeze(1)
        # [B, N, N]: 1 / (|L_i| |P_ij|) for the leaves j below i.
        lengths = (length.unsqueeze(1) - self._above(length.unsqueeze(2))).clamp(min=1)
        self.matrix = share / lengths / share.sum(2, keepdim=True).clamp(min=1)
        inner = (self.last > nodes) & (leaf.cumsum(1).gather(1, self.last) > leaf.cumsum(1))
        self.replaced = (inner.gather(1, self.node) & self.placed)[:, None, :, None]

    def _along_path(self, values: Tensor) -> Tensor:
        """[B, N, C] summed over each node and its ancestors: a node adds to the interval of its
        subtree."""
        end = (self.last + 1).unsqueeze(2).expand_as(values)
        steps = torch.cat([values, torch.zeros_like(values[:, :1])], 1)
        return steps.scatter_add(1, end, -values)[:, :-1].cumsum(1)

    def _above(self, sums: Tensor) -> Tensor:
        """[B, N, C] at the parent of each node, 0 for the root."""
        index = self.parent.clamp(min=0).unsqueeze(2).expand_as(sums)
        return sums.gather(1, index) * (self.parent >= 0).unsqueeze(2)

    def __call__(self, values: Tensor, weight: Tensor | None) -> Tensor:
        """[B, H, T, d] to the same."""
        batch, heads, _, width = values.shape
        dtype = torch.promote_types(values.dtype, self.matrix.dtype)
        # [B, T, H * d] to nodes [B, N, H * d].
        flat = values.to(dtype).transpose(1, 2).flatten(2)
        index = self.node.unsqueeze(2).expand_as(flat)
        node_values = flat.new_zeros(batch, self.last.shape[1], heads * width)
        node_values = node_values.scatter_add(1, index, flat * self.placed.unsqueeze(2))
        node_values = node_values / self.count.clamp(min=1).unsqueeze(2)
        paths = self._along_path(node_values)
        by_head = node_values.unflatten(2, (heads, width))
        scale = torch.ones_like(by_head[..., :1])
        if weight is not None:
            scale = scale + (by_head * weight.to(dtype)).sum(3, keepdim=True)
        summed = (paths.unflatten(2, (heads, width)) * scale).flatten(2)
        matrix = self.matrix.to(dtype)
        with full_precision(values.device):  # differences of long sums follow
            both = matrix @ torch.cat([summed, scale.squeeze(3)], 2)
        outside = self._above(paths).unflatten(2, (heads, width)) * both[..., heads * width :, None]
        accumulated = both[..., : heads * width] - outside.flatten(2)
        at_tokens = accumulated.gather(1, index).unflatten(2, (heads, width)).transpose(1, 2)
        return torch.where(self.replaced, at_tokens.to(values.dtype), values)
