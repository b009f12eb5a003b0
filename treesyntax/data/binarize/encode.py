"""One batch of records to integers: what every worker process of ``treesyntax binarize`` does."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, count, islice
from pathlib import Path
from unicodedata import normalize

import numpy as np
from numpy.typing import NDArray

from treesyntax.data.binarize.alignment import Span
from treesyntax.data.binarize.batch import Batch, EncodedBatch
from treesyntax.data.binarize.raw_text import (
    check_spans_of_tree,
    over_line,
    over_subwords,
    over_tokens,
)
from treesyntax.data.binarize.spelling import MISSPELT, alike_until, by_word, text_of
from treesyntax.data.encoding import CONLLU, LINE_UNITS, TEXT, WORDS_LINEARIZATION, Encoding
from treesyntax.data.sentencepiece import Segmenter
from treesyntax.data.tree_store import TreeArrays
from treesyntax.errors import InputError, TreeError
from treesyntax.remarks import Remarks, remarks_of
from treesyntax.trees.controls import control_tree
from treesyntax.trees.formats import Record, get_format, parse_record
from treesyntax.trees.formats.base import RecordError
from treesyntax.trees.formats.conllu import check_tokens
from treesyntax.trees.formats.moses import check_line, check_markup, check_subwords, check_trees
from treesyntax.trees.formats.offsets import (
    OTHER_FORM,
    conllu_comment,
    conllu_spans,
    first_misspelt,
    line_spans,
)
from treesyntax.trees.labels import node_labels
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.names import GIVEN, SHUFFLED
from treesyntax.trees.subwords import Segmented, attach, linearize
from treesyntax.trees.tree import Tree

SHOWN = 40
"""Characters of a text in a message."""


def encode_batch(encoding: Encoding, batch: Batch) -> EncodedBatch:
    """Parse, segment and linearize every record.

    Raises:
        InputError: with file and line, if a record is malformed or subwords do not fit.
    """
    with remarks_of(batch.path) as remarks:
        remarks.records = len(batch.records.texts)
        if encoding.format_name == TEXT:
            return _encode_text(encoding, batch, remarks)
        return _encode_trees(encoding, batch, remarks)


def _encode_trees(encoding: Encoding, batch: Batch, remarks: Remarks) -> EncodedBatch:
    tree_format = get_format(encoding.format_name)
    linearization = get_linearization(encoding.linearization)
    index_of, label_of = _new_indices(), _new_indices()
    labels: list[int] = []
    node_counts: list[int] = []
    token_counts: list[int] = []
    ids: list[int] = []
    token_nodes: list[int] = []
    parents: list[NDArray[np.int32]] = []
    branches: list[NDArray[np.int32]] = []
    for index, record in enumerate(map(Record, *batch.records)):
        tree = parse_record(tree_format, batch.path, record)
        if batch.spans is not None and batch.text is not None:  # nobody has looked at the line
            check_line(batch.text[index])
            check_trees(batch.text[index])
        try:
            segmented = _segment(tree, encoding, batch, index)
            tokens, nodes = linearize(segmented, linearization)
        except TreeError as error:
            raise InputError(batch.path, record.line, error.cause, error.remedy) from None
        ids += map(index_of.__getitem__, tokens)
        token_nodes += nodes
        token_counts.append(len(tokens))
        node_counts.append(len(segmented.tree))
        if encoding.labels:
            labels += map(label_of.__getitem__, node_labels(segmented.tree))
        parents.append(segmented.tree.parents)
        branches.append(segmented.tree.branches)
    counts = _array(token_counts)
    trees = TreeArrays(
        _array(node_counts),
        counts,
        np.concatenate([_array([]), *parents]),
        np.concatenate([_array([]), *branches]),
        _array(token_nodes),
        _array(labels) if encoding.labels else None,
    )
    return EncodedBatch(list(index_of), _array(ids), counts, trees, list(label_of), remarks)


def _encode_text(encoding: Encoding, batch: Batch, remarks: Remarks) -> EncodedBatch:
    segmenter, lines = _segmenter(encoding.model), batch.records.texts
    for remarks.line, line in zip(batch.records.lines, lines, strict=True):
        check_markup(line)
        if segmenter:
            check_subwords(line)
    sentences = segmenter.lines(lines) if segmenter else map(str.split, lines)
    index_of = _new_indices()
    counts: list[int] = []
    ids: list[int] = []
    for tokens in sentences:
        ids += map(index_of.__getitem__, tokens)
        counts.append(len(tokens))
    return EncodedBatch(list(index_of), _array(ids), _array(counts), None, (), remarks)


def _new_indices() -> defaultdict[str, int]:
    """Gives every new string the next index."""
    return defaultdict(count().__next__)


def _array(values: Sequence[int]) -> NDArray[np.int32]:
    return np.fromiter(values, np.int32, len(values))


def words_of_batch(encoding: Encoding, batch: Batch) -> list[str]:
    """The raw text of each record, or its words, as a line to train a subword model on."""
    if encoding.format_name == TEXT:
        return batch.records.texts
    if encoding.units:
        return [raw_text(batch, index) for index in range(len(batch.records.texts))]
    tree_format = get_format(encoding.format_name)
    records = map(Record, *batch.records)
    trees = (parse_record(tree_format, batch.path, record) for record in records)
    return [" ".join(tree.labels[node] for node in tree.word_nodes()) for tree in trees]


@lru_cache(maxsize=4)
def _segmenter(model: Path | None) -> Segmenter | None:
    return Segmenter(model) if model else None


def _controlled(tree: Tree, encoding: Encoding) -> Tree:
    if encoding.control == GIVEN:
        return tree
    if encoding.linearization == WORDS_LINEARIZATION and len(tree) and not tree.word_nodes():
        raise TreeError(
            f"the tree has no words, and its leaves would not be those of the {encoding.control} "
            "control tree",
            f"choose another linearization than {WORDS_LINEARIZATION}",
        )
    if encoding.control == SHUFFLED and (encoding.model or encoding.units):
        raise TreeError(
            "shuffled trees know a node by its children, of which subwords make others",
            "binarize the target without subwords",
        )
    return control_tree(tree, encoding.control, encoding.control_seed)


def _segment(tree: Tree, encoding: Encoding, batch: Batch, index: int) -> Segmented:
    if encoding.units:
        tree, subwords = _by_spans(tree, encoding, batch, index)
        return attach(_controlled(tree, encoding), subwords, encoding.policy)
    if encoding.format_name == CONLLU and batch.spans is None:  # with them it was parsed just now
        check_tokens(batch.records.texts[index])
    tree = _controlled(tree, encoding)
    nodes = tree.word_nodes()
    words = [tree.labels[node] for node in nodes]
    if batch.subwords is None or batch.subwords_path is None:
        if segmenter := _segmenter(encoding.model):
            check_subwords(" ".join(words))
            return attach(tree, segmenter.words(words), encoding.policy)
        # CoNLL-U has words with spaces (10 000): they are the tokens that they are in text.
        split = [word.split() for word in words]
        plain = all(len(tokens) == 1 for tokens in split)
        return Segmented(tree, nodes, split) if plain else attach(tree, split, encoding.policy)
    return attach(tree, _given_subwords(words, encoding, batch, index), encoding.policy)


def _given_subwords(
    words: list[str], encoding: Encoding, batch: Batch, index: int
) -> list[list[str]]:
    """The subwords of each word of a tree, in a line that was segmented elsewhere."""
    assert batch.subwords is not None
    line, style = batch.subwords.record(index), encoding.subwords_style
    subwords = by_word(line.text.split(), style)
    # To whoever segmented them, words with spaces (10 000) were several words.
    split = [word.split() for word in words]
    spaced = any(len(fragments) != 1 for fragments in split) and len(subwords) == sum(
        map(len, split)
    )
    if spaced:
        words = [fragment for fragments in split for fragment in fragments]
    at_tree = f"the tree at {batch.path}:{batch.records.lines[index]} has"
    cause = ""
    if len(subwords) != len(words):
        cause = f"the subwords make {len(subwords)} words, but {at_tree} {len(words)}"
    else:
        spelled = [text_of(word, style) for word in subwords]
        number = first_misspelt(words, spelled, MISSPELT)
        if number is not None:
            cause = f"the subwords spell {spelled[number][:40]!r} where {at_tree} {words[number][:40]!r}"
    if cause:
        raise InputError(
            batch.subwords_path or batch.path,
            line.line,
            cause,
            "segment the very words of the trees and choose the right --subwords-style",
        )
    if not spaced:
        return subwords
    rest = iter(subwords)
    return [list(chain.from_iterable(islice(rest, len(fragments)))) for fragments in split]


def _by_spans(
    tree: Tree, encoding: Encoding, batch: Batch, index: int
) -> tuple[Tree, list[list[str]]]:
    text = raw_text(batch, index)
    spans = _spans(batch, index, text)
    # The words of CoNLL-U were compared as its spans were read, with those of its multi-word tokens.
    compared = batch.spans is None and batch.offsets is None
    check_spans_of_tree(tree, text, spans, spelt=compared)
    if batch.subwords is not None and batch.subwords_path is not None:
        line = batch.subwords.record(index)
        try:
            return over_subwords(tree, text, spans, line.text.split(), encoding.subwords_style)
        except TreeError as error:
            raise InputError(batch.subwords_path, line.line, error.cause, error.remedy) from None
    segmenter = _segmenter(encoding.model)
    if segmenter:
        check_subwords(text)
    if segmenter and encoding.units == LINE_UNITS:
        return over_line(tree, text, spans, segmenter)
    return over_tokens(tree, text, spans, segmenter)


def raw_text(batch: Batch, index: int) -> str:
    """The raw line of a record: the given one, else that of its comment; they must be equal."""
    record = batch.records.record(index)
    comment = conllu_comment(record.text)
    if batch.text is None:
        if comment is None:
            cause = "the sentence has no comment '# text ='"
            raise InputError(batch.path, record.line, cause, "give its text with --source-text")
        return comment
    text = batch.text[index]
    if comment is not None and comment != text and comment.strip() != text.strip():
        raise InputError(
            batch.path,
            record.line,
            _difference(comment, text),
            "give the very text of the trees, line by line",
        )
    return text


def _difference(comment: str, text: str) -> str:
    """What is wrong with a text that is not the one of its tree, shown where they differ."""
    equal = alike_until(comment, text)
    begin = equal - SHOWN // 2 if equal >= SHOWN else 0
    of_tree, given = (f"{'…' * (begin > 0)}{x[begin:][:SHOWN]!r}" for x in (comment, text))
    alike = normalize("NFC", comment) == normalize("NFC", text)
    return f"the tree is that of {of_tree}, but the text is {given}{OTHER_FORM * alike}"


def _spans(batch: Batch, index: int, text: str) -> Sequence[Span]:
    path, record = batch.path, batch.records.record(index)
    if batch.spans is not None:
        return batch.spans[index]
    try:
        if batch.offsets is None or batch.offsets_path is None:
            return conllu_spans(record.text, text)
        path, record = batch.offsets_path, batch.offsets.record(index)
        return line_spans(record.text)
    except RecordError as error:
        raise InputError(path, record.line + error.offset, error.cause, error.remedy) from None
