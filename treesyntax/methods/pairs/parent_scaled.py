"""Attention logits scaled by the distance from the parent's position."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from treesyntax.errors import OptionError
from treesyntax.nn.injection import Injection, Site, register
from treesyntax.nn.relations import by_rows
from treesyntax.nn.tree_batch import TreeBatch


@register("parent_scaled")
class ParentScaled(Injection):
    """Logits multiplied by a normal density around the position of the query's parent.

    ``softmax(QK' / sqrt(d) ∘ D) V`` with ``D_ij = N(j; p_i, sd^2)``, where p_i is the middle of the
    positions of i's parent (Bugliarello & Okazaki 2020, parent-scaled self-attention, PASCAL).

    As there, it takes all heads of the first layer, and the root is its own parent. There is nothing
    to learn. A token without a node stands for its own parent. Parent ignoring, a regulariser,
    leaves random rows unscaled in training, anew for each sentence (there: and head).

    Args:
        site: where the method is built in.
        sd: standard deviation in tokens; the paper's is 1.
        layers: number of first layers that it takes.
        ignore: probability of leaving a token's row unscaled in training.
    """

    paper = "Bugliarello & Okazaki 2020 (PASCAL)"
    needs_slots = True  # the mean position of a node moves with each of its tokens
    equation = "softmax((QK'/sqrt(d)) * N(j; position of i's parent, sd^2))"
    cost = (
        "a product a pair in the first layers; "
        "a whole step of width 128 took 1.00 times the plain one at 64 tokens, 1.02 at 512"
    )
    linearization = "words"

    like: Tensor

    def __init__(self, site: Site, sd: float = 1.0, layers: int = 1, ignore: float = 0.0) -> None:
        """Raises OptionError for numbers out of range."""
        super().__init__(site)
        if sd <= 0 or not 0 <= ignore < 1:
            raise OptionError("parent_scaled: sd must be above 0, ignore from 0 to below 1")
        if not 1 <= layers <= site.layers:
            raise OptionError(f"parent_scaled: layers must be 1 to {site.layers}, not {layers}")
        self.sd, self.layers, self.ignore = sd, layers, ignore
        # Nothing is learned, so this alone says in which type the model is.
        self.register_buffer("like", torch.empty(0), persistent=False)

    def scales_layer(self, layer: int) -> bool:
        """The first layers only."""
        return layer < self.layers

    def pair_scale(self, tree: TreeBatch) -> Tensor:
        """[B, T, T]: the density of position j around the parent of i, at most 0.4 / sd.

        In 32 bits, or 64 if the model has them.
        """
        positions = torch.arange(tree.token_node.shape[1], device=tree.token_node.device)
        exact = torch.promote_types(self.like.dtype, torch.float32)
        parents = parent_positions(tree, exact).unsqueeze(2)

        def scale(rows: slice) -> Tensor:
            distance = (positions - parents[:, rows]) / self.sd
            return torch.exp(distance.square_().mul_(-0.5)) / (self.sd * math.sqrt(2 * math.pi))

        total = by_rows(tree, scale)
        if self.training and self.ignore:
            ignored = torch.rand(total.shape[:2], device=total.device) < self.ignore
            total.masked_fill_(ignored.unsqueeze(2), 1.0)
        return total


def parent_positions(tree: TreeBatch, dtype: torch.dtype = torch.float32) -> Tensor:
    """Float [B, T] of a type: the mean position of the tokens of each token's parent node.

    The root, tokens without a node and children of a node without tokens get their own position.
    """
    width = tree.token_node.shape[1]
    positions = torch.arange(width, device=tree.token_node.device, dtype=dtype)
    positions = positions.expand(tree.token_node.shape)
    placed = (tree.token_node >= 0).to(dtype)
    node = tree.token_node.clamp(min=0)
    zeros = positions.new_zeros(tree.parent.shape)
    count = zeros.scatter_add(1, node, placed)
    middle = zeros.scatter_add(1, node, positions * placed) / count.clamp(min=1)
    parent = tree.at_tokens(tree.parent)
    known = (parent >= 0) & (count.gather(1, parent.clamp(min=0)) > 0)
    return torch.where(known, middle.gather(1, parent.clamp(min=0)), positions)
