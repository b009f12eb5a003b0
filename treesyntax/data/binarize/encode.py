"""One batch of records to integers: what every worker process of ``treesyntax binarize`` does."""

from __future__ import annotations

import re

import numpy as np

from treesyntax.data.binarize.batch import (
    CONLLU,
    PLACED_FORMATS,
    TEXT,
    WORDS_LINEARIZATION,
    Batch,
    EncodedBatch,
    Encoding,
    arranged,
    by_appearance,
    different,
    numbered,
    segmenter_of,
)
from treesyntax.data.binarize.columns import encode_usual
from treesyntax.data.binarize.sentence import encode_one_by_one, group_pieces, raw_text
from treesyntax.trees.formats import Record, get_format, parse_record
from treesyntax.trees.formats.columns import codes_of, strings

IS_SPACE = np.array([chr(code).isspace() for code in range(256)])
WIDE_SPACE = re.compile(r"[^\S\0-\xff]")  # what `codes_of` does not tell apart

__all__ = [
    "CONLLU", "PLACED_FORMATS", "TEXT", "WORDS_LINEARIZATION", "Batch", "EncodedBatch", "Encoding",
    "encode_batch", "group_pieces", "words_of_batch",
]  # fmt: skip


def encode_batch(encoding: Encoding, batch: Batch) -> EncodedBatch:
    """Parse, segment and linearize.

    Usual sentences are worked on together, all others, with faults too, one after another.

    Raises:
        InputError: with file and line, if a record is malformed or pieces do not fit.
    """
    if encoding.format_name == TEXT:
        lines = batch.records.texts
        segmenter = segmenter_of(encoding)
        return numbered(segmenter.lines(lines), None) if segmenter else _by_space(lines)
    found = encode_usual(encoding, batch)
    if found is None:
        return encode_one_by_one(encoding, batch)
    usual, numbers, kept = found
    size = len(batch.records.texts)
    if len(numbers) == size and kept.all():
        return usual
    is_usual = np.zeros(size, bool)
    is_usual[numbers[kept]] = True
    rest = np.flatnonzero(~is_usual)
    others = encode_one_by_one(encoding, batch.part(rest.tolist()))
    order = np.empty(size, np.int64)
    order[numbers[kept]] = np.flatnonzero(kept)
    order[rest] = len(numbers) + np.arange(len(rest))
    return arranged([usual, others], order)


def _by_space(lines: list[str]) -> EncodedBatch:
    """What white space separates in each line; all lines are split together."""
    text = "\n".join(lines) + "\n"
    if text.count("\n") != len(lines) or (not text.isascii() and WIDE_SPACE.search(text)):
        return numbered([line.split() for line in lines], None)
    inside = np.append(False, ~IS_SPACE[codes_of(text)])
    starts = np.flatnonzero(inside[1:] & ~inside[:-1])
    ends = np.flatnonzero(inside[:-1] & ~inside[1:])
    words, which = strings(text, starts, ends)
    symbols, numbers = different(words, len(words))
    ids, old = by_appearance(numbers[which], len(symbols))
    line_ends = np.cumsum(np.fromiter(map(len, lines), np.int64, len(lines)) + 1)
    counts = np.diff(np.searchsorted(starts, line_ends), prepend=0).astype(np.int32)
    return EncodedBatch([symbols[number] for number in old.tolist()], ids, counts, None)


def words_of_batch(encoding: Encoding, batch: Batch) -> list[str]:
    """The raw text of each record, or its words, as a line to train a subword model on.

    Raises:
        InputError: with file and line, if a record is malformed.
    """
    if encoding.format_name == TEXT:
        return batch.records.texts
    if encoding.units:
        return [raw_text(batch, number) for number in range(len(batch.records.texts))]
    tree_format = get_format(encoding.format_name)
    trees = (
        parse_record(tree_format, batch.path, record) for record in map(Record, *batch.records)
    )
    return [" ".join(tree.labels[node] for node in tree.word_nodes()) for tree in trees]
