"""What one batch of ``treesyntax binarize`` is, before and after: records, and integers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from treesyntax.data.binarize.alignment import Span
from treesyntax.data.binarize.forest import Ints, before, runs
from treesyntax.data.binarize.records import Records
from treesyntax.data.sentencepiece import Segmenter
from treesyntax.data.tree_store import TreeArrays
from treesyntax.trees.controls import GIVEN

TEXT = "text"
WORDS_LINEARIZATION = "words"
CONLLU = "conllu"
# The formats for which the parsers keep the places of words.
PLACED_FORMATS = (CONLLU, "ptb")


class Encoding(NamedTuple):
    """How one side becomes tokens; small and hashable, it travels with every batch.

    Attributes:
        format_name: ``text`` or the name of a tree format.
        linearization: name of the linearization.
        policy: how pieces are attached to trees.
        pieces_style: how given pieces mark the words they belong to.
        model: SentencePiece model, None for none.
        control: name of the control tree that takes the place of each tree.
        control_seed: seed of random control trees.
        units: what is segmented: "" each word by its form; "token" each word, or "line" each
            line as a whole, by the places of words in the raw text.
    """

    format_name: str
    linearization: str
    policy: str
    pieces_style: str
    model: Path | None = None
    control: str = GIVEN
    control_seed: int = 0
    units: str = ""


class Batch(NamedTuple):
    """Raw records of one file, and what belongs to them.

    The last three are for an encoding with ``units``.

    Attributes:
        path: the file, for errors.
        records: its records.
        pieces_path: the file of pieces.
        pieces: segmented lines, None where the pieces are to be made.
        text: raw lines, None where the records (CoNLL-U) have them in comments.
        spans: the place of every word in its line; None where they are to be read from
            ``offsets``, or from the records if they are CoNLL-U.
        offsets_path: the file of offsets.
        offsets: its lines.
    """

    path: Path
    records: Records
    pieces_path: Path | None = None
    pieces: Records | None = None
    text: list[str] | None = None
    spans: Sequence[Sequence[Span]] | None = None
    offsets_path: Path | None = None
    offsets: Records | None = None

    def part(self, numbers: Sequence[int]) -> Batch:
        """The records of these numbers, with what belongs to them."""
        chosen: dict[str, Any] = {
            name: [values[number] for number in numbers]
            for name in ("text", "spans")
            if (values := getattr(self, name)) is not None
        }
        for name in ("records", "pieces", "offsets"):
            if (records := getattr(self, name)) is not None:
                chosen[name] = records.part(numbers)
        return self._replace(**chosen)


class EncodedBatch(NamedTuple):
    """A batch as integers.

    Attributes:
        symbols: the different tokens of the batch in order of first appearance.
        ids: index into ``symbols`` of each token [T].
        token_counts: tokens of each sentence [S].
        trees: the trees, None for text.
    """

    symbols: list[str]
    ids: NDArray[np.int32]
    token_counts: NDArray[np.int32]
    trees: TreeArrays | None


def arranged(batches: Sequence[EncodedBatch], order: Ints) -> EncodedBatch:
    """Some sentences of several batches with trees, in this order.

    Args:
        batches: where they come from.
        order: numbers of sentences, counted through all batches.
    """
    sizes = [len(batch.symbols) for batch in batches]
    symbols, numbers = different(chain.from_iterable(b.symbols for b in batches), sum(sizes))
    firsts = [sum(sizes[:number]) for number in range(len(sizes))]
    ids = [numbers[batch.ids + first] for batch, first in zip(batches, firsts, strict=True)]
    trees = [batch.trees for batch in batches if batch.trees]
    nodes, tokens, *arrays = (np.concatenate(parts) for parts in zip(*trees, strict=True))
    node_places = runs(before(nodes)[order], nodes[order])
    token_places = runs(before(tokens)[order], tokens[order])
    parents, branches = (array[node_places] for array in arrays[:2])
    kept, first = by_appearance(np.concatenate(ids)[token_places], len(symbols))
    counts = tokens[order]
    return EncodedBatch(
        [symbols[number] for number in first.tolist()],
        kept,
        counts,
        TreeArrays(nodes[order], counts, parents, branches, arrays[2][token_places]),
    )


def by_appearance(ids: NDArray[np.integer], size: int) -> tuple[NDArray[np.int32], Ints]:
    """The ids, below ``size``, numbered as they first appear, and the old id of each number."""
    first = np.full(size, len(ids))
    first[ids[::-1]] = np.arange(len(ids))[::-1]  # what is written last stays
    old = np.flatnonzero(first < len(ids))
    old = old[np.argsort(first[old])]
    new = np.zeros(size, np.int32)
    new[old] = np.arange(len(old))
    return new[ids], old


def segmenter_of(encoding: Encoding) -> Segmenter | None:
    """The subword model of an encoding, kept in memory, None for none.

    Raises:
        InputError: if it cannot be read.
    """
    return _segmenter(encoding.model) if encoding.model else None


@lru_cache(maxsize=4)
def _segmenter(model: Path) -> Segmenter:
    return Segmenter(model)


def numbered(sentences: list[list[str]], trees: TreeArrays | None) -> EncodedBatch:
    """The tokens of sentences as integers."""
    counts = np.fromiter(map(len, sentences), np.int32, len(sentences))
    symbols, ids = different(chain.from_iterable(sentences), int(counts.sum()))
    return EncodedBatch(symbols, ids, counts, trees)


def different(strings: Iterable[str], size: int) -> tuple[list[str], NDArray[np.int32]]:
    """The different ones of so many strings as they first appear, and which one each is."""
    number_of: defaultdict[str, int] = defaultdict(count().__next__)
    ids = np.fromiter(map(number_of.__getitem__, strings), np.int32, size)
    return list(number_of), ids
