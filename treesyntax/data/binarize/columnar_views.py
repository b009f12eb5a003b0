"""The tokens of many trees at once: `treesyntax.trees.linearizations` and `transforms.subwords` in arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from treesyntax.data.binarize.batch import WORDS_LINEARIZATION, EncodedBatch, by_appearance
from treesyntax.data.binarize.forest import (
    Bools,
    Ints,
    Preorder,
    before,
    by_depth,
    runs,
    sum_of_each,
)
from treesyntax.data.binarize.lexicon import Lexicon
from treesyntax.data.tree_store import TreeArrays
from treesyntax.trees.subwords import NO_NODE

BRACKETED = "bracketed"
CHAIN = "chain"
PIECES_ARE_NODES = ("siblings", CHAIN)
PLACED = {"copy": None, "first": 0, "last": -1}


class Grown(NamedTuple):
    """S trees with a token or several on every node, in preorder, one tree after another.

    Attributes:
        sizes: nodes of each tree [S].
        order: the trees.
        words: the nodes that are words, in surface order [W].
        word_counts: words of each tree [S].
        ids: numbers of symbols.
        starts: the first of ``ids`` on each node [N].
        widths: how many are on it [N].
        placed: which of them is on the node, 0 or -1; None for all of them.
    """

    sizes: Ints
    order: Preorder
    words: Ints
    word_counts: Ints
    ids: Ints
    starts: Ints
    widths: Ints
    placed: int | None


class Line(NamedTuple):
    """All tokens: their symbols' numbers [T], the node of each [T], and tokens a tree [S]."""

    ids: Ints
    nodes: Ints
    counts: Ints


def encoded(linearization: str, grown: Grown, lexicon: Lexicon) -> EncodedBatch:
    """The tokens of a linearization; ``grown.ids`` are numbers of symbols of the lexicon."""
    line = SHOWN[linearization](grown)
    names = lexicon.bracketed() if linearization == BRACKETED else lexicon.symbols
    ids, old = by_appearance(line.ids, len(names))
    sizes, counts, parents, branches, nodes = (
        array.astype(np.int32)
        for array in (
            grown.sizes, line.counts, grown.order.parents, grown.order.branches, line.nodes
        )
    )  # fmt: skip
    return EncodedBatch(
        [names[number] for number in old.tolist()],
        ids,
        counts,
        TreeArrays(sizes, counts, parents, branches, nodes),
    )


def _numbers(grown: Grown) -> Ints:
    """The number of each node within its tree."""
    return np.arange(len(grown.widths)) - np.repeat(before(grown.sizes), grown.sizes)


def _line(grown: Grown, nodes: Ints, counts: Ints) -> Line:
    """The tokens of these nodes, ``counts`` of which belong to each tree."""
    widths = grown.widths[nodes]
    ids = grown.ids[runs(grown.starts[nodes], widths)]
    numbers = _numbers(grown)[nodes]
    on = np.repeat(numbers, widths)
    if grown.placed is not None:
        on[:] = NO_NODE
        on[before(widths) if grown.placed == 0 else np.cumsum(widths) - 1] = numbers
    return Line(ids, on, sum_of_each(widths, counts))


def _words(grown: Grown) -> Line:
    return _line(grown, grown.words, grown.word_counts)


def _preorder(grown: Grown) -> Line:
    return _line(grown, np.arange(len(grown.widths)), grown.sizes)


def _breadth_first(grown: Grown) -> Line:
    tree = np.repeat(np.arange(len(grown.sizes)), grown.sizes)
    return _line(grown, np.lexsort((grown.order.depths, tree)), grown.sizes)


def _bracketed(grown: Grown) -> Line:
    """The ids are those of `Lexicon.bracketed`."""
    plain = _preorder(grown)
    steps = np.diff(grown.order.depths, append=0)
    ends = np.maximum(-steps, 0)  # brackets that close behind each node
    widths = grown.widths + ends
    own = runs(before(widths), grown.widths)
    closing = np.ones(int(widths.sum()), bool)
    closing[own] = False
    marked = 2 * plain.ids + 1
    marked[before(grown.widths)[steps > 0]] += 1
    ids, nodes = np.zeros((2, len(closing)), np.int64)
    ids[own], nodes[own] = marked, plain.nodes
    nodes[closing] = _numbers(grown)[_closed(grown.order.depths, steps > 0, ends)]
    return Line(ids, nodes, sum_of_each(widths, grown.sizes))


def _closed(depths: Ints, interior: Bools, ends: Ints) -> Ints:
    """The node of each bracket that closes, ``ends`` of them behind each node."""
    at = np.repeat(depths, ends) - 1 - (np.arange(ends.sum()) - np.repeat(before(ends), ends))
    opened = np.flatnonzero(interior)
    closed = np.empty(len(at), np.int64)
    # At each depth brackets open and close by turns.
    closed[by_depth(at)] = opened[by_depth(depths[opened])]
    return closed


SHOWN: dict[str, Callable[[Grown], Line]] = {
    WORDS_LINEARIZATION: _words,
    "preorder": _preorder,
    "breadth_first": _breadth_first,
    BRACKETED: _bracketed,
}
"""The linearizations of which the tokens can be had so."""
