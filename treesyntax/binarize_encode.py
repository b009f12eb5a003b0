"""One batch of records to integers: what every worker process of ``treesyntax binarize`` does."""

from __future__ import annotations

from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treesyntax.errors import InputError, TreeError
from treesyntax.formats import Record, get_format, parse_record
from treesyntax.linearize import get_view
from treesyntax.segment import Segmenter
from treesyntax.store import TreeArrays
from treesyntax.transforms.controls import GIVEN, control_tree
from treesyntax.transforms.subwords import Segmented, attach, linearise
from treesyntax.tree import Tree

TEXT = "text"
WORDS_VIEW = "words"
WORD_START = "▁"
CONTINUES = "@@"
PIECES_STYLES = ("sentencepiece", "subword-nmt")


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
    """

    format_name: str
    view: str
    policy: str
    pieces_style: str
    model: Path | None = None
    control: str = GIVEN
    control_seed: int = 0


class Batch(NamedTuple):
    """Raw records of one file and, where given, the lines of pieces that belong to them."""

    path: Path
    records: list[Record]
    pieces_path: Path | None = None
    pieces: list[Record] | None = None


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
            segmented = _segment(_controlled(tree, encoding), encoding, batch, number)
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
    """The words of each record as a line of text, to train a subword model on.

    Raises:
        InputError: with file and line, if a record is malformed.
    """
    if encoding.format_name == TEXT:
        return [record.text for record in batch.records]
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
    record = batch.records[number]
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
            f"the pieces make {len(pieces)} words, but the tree at {batch.path}:{record.line} "
            f"has {len(words)}",
            "segment the very words of the trees and choose the right --pieces-style",
        )
    return attach(tree, pieces, encoding.policy)


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
