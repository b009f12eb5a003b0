"""The grammar of exactly the parents and children that training trees have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import torch
from torch import Tensor

from treesyntax.decoding.grammar import NO_ROW, TreeGrammar
from treesyntax.errors import OptionError, TreeError
from treesyntax.nn.growth import GrowingTrees, PartialTrees
from treesyntax.trees.binary import FIRST_CHILD
from treesyntax.trees.symbols import split_symbol

CHUNK = 512
MOST_APART = 64
"""Labels with at least so many children have one row for all but the first."""

Examples = Iterable[Sequence[int] | Tensor]


def learn_grammar(examples: Examples, trees: GrowingTrees, eos: int) -> TreeGrammar:
    """The grammar of exactly the (parent symbol, slot, child symbol) triples of training trees.

    Nothing is smoothed: a symbol that no tree has is in no row. Only slots that occur get a row.

    Args:
        examples: token ids of one tree each, with or without EOS.
        trees: how tokens grow trees, on the CPU.
        eos: id of EOS.

    Raises:
        OptionError: if there are no trees.
        TreeError: for tokens that are not one whole tree.
    """
    symbols, width = trees.branches.shape

    def position_of(partial: PartialTrees) -> Tensor:
        parent, slot = partial.slots
        position = 1 + partial.tokens.gather(1, parent.clamp(min=0)) * width + slot
        return position.masked_fill(parent < 0, 0)

    position, child = _distinct(examples, trees, eos, position_of)
    fills, row_of_position = _rows(position, child, 1 + symbols * width, symbols)
    return TreeGrammar(fills, row_of_position[1:].view(symbols, width))


def learn_sibling_grammar(
    examples: Examples, symbols: Sequence[str], trees: GrowingTrees, eos: int
) -> TreeGrammar:
    """The grammar of the children that labels have in trees in left-child-right-sibling form.

    Arguments and errors as in `learn_grammar`, with the V symbols of the dictionary by id. Labels
    that have equally many children wherever they have any have so many, each from a row of its own.
    Other labels have the first child from a row of its own, and all later ones from another, until
    one of them is without a sibling.
    """
    names = [(split_symbol(symbol) or ("",))[0] for symbol in symbols]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(["", *names]))}
    first_position = MOST_APART * torch.tensor([numbers[name] for name in names])

    def position_of(partial: PartialTrees) -> Tensor:
        parent, index = partial.family
        above = partial.tokens.gather(1, parent.clamp(min=0))
        return first_position[above].masked_fill(parent < 0, 0) + index.clamp(max=MOST_APART - 1)

    position, child = _distinct(examples, trees, eos, position_of)
    varied = _varied(position[~trees.has_sibling[child]].unique(), len(numbers))
    merged = position - (position % MOST_APART - 1).clamp(min=0)
    position = torch.where(varied[position // MOST_APART], merged, position)
    fills, row_of_position = _rows(position, child, MOST_APART * len(numbers), len(symbols))
    positions = position.unique()
    repeats = varied[positions // MOST_APART] & (positions % MOST_APART == 1)
    next_row = row_of_position[torch.where(repeats, positions, positions + 1)]
    row_of_first = row_of_position[first_position].unsqueeze(1)
    row_of_slot = torch.where(trees.branches == FIRST_CHILD, row_of_first, NO_ROW)
    return TreeGrammar(fills, row_of_slot, next_row)


def _varied(last_positions: Tensor, labels: int) -> Tensor:
    """Bool [L], of labels with last children at several positions, or beyond all that are apart."""
    ends = torch.bincount(last_positions // MOST_APART, minlength=labels)
    beyond = last_positions[last_positions % MOST_APART == MOST_APART - 1] // MOST_APART
    return (ends > 1).index_fill(0, beyond, True)


def _rows(position: Tensor, child: Tensor, size: int, symbols: int) -> tuple[Tensor, Tensor]:
    """The rows of the positions that occur, bool [R, V] in their order, and that of each position.

    All positions are below ``size``.
    """
    positions, rows = position.unique(return_inverse=True)
    fills = torch.zeros(len(positions), symbols, dtype=torch.bool)
    fills[rows, child] = True
    row_of_position = torch.full((size,), NO_ROW)
    row_of_position[positions] = torch.arange(len(positions))
    return fills, row_of_position


def _distinct(
    examples: Examples, trees: GrowingTrees, eos: int, position_of: Callable[[PartialTrees], Tensor]
) -> tuple[Tensor, Tensor]:
    """The distinct pairs of a position, 0 for the root's, and the symbol that fills it."""
    symbols, pairs = len(trees.counts), []
    for first, tokens in _chunks(examples, eos):
        partial = trees.grow(tokens)
        _check_whole(partial, first, eos)
        pairs.append((position_of(partial)[:, :-1] * symbols + tokens)[partial.placed].unique())
    if not pairs:
        raise OptionError("a grammar cannot be learned from no trees; give training data")
    distinct = torch.cat(pairs).unique()
    return distinct // symbols, distinct % symbols


def _chunks(examples: Examples, eos: int) -> Iterator[tuple[int, Tensor]]:
    """Index of the first tree, and tokens [B, T] between a start symbol and padding."""
    remaining, first = iter(examples), 0
    while chunk := [torch.as_tensor(tree) for tree in islice(remaining, CHUNK)]:
        tokens = torch.full((len(chunk), max(map(len, chunk)) + 2), eos)
        for row, tree in zip(tokens, chunk, strict=True):
            row[1 : len(tree) + 1] = tree
        yield first, tokens
        first += len(chunk)


def _check_whole(partial: PartialTrees, first: int, eos: int) -> None:
    stray = (partial.tokens != eos) & ~partial.placed
    whole = (partial.open_slots[:, -1] == 0) & ~stray[:, 1:].any(1)
    if not whole.all():
        number = first + int(whole.int().argmin()) + 1
        raise TreeError(
            f"the tokens of training tree {number} are not one whole tree",
            "learn from the data on which the model was trained, in the same order",
        )
