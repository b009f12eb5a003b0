"""Records of trees to tokens one after another: every option, and every message about a fault."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from treesyntax.data.binarize.alignment import Span
from treesyntax.data.binarize.batch import (
    WORDS_LINEARIZATION,
    Batch,
    EncodedBatch,
    Encoding,
    numbered,
    segmenter_of,
)
from treesyntax.data.binarize.raw_text import (
    LINE_UNITS,
    check_places,
    over_line,
    over_pieces,
    over_tokens,
)
from treesyntax.data.binarize.spelling import CONTINUES, WORD_START
from treesyntax.data.tree_store import TreeArrays
from treesyntax.errors import InputError, TreeError
from treesyntax.trees.controls import GIVEN, control_tree
from treesyntax.trees.formats import Record, RecordError, get_format, parse_record
from treesyntax.trees.formats.offsets import conllu_comment, conllu_spans, line_spans
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.subwords import Segmented, attach, linearize
from treesyntax.trees.tree import Tree


def encode_one_by_one(encoding: Encoding, batch: Batch) -> EncodedBatch:
    """Parse, segment and linearize trees.

    Raises:
        InputError: with file and line, if a record is malformed or pieces do not fit.
    """
    linearization = get_linearization(encoding.linearization)
    sentences, token_nodes, trees = [], [], []
    for number, record in enumerate(map(Record, *batch.records)):
        tree = parse_record(get_format(encoding.format_name), batch.path, record)
        try:
            segmented = _segment(tree, encoding, batch, number)
            tokens, nodes = linearize(segmented, linearization)
        except TreeError as error:
            raise InputError(batch.path, record.line, error.cause, error.remedy) from None
        sentences.append(tokens)
        token_nodes.append(nodes)
        trees.append(segmented.tree)
    counts = _counts(sentences)
    arrays = TreeArrays(
        _counts(trees),
        counts,
        _joined([tree.parents for tree in trees]),
        _joined([tree.branches for tree in trees]),
        np.fromiter(chain.from_iterable(token_nodes), np.int32),
    )
    return numbered(sentences, arrays)


def group_pieces(pieces: list[str], style: str) -> list[list[str]]:
    """Pieces gathered by word: a new word begins at ``▁`` or ends before no ``@@``."""
    words: list[list[str]] = []
    complete = True
    for piece in pieces:
        begins = piece.startswith(WORD_START) if style == "sentencepiece" else complete
        if begins or not words:  # the first piece of a line begins a word, marked or not
            words.append([])
        words[-1].append(piece)
        complete = not piece.endswith(CONTINUES)
    return words


def _controlled(tree: Tree, encoding: Encoding) -> Tree:
    if encoding.control == GIVEN:
        return tree
    if encoding.linearization == WORDS_LINEARIZATION and len(tree) and not tree.word_nodes():
        raise TreeError(
            f"the tree has no words, and its leaves would not be those of the {encoding.control} "
            "control tree",
            f"choose another linearization than {WORDS_LINEARIZATION}",
        )
    return control_tree(tree, encoding.control, encoding.control_seed)


def _segment(tree: Tree, encoding: Encoding, batch: Batch, number: int) -> Segmented:
    if encoding.units:
        tree, pieces = _by_offsets(tree, encoding, batch, number)
        return attach(_controlled(tree, encoding), pieces, encoding.policy)
    tree = _controlled(tree, encoding)
    nodes = tree.word_nodes()
    words = [tree.labels[node] for node in nodes]
    if batch.pieces is None or batch.pieces_path is None:
        if segmenter := segmenter_of(encoding):
            return attach(tree, segmenter.words(words), encoding.policy)
        # CoNLL-U has words with spaces (10 000): they are the tokens that they are in text.
        split = [word.split() for word in words]
        plain = all(len(pieces) == 1 for pieces in split)
        return Segmented(tree, nodes, split) if plain else attach(tree, split, encoding.policy)
    line = batch.pieces.record(number)
    pieces = group_pieces(line.text.split(), encoding.pieces_style)
    if len(pieces) != len(words):
        raise InputError(
            batch.pieces_path,
            line.line,
            f"the pieces make {len(pieces)} words, but the tree at "
            f"{batch.path}:{batch.records.lines[number]} has {len(words)}",
            "segment the very words of the trees and choose the right --pieces-style",
        )
    return attach(tree, pieces, encoding.policy)


def _by_offsets(
    tree: Tree, encoding: Encoding, batch: Batch, number: int
) -> tuple[Tree, list[list[str]]]:
    text = raw_text(batch, number)
    spans = _spans(batch, number, text)
    check_places(tree, text, spans)
    if batch.pieces is not None and batch.pieces_path is not None:
        line = batch.pieces.record(number)
        try:
            return over_pieces(tree, text, spans, line.text.split(), encoding.pieces_style)
        except TreeError as error:
            raise InputError(batch.pieces_path, line.line, error.cause, error.remedy) from None
    segmenter = segmenter_of(encoding)
    if segmenter and encoding.units == LINE_UNITS:
        return over_line(tree, text, spans, segmenter)
    return over_tokens(tree, text, spans, segmenter)


def raw_text(batch: Batch, number: int) -> str:
    """The raw line of a record: as given, else the one of its comment; they must be the same.

    Raises:
        InputError: with file and line, if there is none, or they differ.
    """
    record = batch.records.record(number)
    comment = conllu_comment(record.text)
    if batch.text is None:
        if comment is None:
            cause = "the sentence has no comment '# text ='"
            raise InputError(batch.path, record.line, cause, "give its text with --source-text")
        return comment
    text = batch.text[number]
    if comment is not None and comment != text and comment.strip() != text.strip():
        raise InputError(
            batch.path,
            record.line,
            f"the tree is that of {comment[:40]!r}, but the text is {text[:40]!r}",
            "give the very text of the trees, line by line",
        )
    return text


def _spans(batch: Batch, number: int, text: str) -> Sequence[Span]:
    path, record = batch.path, batch.records.record(number)
    if batch.spans is not None:
        return batch.spans[number]
    try:
        if batch.offsets is None or batch.offsets_path is None:
            return conllu_spans(record.text, text)
        path, record = batch.offsets_path, batch.offsets.record(number)
        return line_spans(record.text)
    except RecordError as error:
        raise InputError(path, record.line + error.offset, error.cause, error.remedy) from None


def _counts(items: list) -> NDArray[np.int32]:
    return np.fromiter(map(len, items), np.int32, len(items))


def _joined(arrays: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.concatenate([np.zeros(0, dtype=np.int32), *arrays])
