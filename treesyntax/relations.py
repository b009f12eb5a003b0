"""Relations between the nodes of two tokens, as small integer codes.

The nine relations of McDonald & Chiang (2021, section 3.1) partition all pairs of nodes, so one
code per pair says everything that nine 0/1 masks say, in a ninth of the memory.
"""

from __future__ import annotations

import torch
from torch import Tensor

from treesyntax.batch import TreeBatch
from treesyntax.coordinates import last_descendant

RELATIONS = (
    "self",
    "parent",
    "child",
    "left_sibling",
    "right_sibling",
    "ancestor",
    "descendant",
    "left_other",
    "right_other",
)
"""Names by code: RELATIONS[code[i, j]] says what i is to j, as in "i is the parent of j"."""

NO_RELATION = len(RELATIONS)
"""Code of pairs in which a token has no node (end of sentence, padding)."""


def tree_relations(tree: TreeBatch) -> Tensor:
    """What the node of token i is to the node of token j.

    Dominance comes from the tree, left and right from the order of the tokens, so the codes serve
    constituency trees in preorder as well as dependency trees in word order. An ancestor is one
    that is not the parent, a descendant one that is not a child.

    Returns:
        uint8 tensor [B, T, T] of codes into :data:`RELATIONS`, or :data:`NO_RELATION`.
    """
    # Half the time goes into comparing pairs: 32-bit numbers halve it.
    node = tree.token_node.int()
    parent = tree.at_tokens(tree.parent, fill=-2).int()
    last = tree.at_tokens(last_descendant(tree)).int()
    first, second = node.unsqueeze(2), node.unsqueeze(1)
    dominates = (first < second) & (second <= last.unsqueeze(2))
    is_parent = first == parent.unsqueeze(1)
    positions = torch.arange(node.shape[1], device=node.device)
    left = (positions.unsqueeze(1) < positions).to(torch.uint8)

    codes = (8 - left).expand(node.shape[0], -1, -1)
    sibling = (parent.unsqueeze(2) == parent.unsqueeze(1)) & (parent >= 0).unsqueeze(1)
    codes = torch.where(sibling, 4 - left, codes)
    down = 5 - 4 * is_parent.to(torch.uint8)
    codes = torch.where(dominates, down, codes)
    codes = torch.where(dominates.transpose(1, 2), down.transpose(1, 2) + 1, codes)
    codes = codes.masked_fill(first == second, 0)
    placed = node >= 0
    return codes.masked_fill(~(placed.unsqueeze(2) & placed.unsqueeze(1)), NO_RELATION)
