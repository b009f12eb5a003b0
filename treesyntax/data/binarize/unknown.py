"""Unknown words that get a number in their sentence, so that a model can copy them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from treesyntax.data.dictionary import Dictionary
from treesyntax.trees.copies import Placeholders

SUFFIX = ".unknown"


class UnknownWords:
    """The unknown words of one side of a split, batch by batch.

    Args:
        dictionary: of the side, with placeholders.
        linearization: of the side.
        names: symbols by index.
        words: those of the source by sentence, for a target; None for a source.

    Attributes:
        words: the numbered words of each sentence, in the order of their numbers.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        linearization: str,
        names: Sequence[str],
        words: list[list[str]] | None,
    ) -> None:
        self._placeholders = Placeholders(dictionary.symbols, dictionary.unknown_ids, linearization)
        self._unknown = dictionary.unknown_ids
        self._names, self._new, self._sentence = names, words is None, 0
        self.words: list[list[str]] = words or []

    def number(
        self, ids: NDArray[np.int64], indices: NDArray[np.int32], sizes: NDArray[np.int32]
    ) -> None:
        """Change ids [T] of the next sentences in place, given the index of each symbol [T]."""
        ends = np.cumsum(sizes, dtype=np.int64)
        if self._new:
            self.words.extend([] for _ in sizes)
        touched = np.searchsorted(ends, np.flatnonzero(np.isin(ids, self._unknown)), side="right")
        for sentence in np.unique(touched).tolist():
            first, last = int(ends[sentence] - sizes[sentence]), int(ends[sentence])
            sentence_ids = ids[first:last].tolist()
            symbols = [self._names[index] for index in indices[first:last].tolist()]
            words = self.words[self._sentence + sentence]
            self._placeholders.number(sentence_ids, symbols, words, self._new)
            ids[first:last] = sentence_ids
        self._sentence += len(sizes)
