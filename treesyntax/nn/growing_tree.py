"""The tree that a decoder has grown so far, as the batch of trees that every method takes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.nn.coordinates import doubled_ancestors, undo_left_child_right_sibling
from treesyntax.nn.growth import SlotTable, branches_at, grow
from treesyntax.nn.tree_batch import NO_NODE, TreeBatch

GROWING_LINEARIZATIONS = {
    "nary_dfs": ("dfs", False),
    "nary_bfs": ("bfs", False),
    "lcrs_dfs": ("dfs", True),
    "lcrs_bfs": ("bfs", True),
}
"""The linearizations whose tokens grow a tree: their order, and whether they are of the
left-child-right-sibling form."""


class GrowingTrees(nn.Module):
    """From decoder input of one linearization to the original trees that it has grown.

    Tokens of left-child-right-sibling linearizations grow binary trees, but relations are those
    of the original tree: methods get it back, and whoever wants the binary form makes it again.

    Args:
        symbols: the target dictionary's symbols by id.
        linearization: one of :data:`GROWING_LINEARIZATIONS`.

    Raises:
        OptionError: for any other linearization.
    """

    def __init__(self, symbols: Sequence[str], linearization: str) -> None:
        super().__init__()
        if linearization not in GROWING_LINEARIZATIONS:
            raise OptionError(
                f"tokens of the linearization {linearization!r} grow no tree; those of "
                f"{', '.join(GROWING_LINEARIZATIONS)} do"
            )
        self.order, self.binary = GROWING_LINEARIZATIONS[linearization]
        self.slots = SlotTable.of(symbols)

    def grown(self, tokens: Tensor) -> TreeBatch:
        """The tree [B, T] of decoder input, see :func:`growing_tree`."""
        return self._original(growing_tree(tokens, self.slots, self.order))

    def next_slots(self, tokens: Tensor) -> TreeBatch:
        """The slot [B, T] to be filled after each column, see :func:`next_slot_tree`."""
        return self._original(next_slot_tree(tokens, self.slots, self.order))

    def _original(self, tree: TreeBatch) -> TreeBatch:
        return undo_left_child_right_sibling(tree) if self.binary else tree


def growing_tree(tokens: Tensor, slots: SlotTable, order: str) -> TreeBatch:
    """The tree of decoder input, nodes in preorder whatever the order of the tokens.

    The tree of a longer prefix relates the nodes of a shorter one in the same way, although
    breadth-first their numbers change. So what a method reads off about placed tokens alone is
    causal; what depends on children still to come (factored trees, say) is not.

    Args:
        tokens: LongTensor [B, T], the start symbol in column 0, padding on the right.
        slots: the table of the dictionary.
        order: ``dfs`` or ``bfs``.

    Returns:
        A batch with T - 1 nodes (at least 1); the start symbol, padding, the end-of-sentence
        mark and all that follows a complete tree have no node.

    Raises:
        OptionError: for any other order.
    """
    growth = grow(tokens, slots, order)
    if tokens.shape[1] == 1:
        return TreeBatch.without_trees(tokens)
    placed = growth.placed[:, 1:]
    parent = (growth.parent[:, 1:] - 1).clamp(min=-1)
    branch = branches_at(tokens, slots, growth.parent, growth.slot)[:, 1:]
    if order == "dfs":
        number = torch.arange(placed.shape[1], device=tokens.device).expand_as(parent)
    else:
        number = _preorder(parent, growth.slot[:, 1:], placed)
        above = number.gather(1, parent.clamp(min=0)).masked_fill(parent < 0, -1)
        parent = torch.empty_like(parent).scatter_(1, number, above)
        branch = torch.empty_like(branch).scatter_(1, number, branch)
    token_node = F.pad(number.masked_fill(~placed, NO_NODE), (1, 0), value=NO_NODE)
    return TreeBatch(parent, branch, token_node)


def next_slot_tree(tokens: Tensor, slots: SlotTable, order: str) -> TreeBatch:
    """Like :func:`growing_tree`, but each column has the node that will fill the next slot.

    For encodings of that slot, which must not depend on what fills it. The start symbol has the
    root; once the tree is complete, columns have no node.

    Returns:
        A batch with T nodes, whose token_node is [B, T].

    Raises:
        OptionError: for an unknown order.
    """
    end = grow(tokens, slots, order).placed.sum(1, keepdim=True) + 1
    # Some node stands in the slot after the last one; which one does not matter.
    filler = slots.counts.argmax().expand_as(end)
    tree = growing_tree(F.pad(tokens, (0, 1)).scatter(1, end, filler), slots, order)
    columns = torch.arange(tokens.shape[1], device=tokens.device)
    token_node = tree.token_node[:, 1:].masked_fill(columns >= end, NO_NODE)
    return TreeBatch(tree.parent, tree.branch, token_node)


def _preorder(parent: Tensor, slot: Tensor, placed: Tensor) -> Tensor:
    """Preorder numbers [B, N] of nodes that come breadth-first; no node keeps its own number.

    A node comes right after its parent and its elder siblings' subtrees. Siblings stand side by
    side, so their sizes are differences of sums; sizes and paths are summed by pointer doubling.
    """
    sizes = placed.long()
    for jump, inside in doubled_ancestors(parent):
        sizes = sizes.scatter_add(1, jump, sizes * inside)
    nodes = torch.arange(parent.shape[1], device=parent.device).expand_as(parent)
    before = sizes.cumsum(1) - sizes
    number = (1 + before - before.gather(1, nodes - slot)) * (parent >= 0)
    for jump, _ in doubled_ancestors(parent):
        number = number + number.gather(1, jump)
    return torch.where(placed, number, nodes)
