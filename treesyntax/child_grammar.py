"""Which symbols may be the root, and which may fill each slot of each symbol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from treesyntax.errors import OptionError, TreeError
from treesyntax.formats.base import ONE, SEVERAL
from treesyntax.growth import SlotTable, grow
from treesyntax.transforms.binary import FIRST_CHILD, NEXT_SIBLING

ROOT_ROW = 0
CHUNK = 512


@dataclass(frozen=True)
class Grammar:
    """Rows of symbols, and the row from which each slot is filled.

    Attributes:
        fills: bool [R, V], the symbols of each row; row 0 is that of the root.
        row_of_slot: LongTensor [V, S], -1 for slots that a symbol does not have or never uses.
    """

    fills: Tensor
    row_of_slot: Tensor


def any_tree(
    slots: SlotTable, binary: bool = False, children: Sequence[int | None] | None = None
) -> Grammar:
    """The grammar of all trees: every node symbol fills every slot.

    Args:
        slots: the table of the dictionary.
        binary: whether trees are left-child-right-sibling forms, whose roots have no sibling.
        children: of each of the V symbols, how many its nodes must have if they have some: `ONE`,
            `SEVERAL`, or None for any number. It counts where the symbol does not say so itself:
            the first child of a left-child-right-sibling form then has no sibling, or has one.
    """
    nodes = slots.counts >= 0
    row_of_slot = torch.where(slots.branches >= 0, 1, -1)
    if not binary:
        return Grammar(torch.stack([nodes, nodes]), row_of_slot)
    elder = (slots.branches == NEXT_SIBLING).any(1)
    fills = [nodes & ~elder, nodes]
    for number, first_children in ((ONE, nodes & ~elder), (SEVERAL, nodes & elder)):
        wanted = torch.tensor([number == own for own in children or [None] * len(nodes)])
        if wanted.any() and first_children.any():
            row_of_slot[wanted.unsqueeze(1) & (slots.branches == FIRST_CHILD)] = len(fills)
            fills.append(first_children)
    return Grammar(torch.stack(fills), row_of_slot)


def learn_grammar(
    trees: Iterable[Sequence[int] | Tensor], slots: SlotTable, order: str, eos: int
) -> Grammar:
    """The grammar of exactly the (parent symbol, slot, child symbol) triples of training trees.

    Nothing is smoothed: a symbol that no tree has is in no row. Only slots that occur get a row.

    Args:
        trees: token ids of one tree each, with or without the end-of-sentence mark.
        slots: the table of the dictionary, on the CPU.
        order: order of the tokens, ``dfs`` or ``bfs``.
        eos: id of the end-of-sentence mark.

    Raises:
        OptionError: for an unknown order, or if there are no trees.
        TreeError: for tokens that are not one whole tree.
    """
    symbols, width = slots.branches.shape
    found = [
        _triples(chunk, first, slots, order, eos) for first, chunk in _chunks(trees, slots, eos)
    ]
    if not found:
        raise OptionError("a grammar cannot be learned from no trees; give training data")
    triples = torch.cat(found).unique()
    places, rows = (triples // symbols).unique(return_inverse=True)
    fills = torch.zeros(len(places), symbols, dtype=torch.bool)
    fills[rows, triples % symbols] = True
    row_of_slot = torch.full((symbols * width,), -1)
    row_of_slot[places[1:]] = torch.arange(1, len(places))
    return Grammar(fills, row_of_slot.view(symbols, width))


def _chunks(
    trees: Iterable[Sequence[int] | Tensor], slots: SlotTable, eos: int
) -> Iterator[tuple[int, Tensor]]:
    """Number of the first tree, and tokens [B, T] between a start symbol and padding."""
    remaining, first = iter(trees), 0
    while chunk := [torch.as_tensor(tree) for tree in islice(remaining, CHUNK)]:
        tokens = torch.full((len(chunk), max(map(len, chunk)) + 2), eos)
        for row, tree in zip(tokens, chunk, strict=True):
            row[1 : len(tree) + 1] = tree
        yield first, tokens
        first += len(chunk)


def _triples(tokens: Tensor, first: int, slots: SlotTable, order: str, eos: int) -> Tensor:
    """Distinct triples as numbers (parent * S + slot) * V + child; the root's place is -1."""
    growth = grow(tokens, slots, order)
    stray = (tokens != eos) & ~growth.placed
    whole = (growth.open_slots[:, -1] == 0) & ~stray[:, 1:].any(1)
    if not whole.all():
        number = first + int(whole.int().argmin()) + 1
        raise TreeError(
            f"the tokens of training tree {number} are not one whole tree",
            "learn from the data on which the model was trained, in the same order",
        )
    parent = tokens.gather(1, growth.parent.clamp(min=0))
    place = (parent * slots.branches.shape[1] + growth.slot).masked_fill(growth.parent < 0, -1)
    return (place * len(slots.counts) + tokens)[growth.placed].unique()
