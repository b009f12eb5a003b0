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
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.trees.binary import NEXT_SIBLING
from treesyntax.trees.symbols import slot_table

ORDERS = ("dfs", "bfs")


class SlotTable(nn.Module):
    """The slots of every symbol of a dictionary; moves with a model, is not saved with it.

    Attributes:
        counts: LongTensor [V], slots of a symbol, -1 for symbols that are no node.
        branches: LongTensor [V, S], S >= 1, the branch of each slot, padded with -1.
    """

    counts: Tensor
    branches: Tensor

    def __init__(self, counts: Tensor, branches: Tensor) -> None:
        super().__init__()
        self.register_buffer("counts", counts, persistent=False)
        self.register_buffer("branches", branches, persistent=False)

    @classmethod
    def of(cls, symbols: Sequence[str]) -> SlotTable:
        """The table of a dictionary's symbols, in their order."""
        counts, branches = slot_table(symbols)
        return cls(torch.as_tensor(counts), torch.as_tensor(branches))


def check_order(order: str) -> None:
    """Raises OptionError for an order that is not in :data:`ORDERS`."""
    if order not in ORDERS:
        raise OptionError(f"unknown order {order!r}; it is one of {', '.join(ORDERS)}")


@dataclass(frozen=True)
class Growth:
    """Where every node hangs, and where the next one will; all are [B, T], parents are columns.

    Attributes:
        placed: bool, whether the column holds a node.
        parent: column of the parent of the column's node, -1 for the root and for no node.
        slot: which of the parent's slots the node fills, counted from 0.
        open_slots: free slots after the column; 1 after the start symbol.
        next_parent: column of the parent of the node that the next column must hold, -1 if that
            is the root or if there is none.
        next_slot: which of the slots of next_parent it fills.
    """

    placed: Tensor
    parent: Tensor
    slot: Tensor
    open_slots: Tensor
    next_parent: Tensor
    next_slot: Tensor


def grow(tokens: Tensor, slots: SlotTable, order: str) -> Growth:
    """Place the nodes of decoder input.

    Args:
        tokens: LongTensor [B, T], the start symbol in column 0, padding on the right.
        slots: the table of the dictionary.
        order: ``dfs`` or ``bfs``.

    Raises:
        OptionError: for any other order.
    """
    check_order(order)
    counts, placed, open_slots = _placed_counts(tokens, slots)
    fill = _depth_first if order == "dfs" else _breadth_first
    parent, slot = fill(counts, open_slots)
    columns = torch.arange(tokens.shape[1], device=tokens.device)
    follows = (placed | (columns == 0)) & (open_slots > 0) & (columns > 0)
    parent, slot = parent.masked_fill(~follows, -1), slot.masked_fill(~follows, 0)
    own_parent = _shifted(parent, -1).masked_fill(~placed, -1)
    own_slot = _shifted(slot, 0).masked_fill(~placed, 0)
    return Growth(placed, own_parent, own_slot, open_slots, parent, slot)


def _shifted(values: Tensor, first: int) -> Tensor:
    return F.pad(values[:, :-1], (1, 0), value=first)


def _placed_counts(tokens: Tensor, slots: SlotTable) -> tuple[Tensor, Tensor, Tensor]:
    """Slots [B, T] of the columns (0 where there is no node), which hold nodes, open slots."""
    counts = slots.counts[tokens]
    counts[:, 0] = 1  # the start symbol has one slot, for the root
    # Slots run out for the first time where the tree is complete: each token takes at most one.
    free = 1 + F.pad(counts[:, 1:] - 1, (1, 0)).cumsum(1)
    intact = (counts >= 0) & (_shifted(free, 1) > 0)
    intact = intact.byte().cumprod(1, dtype=torch.uint8).bool()
    counts = counts * intact
    placed = intact.clone()
    placed[:, 0] = False
    return counts, placed, 1 + ((counts - 1) * placed).cumsum(1)


def _depth_first(counts: Tensor, open_slots: Tensor) -> tuple[Tensor, Tensor]:
    # Slots are a stack, whose height before column s + 1 is open_slots[s]. The node at s + 1 took
    # the top slot and put its own on top, so it has a free one for the node after column t as
    # long as the stack is no lower than before it: the parent is the last such node.
    before = _last_at_most(open_slots)
    parent = (before + 1).clamp(max=counts.shape[1] - 1)
    height = open_slots - open_slots.gather(1, before)
    return parent, counts.gather(1, parent) - height - 1


def _last_at_most(values: Tensor) -> Tensor:
    """For every column the last earlier one whose value [B, T] is no larger, 0 if there is none.

    Binary descent over minima of 1, 2, 4, … columns: O(T log T), however deep the tree.
    """
    size = values.shape[1]
    minima = [values]
    while 1 << len(minima) < size:
        width = 1 << len(minima) - 1
        # Zeros before the first column: no block may reach beyond it.
        minima.append(torch.minimum(minima[-1], F.pad(minima[-1], (width, 0))[:, :size]))
    found = (torch.arange(size, device=values.device) - 1).clamp(min=0).expand_as(values)
    for level in reversed(range(len(minima))):
        larger = minima[level].gather(1, found) > values
        found = (found - larger.long() * (1 << level)).clamp(min=0)
    return found


def _breadth_first(counts: Tensor, open_slots: Tensor) -> tuple[Tensor, Tensor]:
    # Slots are a queue. The node after column t takes slot number t of all, the root's being 0:
    # its parent is the first column by which slots 0 … t had been opened.
    opened = counts.cumsum(1)
    columns = torch.arange(counts.shape[1], device=counts.device).repeat(len(counts), 1)
    parent = torch.searchsorted(opened, columns, right=True).clamp(max=counts.shape[1] - 1)
    return parent, columns - (opened - counts).gather(1, parent)


def branches_at(tokens: Tensor, slots: SlotTable, parent: Tensor, slot: Tensor) -> Tensor:
    """Branches [B, T] of slots of the nodes at columns ``parent``, 0 where the parent is -1."""
    symbol = tokens.gather(1, parent.clamp(min=0))
    return slots.branches[symbol, slot].masked_fill(parent < 0, 0)


def next_slot(tokens: Tensor, slots: SlotTable, order: str) -> tuple[Tensor, Tensor]:
    """Column of the parent, and branch, [B, T] each, of the node to be predicted at a column.

    Returns:
        Parents are -1, and branches 0, where the root or no node at all is to be predicted.

    Raises:
        OptionError: for an unknown order.
    """
    growth = grow(tokens, slots, order)
    branch = branches_at(tokens, slots, growth.next_parent, growth.next_slot)
    return growth.next_parent, branch


def families(tokens: Tensor, slots: SlotTable, order: str) -> tuple[Tensor, Tensor]:
    """Where the nodes of left-child-right-sibling forms are in the trees themselves.

    Pointers to elder siblings double their reach each round: O(T log T), however many there are.

    Returns:
        LongTensors [B, T]: the column of the parent, -1 for the root and for no node; and which of
        its children the node is, counted from 0.

    Raises:
        OptionError: for an unknown order.
    """
    growth = grow(tokens, slots, order)
    younger = branches_at(tokens, slots, growth.parent, growth.slot) == NEXT_SIBLING
    columns = torch.arange(tokens.shape[1], device=tokens.device)
    elder, number = torch.where(younger, growth.parent, columns), younger.long()
    for _ in range(tokens.shape[1].bit_length()):
        number = number + number.gather(1, elder)
        elder = elder.gather(1, elder)
    return growth.parent.gather(1, elder), number


def filled_slots(tokens: Tensor, slots: SlotTable, order: str) -> tuple[Tensor, Tensor]:
    """What step-by-step decoding needs: the slots of every node, and how many are filled by now.

    The start symbol counts as a node with one slot, the root's. Slots are filled from the first
    to the last, so the next slot is the first free one of the last (``dfs``) or the first
    (``bfs``) column that has one. O(T) for a row of tokens.

    Returns:
        LongTensors [B, T]: slots, and filled slots, of every column after the last column.

    Raises:
        OptionError: for an unknown order.
    """
    check_order(order)
    counts, placed, open_slots = _placed_counts(tokens, slots)
    if order == "bfs":
        taken = placed.sum(1, keepdim=True) - (counts.cumsum(1) - counts)
    else:
        # The lowest height of the stack since, just after a later node took its slot.
        taking = torch.cat([(open_slots - counts)[:, 1:], open_slots[:, -1:]], 1)
        taken = open_slots - taking.flip(1).cummin(1).values.flip(1)
    return counts, torch.minimum(taken.clamp(min=0), counts)
