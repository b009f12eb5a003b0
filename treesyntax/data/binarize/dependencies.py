"""Usual dependency trees with pieces attached, all of a batch at once: see `binarize_columns`."""

from __future__ import annotations

import numpy as np

from treesyntax.data.binarize.batch import Batch, Encoding
from treesyntax.data.binarize.columnar_views import CHAIN, PIECES_ARE_NODES, PLACED, Grown
from treesyntax.data.binarize.forest import (
    Bools,
    Ints,
    any_of_each,
    before,
    merged,
    preorder,
    with_pieces,
)
from treesyntax.data.binarize.lexicon import Lexicon
from treesyntax.data.binarize.places import cut
from treesyntax.trees.formats import conllu_columns


def grown(encoding: Encoding, batch: Batch, lexicon: Lexicon) -> tuple[Grown, Ints, Bools]:
    """The sentences, the number of each in the batch, and which of them were usual to the end."""
    columns = conllu_columns.read(batch.records.texts)
    forest = columns.forest
    if encoding.units:
        begins = ~_repeated(columns.places, forest.sizes)
        forest = merged(forest, begins)
        lines = _lines(batch, columns)
        parts, faults = cut(
            lines, forest.sizes, columns.places[:, begins], encoding.model is not None
        )
    else:
        parts = columns.words()
        faults = np.zeros(len(parts.which), bool)
    tokens = lexicon.words(parts)
    kept = ~any_of_each(faults | tokens.faults, forest.sizes)
    starts, widths, ranks = before(tokens.widths), tokens.widths, None
    if encoding.policy in PIECES_ARE_NODES:
        forest, ranks = with_pieces(forest, widths, encoding.policy == CHAIN)
        starts, widths = np.arange(len(ranks)), np.ones(len(ranks), np.int64)
    order = preorder(forest, ranks)
    words = np.repeat(before(forest.sizes), forest.sizes) + order.numbers
    node_starts, node_widths = np.empty((2, len(words)), np.int64)
    node_starts[words], node_widths[words] = starts, widths
    trees = Grown(
        forest.sizes,
        order,
        words,
        forest.sizes,
        tokens.ids,
        node_starts,
        node_widths,
        PLACED.get(encoding.policy),
    )
    return trees, columns.records, kept


def _lines(batch: Batch, columns: conllu_columns.Columns) -> list[str]:
    """The raw text of each sentence, empty where it is missing or in doubt."""
    comments = columns.lines()
    if batch.text is None:
        return [comment or "" for comment in comments]
    texts = [batch.text[number] for number in columns.records.tolist()]
    pairs = zip(texts, comments, strict=True)
    return [text if comment in (None, text) else "" for text, comment in pairs]


def _repeated(places: Ints, counts: Ints) -> Bools:
    """Whether a word has the place of the word before, as those of one multi-word token have."""
    same = (places == np.roll(places, 1, axis=1)).all(axis=0)
    same[before(counts)] = False
    return same
