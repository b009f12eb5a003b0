"""Encoded batches to fairseq's files: gather symbols, choose ids, write ``.bin .idx .tree``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesyntax.data.binarize.batch import EncodedBatch
from treesyntax.data.binarize.encode import encode_batch
from treesyntax.data.binarize.options import BinarizeOptions, SideOptions
from treesyntax.data.binarize.read import BatchMap, changed, tasks
from treesyntax.data.binarize.unknown import SUFFIX, UnknownWords
from treesyntax.data.dictionary import EOS, Dictionary, one_unknown, unknown_symbol
from treesyntax.data.manifest import dictionary_file, label_numbers, labels_file
from treesyntax.data.token_files import Fingerprint, TokenData, write_tokens
from treesyntax.data.tree_store import deepest
from treesyntax.data.tree_store_write import TreeStoreWriter
from treesyntax.errors import OptionError
from treesyntax.files import write_lines
from treesyntax.remarks import Remarks
from treesyntax.trees.copies import (
    copied_forms,
    copied_label,
    placeholder,
    placeholder_table,
)
from treesyntax.trees.linearizations import get_linearization


class Symbols:
    """All symbols so far, in order of first appearance, and their counts in the training data."""

    def __init__(self) -> None:
        self._index_of: defaultdict[str, int] = defaultdict(count().__next__)
        self._counts: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def add(
        self, symbols: Sequence[str], ids: NDArray[np.integer], counted: bool
    ) -> NDArray[np.int32]:
        """The index of each symbol of a batch, whose tokens are ``ids``; ``counted`` for training
        data."""
        index_of, size = self._index_of, len(symbols)
        indices = np.fromiter(map(index_of.__getitem__, symbols), np.int32, size)
        if len(index_of) > len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros(len(index_of), dtype=np.int64)])
        if counted:
            self._counts[indices] += np.bincount(ids, minlength=size)
        return indices

    def trained_counts(self) -> dict[str, int]:
        """Occurrences of each symbol of the training data."""
        pairs = zip(self._index_of, self._counts[: len(self._index_of)].tolist(), strict=True)
        return {symbol: count for symbol, count in pairs if count}

    @property
    def names(self) -> list[str]:
        """The symbols by index."""
        return list(self._index_of)

    def ids_in(self, dictionary: Dictionary) -> NDArray[np.int64]:
        """The dictionary's id of each symbol."""
        return np.fromiter(map(dictionary.index, self._index_of), np.int64, len(self._index_of))


@dataclass
class Counts:
    """What was written of one side of one split; tokens without ends of sentences.

    Attributes:
        longest: tokens of the longest sentence.
        deepest: steps from the root to the deepest node of all trees.
        bin_crc32: the checksum of its ``.bin`` file.
        remarks: what the reader found odd in the file, or left out, as `Remarks.to_json` has it.
    """

    sentences: int = 0
    tokens: int = 0
    nodes: int = 0
    unknown: int = 0
    empty: int = 0
    longest: int = 0
    deepest: int = 0
    bin_crc32: int = 0
    remarks: Sequence[dict[str, Any]] = ()


class Spool:
    """One side of one split in temporary files until the dictionary is known."""

    def __init__(self, path: Path, folder: Path, has_trees: bool, has_labels: bool = False) -> None:
        self.remarks = Remarks(path)
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115, kept open for all batches
        self._batches: list[tuple[int, NDArray[np.int32]]] = []
        self._trees = TreeStoreWriter(folder, has_labels) if has_trees else None
        self.sentences = self.longest = self.deepest = 0

    def append(
        self,
        batch: EncodedBatch,
        indices: NDArray[np.int32],
        label_indices: NDArray[np.int32] | None = None,
    ) -> None:
        """Keep a batch with the index of each of its symbols, and of its labels."""
        self._file.write(indices.data)
        self._file.write(batch.ids.data)
        self._batches.append((len(indices), batch.token_counts))
        self.sentences += len(batch.token_counts)
        if batch.remarks:
            self.remarks.extend(batch.remarks)
        self.longest = max(self.longest, int(batch.token_counts.max(initial=0)))
        if self._trees and batch.trees:
            self.deepest = max(self.deepest, deepest(batch.trees))
            trees = batch.trees
            if trees.labels is not None and label_indices is not None:
                trees = trees._replace(labels=label_indices[trees.labels])
            self._trees.append(trees)

    def write(
        self,
        prefix: Path,
        linearization: str,
        ids_of_symbols: NDArray[np.int64],
        dictionary: Dictionary,
        label_ids: NDArray[np.int64] | None = None,
        unknown: UnknownWords | None = None,
    ) -> Counts:
        """Write the token files and, if there are trees, the tree store; ``unknown`` numbers words."""
        counts = Counts(
            self.sentences,
            nodes=self._trees.nodes if self._trees else 0,
            longest=self.longest,
            deepest=self.deepest,
            remarks=self.remarks.to_json("trees" if self._trees else "lines"),
        )
        tokens = self._tokens(ids_of_symbols, dictionary, counts, unknown)
        fingerprint: Fingerprint = write_tokens(prefix, tokens, len(dictionary), EOS)
        counts.bin_crc32 = TokenData(prefix).bin_crc32()
        if self._trees:
            self._trees.write(f"{prefix}.tree", linearization, fingerprint, label_ids)
        return counts

    def _tokens(
        self,
        ids_of_symbols: NDArray[np.int64],
        dictionary: Dictionary,
        counts: Counts,
        unknown: UnknownWords | None,
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32]]]:
        """The dictionary's ids of each batch [T] and tokens a sentence [S], counted on the way."""
        self._file.seek(0)
        for symbols, sizes in self._batches:
            indices = self._read(symbols)
            table = ids_of_symbols[indices]
            tokens = self._read(int(sizes.sum(dtype=np.int64)))
            counts.tokens += len(tokens)
            counts.unknown += int(np.isin(table, dictionary.unknown_ids)[tokens].sum())
            counts.empty += int((sizes == 0).sum())
            ids = table[tokens]
            if unknown is not None:
                unknown.number(ids, indices[tokens], sizes)
            yield ids, sizes

    def _read(self, size: int) -> NDArray[np.int32]:
        return np.frombuffer(self._file.read(4 * size), np.int32)


def encode_sides(
    options: BinarizeOptions,
    sentences: dict[str, int],
    batch_map: BatchMap,
    folder: Path,
    advance: Callable[[int], None],
) -> tuple[dict[tuple[str, str], Spool], dict[str, Symbols]]:
    """Encode all files: the spools by role and split, and the symbols of each role.

    ``advance`` is called with the number of sentences of each batch that is done.
    """
    joined = Symbols()
    sides = options.sides
    symbols = {side.role: joined if options.joined_dictionary else Symbols() for side in sides}
    side_splits = [(side, split) for split in options.source.files for side in sides]
    labels = {side.role: Symbols() for side in sides if side.encoding.labels}
    spools = {
        (side.role, split): Spool(side.files[split], folder, side.has_trees, side.role in labels)
        for side, split in side_splits
    }
    for (side, split, _), batch in batch_map(encode_batch, tasks(sides, options.source.files)):
        spool = spools[side.role, split]
        counted, label_indices = split == "train", None
        if side.role in labels and batch.trees and batch.trees.labels is not None:
            label_indices = labels[side.role].add(batch.labels, batch.trees.labels, counted)
        indices = symbols[side.role].add(batch.symbols, batch.ids, counted)
        spool.append(batch, indices, label_indices)
        advance(len(batch.token_counts))
    for side, split in side_splits:
        if spools[side.role, split].sentences != sentences[split]:
            raise changed(side.files[split])
    return spools, symbols | {
        _labels_of(role): label_symbols for role, label_symbols in labels.items()
    }


def _labels_of(role: str) -> str:
    """The key of the labels of a side beside the symbols of both."""
    return f"labels of {role}"


def write_sides(
    options: BinarizeOptions,
    spools: dict[tuple[str, str], Spool],
    symbols: dict[str, Symbols],
    folder: Path,
) -> tuple[dict[tuple[str, str], Counts], dict[str, int]]:
    """Make the dictionaries and write all files.

    Returns the counts by split and language, and the number of symbols of each language.
    """
    dictionaries = _make_dictionaries(options, symbols)
    ids = {role: symbols[role].ids_in(dictionaries[role]) for role in dictionaries}
    label_ids = {}
    written = {}
    for side in options.sides:
        dictionaries[side.role].write(folder / dictionary_file(side.language))
        if side.encoding.labels:
            label_symbols = symbols[_labels_of(side.role)]
            known = (
                Dictionary.read(side.label_dictionary)
                if side.label_dictionary
                else Dictionary.build(label_symbols.trained_counts(), side.label_threshold)
            )
            known.write(folder / labels_file(side.language))
            label_ids[side.role] = label_numbers(label_symbols.ids_in(known))
    # Also where dictionaries are given: they show whether unknown words get numbers.
    numbers = all(
        placeholder_table(dictionaries[side.role].symbols, side.encoding.linearization).size
        for side in options.sides
    )
    for split in options.source.files:
        words: list[list[str]] | None = None
        for side in options.sides:
            prefix = folder / f"{split}.{options.pair}.{side.language}"
            dictionary, linearization = dictionaries[side.role], side.encoding.linearization
            unknown = None
            if numbers:
                unknown = UnknownWords(dictionary, linearization, symbols[side.role].names, words)
            written[split, side.language] = spools[side.role, split].write(
                prefix, linearization, ids[side.role], dictionary, label_ids.get(side.role), unknown
            )
            if unknown is not None and side is options.source:
                words = unknown.words
                write_lines(f"{prefix}{SUFFIX}", map(" ".join, words))
    return written, {side.language: len(dictionaries[side.role]) for side in options.sides}


def _make_dictionaries(
    options: BinarizeOptions, symbols: dict[str, Symbols]
) -> dict[str, Dictionary]:
    annotated = {get_linearization(side.encoding.linearization).slots for side in options.sides}
    if options.joined_dictionary and len(annotated) > 1:
        raise OptionError(
            "--joined-dictionary: only one side has tokens with slots; give both sides "
            "such a linearization (as nary_dfs) or each its own dictionary"
        )

    def make(side: SideOptions) -> Dictionary:
        unknown_of = (
            unknown_symbol if get_linearization(side.encoding.linearization).slots else one_unknown
        )
        given = side.dictionary
        if options.joined_dictionary:
            given = options.source.dictionary or options.target.dictionary
        if given:
            return Dictionary.read(given, unknown_of)
        counts = symbols[side.role].trained_counts()
        return Dictionary.build(counts, side.threshold, side.vocab_size, unknown_of)

    made = {side.role: make(side) for side in options.sides}
    if options.copy_words:
        source, target = (side.encoding.linearization for side in options.sides)
        trained = zip(made["source"].symbols, made["source"].counts, strict=True)
        labels = [copied_label(symbol, source) for symbol, count in trained if count]
        forms = [form for label in labels if label for form in copied_forms(label, target)]
        made["target"] = made["target"].extended(forms)
    if options.joined_dictionary:
        made["source"] = made["target"]
    marks = [placeholder(number) for number in range(options.copy_unknown)]
    for side in options.sides if marks else ():
        linearization = side.encoding.linearization
        forms = [form for mark in marks for form in copied_forms(mark, linearization)]
        made[side.role] = made[side.role].extended(forms)
    return made
