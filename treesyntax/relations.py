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
    # Codes are put together from 0/1 bytes: selecting with torch.where takes ten times as long.
    node = tree.token_node.int()
    parent = tree.at_tokens(tree.parent, fill=-2).int()
    last = tree.at_tokens(last_descendant(tree)).int()
    first, second = node.unsqueeze(2), node.unsqueeze(1)
    above = _byte(first < second) * _byte(second <= last.unsqueeze(2))
    below = _byte(second < first) * _byte(first <= last.unsqueeze(1))
    adjacent = _byte(first == parent.unsqueeze(1)) + _byte(parent.unsqueeze(2) == second)
    same_parent = _byte(parent.unsqueeze(2) == parent.unsqueeze(1))
    positions = torch.arange(node.shape[1], device=node.device)
    left = _byte(positions.unsqueeze(1) < positions)

    aside = (8 - left - 4 * same_parent) * (1 - above - below)
    codes = (aside + 5 * above + 6 * below - 4 * adjacent) * _byte(first != second)
    placed = _byte(node >= 0)
    covered = placed.unsqueeze(2) * placed.unsqueeze(1)
    return codes * covered + NO_RELATION * (1 - covered)


def _byte(condition: Tensor) -> Tensor:
    return condition.view(torch.uint8)
