"""All usual sentences of a batch at once, in arrays; `binarize_sentence` does all others.

A sentence is usual if its record can be read in columns, its words stand in its text from left to
right and every word has pieces. Both ways give the very same integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treesyntax.binarize_batch import (
    CONLLU,
    WORDS_VIEW,
    Batch,
    EncodedBatch,
    Encoding,
    different,
    segmenter_of,
)
from treesyntax.binarize_offsets import TOKEN_UNITS
from treesyntax.forest import (
    Bools,
    Forest,
    Ints,
    any_of_each,
    before,
    merged,
    preorder,
    runs,
    sum_of_each,
    with_pieces,
)
from treesyntax.formats import conllu_columns
from treesyntax.formats.conllu_columns import codes_of
from treesyntax.segment import Segmenter
from treesyntax.store import TreeArrays
from treesyntax.transforms.controls import GIVEN
from treesyntax.transforms.subwords import NO_NODE, NO_PIECES, POLICIES

FEWEST = 16
"""Records from which on arrays are faster."""


class Tokens(NamedTuple):
    """The pieces of W words.

    Attributes:
        symbols: the different pieces.
        ids: index into ``symbols`` of each piece.
        widths: pieces of each word [W], at least one.
        faults: which words have pieces that are none [W].
    """

    symbols: list[str]
    ids: NDArray[np.int32]
    widths: Ints
    faults: Bools


def encode_usual(encoding: Encoding, batch: Batch) -> tuple[EncodedBatch, Ints, Bools] | None:
    """The sentences that can be read in columns.

    Returns:
        the sentences, the number of each in the batch, and which of them were usual to the end;
        None where nothing can be read so.
    """
    segmenter = segmenter_of(encoding)
    if not _can(encoding, batch, segmenter):
        return None
    columns = conllu_columns.read([record.text for record in batch.records])
    forest = columns.forest
    if encoding.units:
        lines = _lines(batch, columns)
        begins = ~_repeated(columns.places, forest.sizes)
        forest = merged(forest, begins)
        places = columns.places[:, begins]
        parts, faults = cut(lines, forest.sizes, places, segmenter is not None)
    else:
        forms = zip(*columns.forms.tolist(), strict=True)
        parts = [columns.text[start:end] for start, end in forms]
        faults = np.zeros(len(parts), bool)
    tokens = _tokens(parts, segmenter, bool(encoding.units))
    kept = ~any_of_each(faults | tokens.faults, forest.sizes)
    return _attached(forest, tokens, encoding.policy), columns.records, kept


def _can(encoding: Encoding, batch: Batch, segmenter: Segmenter | None) -> bool:
    return (
        len(batch.records) >= FEWEST
        and encoding.format_name == CONLLU
        and encoding.view == WORDS_VIEW
        and encoding.policy in POLICIES
        and encoding.control == GIVEN
        and encoding.units in ("", TOKEN_UNITS)
        and batch.pieces is None
        and batch.spans is None
        and (segmenter is None or segmenter.begins_with_space)
    )


def _lines(batch: Batch, columns: conllu_columns.Columns) -> list[str]:
    """The raw text of each sentence, empty where it is missing or in doubt."""
    if batch.text is None:
        return [comment or "" for comment in columns.comments]
    texts = [batch.text[number] for number in columns.records.tolist()]
    pairs = zip(texts, columns.comments, strict=True)
    return [text if comment in (None, text) else "" for text, comment in pairs]


def _repeated(places: Ints, counts: Ints) -> Bools:
    """Whether a word has the place of the word before, as those of one multi-word token have."""
    same = (places == np.roll(places, 1, axis=1)).all(axis=0)
    same[before(counts)] = False
    return same


def cut(lines: Sequence[str], counts: Ints, places: Ints, spaced: bool) -> tuple[list[str], Bools]:
    """The text of each word with what stands before it, as `alignment.segments` cuts a line.

    Args:
        lines: raw text.
        counts: words of each line.
        places: first character of each word in its line, and the one after the last [2, W].
        spaced: whether the first part of a line begins with a space in any case.

    Returns:
        the parts, and which words cannot stand there.
    """
    text = "".join([f"{line}\n" for line in lines])
    codes = codes_of(text)
    lengths = np.fromiter(map(len, lines), np.int64, len(lines))
    base = np.repeat(before(lengths + 1), counts)
    length = np.repeat(lengths, counts)
    firsts, ends = before(counts), places[1].copy()
    begins = np.append(0, ends[:-1])
    begins[firsts] = 0
    faults = (places[0] < begins) | (places[0] >= ends) | (ends > length)
    for edge in (places[0], ends - 1):
        faults |= codes[np.where(faults, 0, base + edge)] == ord(" ")
    ends[firsts + counts - 1] = lengths
    cuts = zip((base + begins).tolist(), (base + ends).tolist(), strict=True)
    parts = [text[begin:end] for begin, end in cuts]
    if spaced:
        for word in firsts.tolist():
            if not parts[word].startswith(" "):
                parts[word] = " " + parts[word]
    return parts, faults


def _tokens(parts: list[str], segmenter: Segmenter | None, placed: bool) -> Tokens:
    unique, which = different(parts, len(parts))
    pieces = _pieces(unique, segmenter, placed)
    widths = np.fromiter((len(word) or 1 for word in pieces), np.int64, len(pieces))
    filled = chain.from_iterable(word or (NO_PIECES,) for word in pieces)
    symbols, ids = different(filled, int(widths.sum()))
    faults = np.fromiter((not word for word in pieces), bool, len(pieces))
    if " ".join(symbols).split() != symbols:
        unfit = np.array([symbol.split() != [symbol] for symbol in symbols])
        faults |= any_of_each(unfit[ids], widths)
    own = runs(before(widths)[which], widths[which])
    return Tokens(symbols, ids[own], widths[which], faults[which])


def _pieces(parts: list[str], segmenter: Segmenter | None, placed: bool) -> list[list[str]]:
    if segmenter is None:
        return [part.split() for part in parts]
    return segmenter.parts(parts) if placed else segmenter.forms(parts)


def _attached(forest: Forest, tokens: Tokens, policy: str) -> EncodedBatch:
    """The pieces in the places of the words, as `treesyntax.transforms.subwords` has it."""
    counts = sum_of_each(tokens.widths, forest.sizes)
    if policy in ("siblings", "chain"):
        forest, ranks = with_pieces(forest, tokens.widths, policy == "chain")
        order = preorder(forest, ranks)
        nodes = order.numbers
    else:
        order = preorder(forest)
        nodes = np.repeat(order.numbers, tokens.widths)
        if policy != "copy":
            ends = np.cumsum(tokens.widths)
            placed = ends - (tokens.widths if policy == "first" else 1)
            nodes = np.full(len(tokens.ids), NO_NODE)
            nodes[placed] = order.numbers
    sizes, widths, *arrays = (
        array.astype(np.int32)
        for array in (forest.sizes, counts, order.parents, order.branches, nodes)
    )
    return EncodedBatch(tokens.symbols, tokens.ids, widths, TreeArrays(sizes, widths, *arrays))
