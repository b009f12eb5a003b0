"""Many trees in brackets at once, as arrays: some ten times as fast as one by one.

One balanced tree a line is read, whose brackets all have a label right behind them; an unlabelled
one may stand around the whole tree. All other lines are left to `ptb`, which reads them or says
what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treesyntax.data.binarize.forest import Bools, Ints, any_of_each, before, sum_of_each
from treesyntax.trees.formats import ptb
from treesyntax.trees.formats.columns import Codes, Strings, codes_of, strings

OPEN, CLOSE, SPACE, OTHER = range(1, 5)
# The kind of each character; only white space of ASCII separates.
KINDS = np.full(256, OTHER, np.uint8)
KINDS[list(b"(")], KINDS[list(b")")], KINDS[list(b" \t\n\r\f\v")] = OPEN, CLOSE, SPACE


class Columns(NamedTuple):
    """The nodes of S lines in preorder, one line after another.

    Attributes:
        records: which of the lines these are [S].
        sizes: nodes of each tree [S].
        depths: edges from the root to each node [N].
        is_word: whether the node is a word, else it is a bracket [N].
        text: what ``spelt`` are places in.
        spelt: first character and the one after the last of each word, or of each bracket with
            its label [2, N].
    """

    records: Ints
    sizes: Ints
    depths: Ints
    is_word: Bools
    text: str
    spelt: Ints

    def words(self) -> Strings:
        """The words without escapes."""
        words, which = strings(self.text, *self.spelt[:, self.is_word])
        return Strings([ptb._unescaped(word) if "B-" in word else word for word in words], which)

    def brackets(self) -> Strings:
        """The brackets with their labels, ``(NP``."""
        return strings(self.text, *self.spelt[:, ~self.is_word])


class _Tokens(NamedTuple):
    """Brackets and runs of other characters: kind, first character and the one after the last."""

    kinds: NDArray[np.uint8]
    starts: Ints
    ends: Ints


def read(texts: Sequence[str]) -> Columns:
    """The lines that can be read here."""
    text = "\n".join(texts) + "\n"
    tokens = _tokens(codes_of(text))
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    counts = np.diff(np.searchsorted(tokens.starts, np.cumsum(lengths + 1)), prepend=0)
    opens, closes, others = (tokens.kinds == kind for kind in (OPEN, CLOSE, OTHER))
    is_label = others & np.append(False, opens[:-1])
    is_word = others & ~is_label
    labelled = np.append(is_label[1:] & (tokens.starts[1:] == tokens.ends[:-1]), False)
    levels = np.cumsum(opens.astype(np.int64) - closes)
    levels -= np.repeat(np.append(0, levels)[before(counts)], counts)
    faults = closes & np.append(False, (opens | is_label)[:-1])  # an empty constituent
    first = np.zeros(len(levels), bool)
    first[before(counts)[counts > 0]] = True
    faults |= np.where(first, ~opens, opens & ~labelled)
    faults |= is_label & ~np.append(False, labelled[:-1])  # with white space before it
    usual = _balanced(levels, counts) & ~any_of_each(faults, counts)
    usual &= text.count("\n") == len(texts)
    # Brackets without a label around a tree: its first token is no node.
    outer = any_of_each(first & ~labelled, counts)
    children = (opens & (levels == 2)) | (is_word & (levels == 1))
    usual &= ~outer | (sum_of_each(children, counts) == 1)
    is_node = (is_word | (opens & labelled)) & np.repeat(usual, counts)
    nodes = np.flatnonzero(is_node)
    ends = tokens.ends[nodes + opens[nodes]]
    depths = levels - opens - np.repeat(outer, counts)
    return Columns(
        np.flatnonzero(usual),
        sum_of_each(is_node, counts)[usual],
        depths[nodes],
        is_word[nodes],
        text,
        np.stack([tokens.starts[nodes], ends]),
    )


def _tokens(codes: Codes) -> _Tokens:
    kinds = KINDS[codes]
    other = np.append(False, kinds == OTHER)
    begins = other[1:] & ~other[:-1]
    starts = np.flatnonzero(begins | (kinds == OPEN) | (kinds == CLOSE))
    kinds, ends = kinds[starts], starts + 1
    ends[kinds == OTHER] = np.flatnonzero(other[:-1] & ~other[1:])
    return _Tokens(kinds, starts, ends)


def _balanced(levels: Ints, counts: Ints) -> Bools:
    """Which lines close their first bracket with their last token and none before."""
    last = np.append(levels, -1)[np.where(counts > 0, np.cumsum(counts) - 1, -1)]
    return (last == 0) & (sum_of_each(levels < 1, counts) == 1)
