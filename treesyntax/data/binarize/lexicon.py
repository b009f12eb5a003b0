"""The strings of an encoding that came up so far and the symbols each becomes, as numbers.

Words and labels come again and again: each is segmented once, and after that is one look-up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from itertools import chain, count, islice
from typing import NamedTuple

import numpy as np

from treesyntax.data.binarize.forest import Bools, Ints, any_of_each, before, runs
from treesyntax.data.sentencepiece import Segmenter
from treesyntax.trees.formats.columns import Strings
from treesyntax.trees.linearizations import CLOSE, OPEN, leaf_token
from treesyntax.trees.subwords import NO_PIECES

MOST_STRINGS = 1 << 18

Split = Callable[[list[str]], list[list[str]]]


class Tokens(NamedTuple):
    """What W strings become.

    Attributes:
        ids: the number of each symbol, one string after another.
        widths: symbols of each string [W], at least one.
        faults: which strings have no symbols, or some that are none [W].
    """

    ids: Ints
    widths: Ints
    faults: Bools


class _Numbers(defaultdict[str, int]):
    """Strings numbered as they come."""

    def __init__(self) -> None:
        super().__init__(count().__next__)
        self.strings: list[str] = []

    def of(self, strings: Collection[str]) -> Ints:
        """The number of each string."""
        found = np.fromiter(map(self.__getitem__, strings), np.int64, len(strings))
        self.strings += list(islice(reversed(self), len(self) - len(self.strings)))[::-1]
        return found


class _Table:
    """Strings of one kind and the symbols of each."""

    def __init__(self, split: Split) -> None:
        self.numbers = _Numbers()
        self._split = split
        self._starts = np.zeros(0, np.int64)
        self._tokens = Tokens(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, bool))

    def tokens(self, strings: Strings, symbols: _Numbers) -> Tokens:
        """The symbols of each string; ``symbols`` gets those that are new."""
        known = len(self.numbers)
        which = self.numbers.of(strings.different)[strings.which]
        if fresh := self.numbers.strings[known:]:
            more = _tokens(self._split(fresh), symbols)
            pairs = zip(self._tokens, more, strict=True)
            self._tokens = Tokens(*[np.concatenate(pair) for pair in pairs])
            self._starts = before(self._tokens.widths)
        widths = self._tokens.widths[which]
        ids = self._tokens.ids[runs(self._starts[which], widths)]
        return Tokens(ids, widths, self._tokens.faults[which])


def _tokens(pieces: list[list[str]], symbols: _Numbers) -> Tokens:
    widths = np.fromiter((len(own) or 1 for own in pieces), np.int64, len(pieces))
    filled = list(chain.from_iterable(own or (NO_PIECES,) for own in pieces))
    ids = symbols.of(filled)
    faults = np.array([not own for own in pieces])
    if " ".join(filled).split() != filled:
        unfit = np.array([symbol.split() != [symbol] for symbol in filled])
        faults |= any_of_each(unfit, widths)
    return Tokens(ids, widths, faults)


class Lexicon:
    """The words and the labels of nodes that are none.

    Args:
        segmenter: a subword model for words, None where white space separates pieces.
        placed: whether words are parts of a raw line, with the space due before each.
    """

    def __init__(self, segmenter: Segmenter | None, placed: bool) -> None:
        split: Split = _by_space
        if segmenter is not None:
            split = segmenter.parts if placed else segmenter.lines
        self._split = split
        self.forget()

    def forget(self) -> None:
        """Be as new."""
        self._symbols = _Numbers()
        self._bracketed = [CLOSE]
        self._words, self._brackets = _Table(self._split), _Table(_labels)

    @property
    def is_full(self) -> bool:
        """Whether it should forget before the next batch, as memory is not to grow with the data."""
        return len(self._words.numbers) + len(self._brackets.numbers) > MOST_STRINGS

    @property
    def symbols(self) -> list[str]:
        """All symbols by number."""
        return self._symbols.strings

    def bracketed(self) -> list[str]:
        """What closes a bracket, then each symbol as that of a leaf and as it opens a bracket."""
        for symbol in self.symbols[len(self._bracketed) // 2 :]:
            self._bracketed += leaf_token(symbol), OPEN + symbol
        return self._bracketed

    def words(self, words: Strings) -> Tokens:
        """The pieces of words."""
        return self._words.tokens(words, self._symbols)

    def brackets(self, brackets: Strings) -> Tokens:
        """The labels of brackets, such as ``(NP``."""
        return self._brackets.tokens(brackets, self._symbols)


def _by_space(words: list[str]) -> list[list[str]]:
    return [word.split() for word in words]


def _labels(brackets: list[str]) -> list[list[str]]:
    return [[bracket[1:]] for bracket in brackets]
