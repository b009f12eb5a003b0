"""Learnable tree-relation attention masks."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from treesyntax.batch import TreeBatch
from treesyntax.injection import Injection, Site, register
from treesyntax.relations import RELATIONS, tree_relations


@register("relation_mask")
class RelationMask(Injection):
    """Nine tree relations, each with a learned strength per layer and head.

    ``softmax(QK^T / sqrt(d) - exp(sum_m s_m M_m))`` with fixed 0/1 masks M_m and learned s_m,
    initialised to 0 (McDonald & Chiang 2021, section 3, Eq. 2). The masks partition all pairs, so
    the sum is the one strength of the pair's relation; pairs that no mask covers (special tokens)
    get -exp(0), as in the formula. A large s forbids a relation, a small one leaves it alone.

    Attributes:
        strengths: [layers, heads, 9], in the order of :data:`treesyntax.relations.RELATIONS`.
    """

    paper = "McDonald & Chiang 2021"
    equation = "softmax(QK'/sqrt(d) - exp(sum_m s_m M_m))"

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self.strengths = nn.Parameter(torch.zeros(site.layers, site.heads, len(RELATIONS)))

    def pair_codes(self, tree: TreeBatch) -> Tensor:
        """uint8 [B, T, T]: the relation of the query's node to the key's node."""
        return tree_relations(tree)

    def bias_table(self, layer: int) -> Tensor:
        """[H, 10]: minus the exponentiated strengths; the last column is for uncovered pairs."""
        uncovered = self.strengths.new_zeros(self.site.heads, 1)
        return -torch.cat([self.strengths[layer], uncovered], dim=1).exp()
