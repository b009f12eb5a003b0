"""Which symbols may be the root, and which may fill each slot of each symbol."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from treesyntax.nn.growth import GrowingTrees

ROOT_ROW = 0
NO_ROW = -1


@dataclass(frozen=True)
class TreeGrammar:
    """Rows of symbols, and the row from which each slot is filled.

    In a left-child-right-sibling form a symbol does not tell which child of its parent it is, but
    the row does from which it was taken. There the slot of the next sibling has the row that
    follows the row of the node itself.

    Attributes:
        fills: bool [R, V], the symbols of each row; row 0 is that of the root.
        row_of_slot: LongTensor [V, S], `NO_ROW` for slots that a symbol does not have or never
            uses, and for those of next siblings where ``next_row`` tells.
        next_row: LongTensor [R], the row of the next sibling of a node of each row, `NO_ROW` where
            there is none; None where symbol and slot determine all rows.
    """

    fills: Tensor
    row_of_slot: Tensor
    next_row: Tensor | None = None


def any_tree(trees: GrowingTrees) -> TreeGrammar:
    """The grammar of all trees: every node symbol fills every slot.

    Roots of left-child-right-sibling forms have no sibling.
    """
    nodes = trees.counts >= 0
    roots = nodes & ~trees.has_sibling if trees.binary else nodes
    return TreeGrammar(torch.stack([roots, nodes]), torch.where(trees.branches >= 0, 1, NO_ROW))
