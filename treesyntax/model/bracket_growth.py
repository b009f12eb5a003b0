"""The tree that a decoder has grown so far from brackets, each closing one twice.

The other door beside :mod:`treesyntax.nn.growth`: there tokens say how many children their node
has, here two closing brackets end them (linearization ``bracketed_twice``). So every token has its
node, closing brackets that of the constituent that they close. Column 0 holds the start symbol.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.model.composition import Composition
from treesyntax.nn.growth import GROWING_LINEARIZATIONS, GrowingTrees, last_at_most
from treesyntax.nn.tree_batch import NO_NODE, TreeBatch
from treesyntax.trees.symbols import CLOSE, OPEN

BRACKETS = "bracketed_twice"
"""The linearization whose brackets grow a tree."""
GROWING = (*GROWING_LINEARIZATIONS, BRACKETS)
"""All linearizations whose tokens grow a tree."""
NO_TOKEN, LEAF, OPENING, CLOSING = range(4)
NEVER = ("<s>", "<pad>", "</s>")
"""Symbols that are no node. An unknown symbol counts as a leaf: whether it opened a bracket is lost."""


class GrowingBrackets(nn.Module):
    """How brackets grow trees; moves with a model, adds nothing to its state.

    Args:
        symbols: the V symbols of the target dictionary by id.

    Attributes:
        kinds: LongTensor [V]: no node, leaf, opening bracket with its label, or closing bracket.
        labels: LongTensor [V], 1 for leaves, 2 and more for the labels of inner nodes, else 0.
    """

    kinds: Tensor
    labels: Tensor

    def __init__(self, symbols: Sequence[str]) -> None:
        super().__init__()
        kinds = [_kind(symbol) for symbol in symbols]
        opening = (symbol for symbol, kind in zip(symbols, kinds, strict=True) if kind == OPENING)
        numbers = {symbol: 2 + number for number, symbol in enumerate(opening)}
        labels = [
            numbers.get(symbol, int(kind == LEAF))
            for symbol, kind in zip(symbols, kinds, strict=True)
        ]
        self.register_buffer("kinds", torch.tensor(kinds), persistent=False)
        self.register_buffer("labels", torch.tensor(labels), persistent=False)

    @staticmethod
    def check(methods: Composition, next_slot: bool) -> None:
        """Refuse what works over tokens with slots alone.

        Raises:
            OptionError: for such a method, or with the encoding of the next slot.
        """
        needing = [name for name, method in methods.items() if method.needs_slots]
        needing += ["the encoding of the next slot"] if next_slot else []
        if needing:
            raise OptionError(
                f"{needing[0]} needs a target with one token a node, which says its slots; binarize it "
                f"with --target-linearization {' or '.join(GROWING_LINEARIZATIONS)}"
            )

    def grow(self, tokens: Tensor) -> PartialBrackets:
        """Grow the trees of decoder input [B, T], the start symbol first, padding on the right."""
        return PartialBrackets(self, tokens)


def growing_trees(symbols: Sequence[str], linearization: str) -> GrowingTrees | GrowingBrackets:
    """How the tokens of a dictionary grow trees in one of :data:`GROWING`.

    Raises:
        OptionError: for any other linearization.
    """
    if linearization == BRACKETS:
        return GrowingBrackets(symbols)
    return GrowingTrees(symbols, linearization)


def _kind(symbol: str) -> int:
    if symbol in NEVER:
        return NO_TOKEN
    return CLOSING if symbol == CLOSE else OPENING if symbol.startswith(OPEN) else LEAF


class PartialBrackets:
    """The trees that a batch of prefixes has grown.

    Args:
        growing: how tokens grow trees.
        tokens: LongTensor [B, T].
    """

    def __init__(self, growing: GrowingBrackets, tokens: Tensor) -> None:
        self.growing, self.tokens = growing, tokens

    @cached_property
    def tree(self) -> TreeBatch:
        """The trees, nodes in preorder, in O(T log T).

        What a token is depends on the tokens before it alone. A token that does not fit, and all
        that follow it, have no node: those after the end of the tree, a bracket that closes
        nothing or a node without children, and anything but the second closing bracket after the
        first one.

        Returns:
            A batch with T nodes and their labels; start symbol and padding have no node.
        """
        if not self.tokens.shape[1]:  # not even the start symbol
            none = self.tokens.long()
            return TreeBatch(none, none, none, none, check=False)
        kind = self.growing.kinds[self.tokens]
        kind[:, 0] = NO_TOKEN
        closes, new = kind == CLOSING, (kind == LEAF) | (kind == OPENING)
        in_pairs = closes.cumsum(1) % 2 == 0  # no second closing bracket is owed
        after = ((kind == OPENING).long() - (closes & in_pairs).long()).cumsum(1)
        height = _shifted(after, 0)  # constituents that are open before the token
        first_of_all = torch.zeros_like(closes)
        first_of_all[:, 1:2] = True
        fits = new & in_pairs & ((height > 0) | first_of_all)
        childless = ~in_pairs & (_shifted(kind, NO_TOKEN) == OPENING)
        fits = fits | (closes & (height > 0) & ~childless)
        fits[:, 0] = True
        fits = fits.byte().cumprod(1, dtype=torch.uint8).bool()
        fits[:, 0] = False
        # Within a constituent the height is above that before its opening bracket.
        above = last_at_most(height, height - 1)
        number = (new & fits).cumsum(1) - 1
        around = number.gather(1, above).masked_fill((height == 0) | ~fits, NO_NODE)
        token_node = torch.where(new & fits, number, around)
        size = self.tokens.shape[1]
        at = torch.where(new & fits, number, size)  # others write to a spare column

        def of_nodes(values: Tensor, fill: int) -> Tensor:
            spare = torch.full((len(values), size + 1), fill, device=values.device)
            return spare.scatter_(1, at, values)[:, :size]

        parent = of_nodes(around, NO_NODE)
        return TreeBatch(
            parent,
            _branch(parent),
            token_node,
            of_nodes(self.growing.labels[self.tokens], 0),
            check=False,
        )


def _shifted(values: Tensor, first: int) -> Tensor:
    return F.pad(values[:, :-1], (1, 0), value=first)


def _branch(parent: Tensor) -> Tensor:
    """LongTensor [B, N]: how many nodes before each have its parent; 0 without one."""
    order = parent.argsort(dim=1, stable=True)
    grouped = parent.gather(1, order)
    positions = torch.arange(parent.shape[1], device=parent.device)
    rank = positions - torch.searchsorted(grouped, grouped)
    return torch.empty_like(parent).scatter_(1, order, rank).masked_fill(parent < 0, 0)
