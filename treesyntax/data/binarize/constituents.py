"""Usual trees in brackets with pieces attached, all of a batch at once: see `binarize_columns`."""

from __future__ import annotations

import numpy as np

from treesyntax.data.binarize.batch import WORDS_LINEARIZATION, Batch, Encoding
from treesyntax.data.binarize.columnar_views import CHAIN, PIECES_ARE_NODES, PLACED, Grown
from treesyntax.data.binarize.forest import (
    Bools,
    Ints,
    any_of_each,
    before,
    from_depths,
    runs,
    sum_of_each,
)
from treesyntax.data.binarize.lexicon import Lexicon
from treesyntax.data.binarize.places import cut, places_of
from treesyntax.trees.formats import ptb_columns
from treesyntax.trees.formats.columns import Strings


def grown(encoding: Encoding, batch: Batch, lexicon: Lexicon) -> tuple[Grown, Ints, Bools]:
    """The sentences, the number of each in the batch, and which of them were usual to the end."""
    columns = ptb_columns.read(batch.records.texts)
    sizes, is_word, depths = columns.sizes, columns.is_word, columns.depths
    counts = sum_of_each(is_word, sizes)
    faults = np.zeros(len(is_word), bool)
    parts, faults[is_word] = _parts(encoding, batch, columns, counts)
    tokens = lexicon.words(parts)
    faults[is_word] |= tokens.faults
    ids, starts, widths = tokens.ids, np.zeros_like(depths), np.ones_like(depths)
    starts[is_word], widths[is_word] = before(tokens.widths), tokens.widths
    if encoding.linearization != WORDS_LINEARIZATION:
        labels = lexicon.brackets(columns.brackets())
        faults[~is_word] = labels.faults
        starts[~is_word] = len(ids) + np.arange(len(labels.ids))
        ids = np.concatenate([ids, labels.ids])
    kept = ~any_of_each(faults, sizes)
    if encoding.policy in PIECES_ARE_NODES:
        # Words are leaves, so that their further pieces come right behind them.
        counts = sum_of_each(tokens.widths, counts)
        sizes = sum_of_each(widths, sizes)
        below = np.arange(int(widths.sum())) - np.repeat(before(widths), widths)
        depths = np.repeat(depths, widths) + below * (encoding.policy == CHAIN)
        is_word = np.repeat(is_word, widths)
        starts, widths = runs(starts, widths), np.ones_like(depths)
    trees = Grown(
        sizes,
        from_depths(sizes, depths),
        np.flatnonzero(is_word),
        counts,
        ids,
        starts,
        widths,
        PLACED.get(encoding.policy),
    )
    return trees, columns.records, kept


def _parts(
    encoding: Encoding, batch: Batch, columns: ptb_columns.Columns, counts: Ints
) -> tuple[Strings, Bools]:
    """What to segment for each word, and which words cannot stand where they should."""
    if not encoding.units or batch.text is None or batch.offsets is None:
        words = columns.words()
        return words, np.zeros(len(words.which), bool)
    usual = columns.records.tolist()
    places = places_of([batch.offsets.texts[number] for number in usual], counts)
    return cut([batch.text[number] for number in usual], counts, places, encoding.model is not None)
