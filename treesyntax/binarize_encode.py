"""One batch of records to integers: what every worker process of ``treesyntax binarize`` does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treesyntax.alignment import Span
from treesyntax.binarize_offsets import (
    LINE_UNITS,
    check_places,
    over_line,
    over_pieces,
    over_tokens,
)
from treesyntax.errors import InputError, TreeError
from treesyntax.formats import Record, RecordError, get_format, parse_record
from treesyntax.formats.offsets import conllu_comment, conllu_spans, line_spans
from treesyntax.linearize import get_view
from treesyntax.segment import Segmenter
from treesyntax.spelling import CONTINUES, WORD_START
from treesyntax.store import TreeArrays
from treesyntax.transforms.controls import GIVEN, control_tree
from treesyntax.transforms.subwords import Segmented, attach, linearise
from treesyntax.tree import Tree

TEXT = "text"
WORDS_VIEW = "words"
CONLLU = "conllu"
# The formats for which the parsers keep the places of words.
PLACED_FORMATS = (CONLLU, "ptb")


class Encoding(NamedTuple):
    """How one side becomes tokens; small and hashable, it travels with every batch.

    Attributes:
        format_name: ``text`` or the name of a tree format.
        view: name of the linearisation.
        policy: how pieces are attached to trees.
        pieces_style: how given pieces mark the words they belong to.
        model: SentencePiece model, None for none.
        control: name of the control tree that takes the place of each tree.
        control_seed: seed of random control trees.
        units: what is segmented: "" each word by its form; "token" each word, or "line" each
            line as a whole, by the places of words in the raw text.
    """

    format_name: str
    view: str
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
    records: list[Record]
    pieces_path: Path | None = None
    pieces: list[Record] | None = None
    text: list[str] | None = None
    spans: Sequence[Sequence[Span]] | None = None
    offsets_path: Path | None = None
    offsets: list[Record] | None = None


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


def encode_batch(encoding: Encoding, batch: Batch) -> EncodedBatch:
    """Parse, segment and linearise.

    Raises:
        InputError: with file and line, if a record is malformed or pieces do not fit.
    """
    if encoding.format_name == TEXT:
        segmenter = _segmenter(encoding.model) if encoding.model else None
        split = segmenter.line if segmenter else str.split
        return _number([split(record.text) for record in batch.records], None)
    view = get_view(encoding.view)
    sentences, token_nodes, trees = [], [], []
    for number, record in enumerate(batch.records):
        tree = parse_record(get_format(encoding.format_name), batch.path, record)
        try:
            segmented = _segment(tree, encoding, batch, number)
            tokens, nodes = linearise(segmented, view)
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
    return _number(sentences, arrays)


def words_of_batch(encoding: Encoding, batch: Batch) -> list[str]:
    """The raw text of each record, or its words, as a line to train a subword model on.

    Raises:
        InputError: with file and line, if a record is malformed.
    """
    if encoding.format_name == TEXT:
        return [record.text for record in batch.records]
    if encoding.units:
        return [_text(batch, number) for number in range(len(batch.records))]
    tree_format = get_format(encoding.format_name)
    trees = (parse_record(tree_format, batch.path, record) for record in batch.records)
    return [" ".join(tree.labels[node] for node in tree.word_nodes()) for tree in trees]


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
    if encoding.view == WORDS_VIEW and len(tree) and not tree.word_nodes():
        raise TreeError(
            f"the tree has no words, and its leaves would not be those of the {encoding.control} "
            "control tree",
            f"choose another view than {WORDS_VIEW}",
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
        if encoding.model is not None:
            return attach(tree, _segmenter(encoding.model).words(words), encoding.policy)
        # CoNLL-U has words with spaces (10 000): they are the tokens that they are in text.
        split = [word.split() for word in words]
        plain = all(len(pieces) == 1 for pieces in split)
        return Segmented(tree, nodes, split) if plain else attach(tree, split, encoding.policy)
    line = batch.pieces[number]
    pieces = group_pieces(line.text.split(), encoding.pieces_style)
    if len(pieces) != len(words):
        raise InputError(
            batch.pieces_path,
            line.line,
            f"the pieces make {len(pieces)} words, but the tree at "
            f"{batch.path}:{batch.records[number].line} has {len(words)}",
            "segment the very words of the trees and choose the right --pieces-style",
        )
    return attach(tree, pieces, encoding.policy)


def _by_offsets(
    tree: Tree, encoding: Encoding, batch: Batch, number: int
) -> tuple[Tree, list[list[str]]]:
    text = _text(batch, number)
    spans = _spans(batch, number, text)
    check_places(tree, text, spans)
    if batch.pieces is not None and batch.pieces_path is not None:
        line = batch.pieces[number]
        try:
            return over_pieces(tree, text, spans, line.text.split(), encoding.pieces_style)
        except TreeError as error:
            raise InputError(batch.pieces_path, line.line, error.cause, error.remedy) from None
    segmenter = _segmenter(encoding.model) if encoding.model else None
    if segmenter and encoding.units == LINE_UNITS:
        return over_line(tree, text, spans, segmenter)
    return over_tokens(tree, text, spans, segmenter)


def _text(batch: Batch, number: int) -> str:
    """The raw line of a record: as given, else the one of its comment; they must be the same."""
    record = batch.records[number]
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
    path, record = batch.path, batch.records[number]
    if batch.spans is not None:
        return batch.spans[number]
    try:
        if batch.offsets is None or batch.offsets_path is None:
            return conllu_spans(record.text, text)
        path, record = batch.offsets_path, batch.offsets[number]
        return line_spans(record.text)
    except RecordError as error:
        raise InputError(path, record.line + error.offset, error.cause, error.remedy) from None


@lru_cache(maxsize=4)
def _segmenter(model: Path) -> Segmenter:
    return Segmenter(model)


def _number(sentences: list[list[str]], trees: TreeArrays | None) -> EncodedBatch:
    symbols = list(dict.fromkeys(chain.from_iterable(sentences)))
    number_of = {symbol: number for number, symbol in enumerate(symbols)}
    ids = map(number_of.__getitem__, chain.from_iterable(sentences))
    counts = _counts(sentences)
    return EncodedBatch(symbols, np.fromiter(ids, np.int32, counts.sum()), counts, trees)


def _counts(items: list) -> NDArray[np.int32]:
    return np.fromiter(map(len, items), np.int32, len(items))


def _joined(arrays: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.concatenate([np.zeros(0, dtype=np.int32), *arrays])
