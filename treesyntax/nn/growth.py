"""The tree that a decoder has grown so far, as a pure function of the tokens before it.

Target tokens carry their slots for children. A slot is filled by one later token: depth-first,
the next token fills the first free slot of the last node that has one; breadth-first, of the
first node that has one. So tokens alone say where every node hangs, for any number of slots, and
no state has to follow the beam. (Shiv & Quirk 2019, section 4, for binary trees.)

Columns: column 0 holds the start symbol, column t >= 1 the t-th node. The nodes of a row end
where the tree is complete, or before the first token that is no node.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.nn.coordinates import doubled_ancestors
from treesyntax.nn.tree_batch import NO_NODE, TreeBatch
from treesyntax.trees.binary import NEXT_SIBLING
from treesyntax.trees.symbols import label_table, slot_table

GROWING_LINEARIZATIONS = {
    "nary_dfs": ("dfs", False),
    "nary_bfs": ("bfs", False),
    "lcrs_dfs": ("dfs", True),
    "lcrs_bfs": ("bfs", True),
}
"""The linearizations whose tokens grow a tree: their order, and whether their trees are in
left-child-right-sibling form."""


class GrowingTrees(nn.Module):
    """How the tokens of a dictionary grow trees; moves with a model, adds nothing to its state.

    Args:
        symbols: the V symbols of the target dictionary by id.
        linearization: one of :data:`GROWING_LINEARIZATIONS`.

    Attributes:
        order: ``dfs`` or ``bfs``.
        binary: whether tokens grow left-child-right-sibling forms.
        counts: LongTensor [V], slots of a symbol, -1 for symbols that are no node.
        branches: LongTensor [V, S], S >= 1, the branch of each slot, padded with -1.
        labels: LongTensor [V], the label of a symbol, see :func:`treesyntax.trees.symbols.label_table`.

    Raises:
        OptionError: for a linearization whose tokens grow no tree.
    """

    counts: Tensor
    branches: Tensor
    labels: Tensor

    def __init__(self, symbols: Sequence[str], linearization: str) -> None:
        super().__init__()
        if linearization not in GROWING_LINEARIZATIONS:
            raise OptionError(
                f"tokens of the linearization {linearization!r} grow no tree; those of "
                f"{', '.join(GROWING_LINEARIZATIONS)} do"
            )
        self.order, self.binary = GROWING_LINEARIZATIONS[linearization]
        tables = (*slot_table(symbols), label_table(symbols))
        for name, table in zip(("counts", "branches", "labels"), tables, strict=True):
            self.register_buffer(name, torch.as_tensor(table), persistent=False)

    @property
    def has_sibling(self) -> Tensor:
        """Bool [V], the symbols of left-child-right-sibling forms that have a next sibling."""
        return (self.branches == NEXT_SIBLING).any(1)

    def grow(self, tokens: Tensor) -> PartialTrees:
        """Grow the trees of decoder input [B, T], the start symbol first, padding on the right."""
        return PartialTrees(self, tokens)


class PartialTrees:
    """The trees that a batch of prefixes has grown. What costs more than O(T) is made on demand.

    Args:
        growing: how tokens grow trees.
        tokens: LongTensor [B, T], the start symbol in column 0, padding on the right.

    Attributes:
        tokens: as given.
        counts: LongTensor [B, T], slots of each column: 1 for the start symbol, whose slot the
            root fills, 0 for columns without a node.
        placed: bool [B, T], whether the column holds a node.
        open_slots: LongTensor [B, T], free slots after the column.
    """

    def __init__(self, growing: GrowingTrees, tokens: Tensor) -> None:
        self.growing, self.tokens = growing, tokens
        counts = growing.counts[tokens]
        counts[:, :1] = 1
        # Slots run out for the first time where the tree is complete: each token takes at most one.
        free = 1 + F.pad(counts[:, 1:] - 1, (1, 0)).cumsum(1)
        intact = (counts >= 0) & (F.pad(free[:, :-1], (1, 0), value=1) > 0)
        intact = intact.byte().cumprod(1, dtype=torch.uint8).bool()
        self.counts = counts * intact
        self.placed = intact.clone()
        self.placed[:, :1] = False
        self.open_slots = 1 + ((self.counts - 1) * self.placed).cumsum(1)

    @cached_property
    def filled(self) -> Tensor:
        """LongTensor [B, T]: how many slots of each column are filled after the last column.

        Slots are filled from the first to the last, so the next slot is the first free one of the
        last (``dfs``) or the first (``bfs``) column that has one. O(T) for a row of tokens.
        """
        if self.growing.order == "bfs":
            filled = self.placed.sum(1, keepdim=True) - (self.counts.cumsum(1) - self.counts)
        else:
            # The lowest height of the stack since, just after a later node took its slot.
            taking = torch.cat([(self.open_slots - self.counts)[:, 1:], self.open_slots[:, -1:]], 1)
            filled = self.open_slots - taking.flip(1).cummin(1).values.flip(1)
        return torch.minimum(filled.clamp(min=0), self.counts)

    @cached_property
    def _fills(self) -> Tensor:
        """Bool [B, T]: whether a slot is open after the column, so that a node may fill it."""
        columns = torch.arange(self.tokens.shape[1], device=self.tokens.device)
        return (self.placed | (columns == 0)) & (self.open_slots > 0)

    @cached_property
    def slots(self) -> tuple[Tensor, Tensor]:
        """The slot that each column fills, or has to fill: LongTensors [B, T + 1].

        The last column is that of the next token. The parts are the column of the parent, -1 for
        the root and where no slot is open, and which of the parent's slots it is, counted from 0.
        """
        fill = _depth_first if self.growing.order == "dfs" else _breadth_first
        parent, slot = fill(self.counts, self.open_slots)
        none = ~self._fills
        none[:, :1] = True  # the root follows the start symbol
        parent, slot = parent.masked_fill(none, -1), slot.masked_fill(none, 0)
        return F.pad(parent, (1, 0), value=-1), F.pad(slot, (1, 0))

    @cached_property
    def family(self) -> tuple[Tensor, Tensor]:
        """Where the nodes of :attr:`slots` hang in the original trees: LongTensors [B, T + 1].

        The parts are the column of the parent, -1 for the root and for no node, and the branch. In
        a left-child-right-sibling form, pointers to previous siblings double their reach each
        round: O(T log T), however many there are. A sibling of the root, which such a form cannot
        have, becomes a root of its own.
        """
        parent, slot = self.slots
        if not self.tokens.shape[1]:  # not even the start symbol
            return parent, slot
        symbol = self.tokens.gather(1, parent.clamp(min=0))
        branch = self.growing.branches[symbol, slot].masked_fill(parent < 0, 0)
        if not self.growing.binary:
            return parent, branch
        is_next, columns = (
            branch == NEXT_SIBLING,
            torch.arange(parent.shape[1], device=parent.device),
        )
        previous, index = torch.where(is_next, parent, columns), is_next.long()
        for _ in range(parent.shape[1].bit_length()):
            index = index + index.gather(1, previous)
            previous = previous.gather(1, previous)
        parent = parent.gather(1, previous)
        return parent, index.masked_fill(parent < 0, 0)

    @cached_property
    def _nodes(self) -> tuple[Tensor, Tensor, Tensor]:
        """Parents and branches [B, T] of the original trees in preorder, and the number [B, T] of
        the node that fills the slot after each column."""
        parent, branch = self.family
        parent, branch = (parent[:, 1:] - 1).clamp(min=-1), branch[:, 1:]
        if self.growing.order == "dfs":
            number = torch.arange(parent.shape[1], device=parent.device).expand_as(parent)
            return parent, branch, number
        above, slot = self.slots
        number = _preorder((above[:, 1:] - 1).clamp(min=-1), slot[:, 1:], self._fills)
        parent = number.gather(1, parent.clamp(min=0)).masked_fill(parent < 0, -1)
        parent = torch.empty_like(parent).scatter_(1, number, parent)
        return parent, torch.empty_like(branch).scatter_(1, number, branch), number

    @cached_property
    def tree(self) -> TreeBatch:
        """The original trees, nodes in preorder whatever the order of the tokens.

        The tree of a longer prefix relates the nodes of a shorter one in the same way, although
        breadth-first their numbers change. So what a method reads off about placed tokens alone is
        causal; what depends on children still to come (factored trees, say) is not.

        Returns:
            A batch with T nodes and their labels, the one that fills the next slot among them, whose
            label is unknown; start symbol, padding, EOS and all that follows a complete tree have no
            node.
        """
        parent, branch, number = self._nodes
        token_node = number[:, :-1].masked_fill(~self.placed[:, 1:], NO_NODE)
        token_node = F.pad(token_node, (1, 0), value=NO_NODE)
        token_label = self.growing.labels[self.tokens[:, 1:]] * self.placed[:, 1:]
        label = torch.zeros_like(parent).scatter_(1, number, F.pad(token_label, (0, 1)))
        token_node = token_node[:, : self.tokens.shape[1]]
        return TreeBatch(parent, branch, token_node, label, check=False)

    @cached_property
    def next_slots(self) -> TreeBatch:
        """Like :attr:`tree`, but each column has the node that will fill the next slot.

        For encodings of that slot, which must not depend on what fills it: every label is unknown.
        The start symbol has the root; once the tree is complete, columns have no node.
        """
        parent, branch, number = self._nodes
        token_node = number.masked_fill(~self._fills, NO_NODE)
        return TreeBatch(parent, branch, token_node, torch.zeros_like(parent), check=False)


def _depth_first(counts: Tensor, open_slots: Tensor) -> tuple[Tensor, Tensor]:
    # Slots are a stack, whose height before column s + 1 is open_slots[s]. The node at s + 1 took
    # the top slot and put its own on top, so it has a free one for the node after column t as
    # long as the stack is no lower than before it: the parent is the last such node.
    before = last_at_most(open_slots, open_slots)
    parent = (before + 1).clamp(max=counts.shape[1] - 1)
    height = open_slots - open_slots.gather(1, before)
    return parent, counts.gather(1, parent) - height - 1


def last_at_most(values: Tensor, most: Tensor) -> Tensor:
    """For every column the last earlier one whose value [B, T] is at most ``most``, 0 if there is none.

    Binary descent over minima of 1, 2, 4, … columns: O(T log T), however deep the tree.
    """
    size = values.shape[1]
    minima = [values]
    while 1 << len(minima) < size:
        width = 1 << len(minima) - 1
        # Zeros before the first column: no block may reach beyond it.
        minima.append(torch.minimum(minima[-1], F.pad(minima[-1], (width, 0))[:, :size]))
    columns = (torch.arange(size, device=values.device) - 1).clamp(min=0).expand_as(values)
    for level in reversed(range(len(minima))):
        larger = minima[level].gather(1, columns) > most
        columns = (columns - larger.long() * (1 << level)).clamp(min=0)
    return columns


def _breadth_first(counts: Tensor, open_slots: Tensor) -> tuple[Tensor, Tensor]:
    # Slots are a queue. The node after column t takes slot number t of all, the root's being 0:
    # its parent is the first column by which slots 0 … t had been opened.
    opened = counts.cumsum(1)
    columns = torch.arange(counts.shape[1], device=counts.device).repeat(len(counts), 1)
    parent = torch.searchsorted(opened, columns, right=True).clamp(max=counts.shape[1] - 1)
    return parent, columns - (opened - counts).gather(1, parent)


def _preorder(parent: Tensor, slot: Tensor, exists: Tensor) -> Tensor:
    """Preorder numbers [B, N] of nodes that come breadth-first; no node keeps its own number.

    A node comes right after its parent and the subtrees of its previous siblings. Siblings stand
    side by side, so their sizes are differences of sums; sizes and paths are summed by pointer
    doubling.
    """
    sizes = exists.long()
    for jump, inside in doubled_ancestors(parent):
        sizes = sizes.scatter_add(1, jump, sizes * inside)
    nodes = torch.arange(parent.shape[1], device=parent.device).expand_as(parent)
    before = sizes.cumsum(1) - sizes
    number = (1 + before - before.gather(1, nodes - slot)) * (parent >= 0)
    for jump, _ in doubled_ancestors(parent):
        number = number + number.gather(1, jump)
    return torch.where(exists, number, nodes)
