"""Encoded batches to fairseq's files: gather symbols, choose ids, write ``.bin .idx .tree``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
from numpy.typing import NDArray

from treesyntax.data.binarize.encode import EncodedBatch
from treesyntax.data.binarize.options import BinarizeOptions, SideOptions
from treesyntax.data.dictionary import EOS, Dictionary
from treesyntax.data.token_files import TokenData, write_tokens
from treesyntax.data.tree_store import TreeArrays
from treesyntax.data.tree_store_write import write_store


class Symbols:
    """Every symbol seen so far with a provisional id, and how often the training data has it."""

    def __init__(self) -> None:
        self.ids: defaultdict[str, int] = defaultdict(count().__next__)
        self.counts: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def add(self, batch: EncodedBatch, counted: bool) -> NDArray[np.int32]:
        """The provisional id of each token of a batch [T]; ``counted`` for training data."""
        ids = self.ids
        size = len(batch.symbols)
        provisional = np.fromiter(map(ids.__getitem__, batch.symbols), np.int32, size)
        if len(ids) > len(self.counts):
            self.counts = np.concatenate([self.counts, np.zeros(len(ids), dtype=np.int64)])
        if counted:
            self.counts[provisional] += np.bincount(batch.ids, minlength=len(provisional))
        return provisional[batch.ids]

    def trained_counts(self) -> dict[str, int]:
        """Occurrences of each symbol of the training data."""
        pairs = zip(self.ids, self.counts[: len(self.ids)].tolist(), strict=True)
        return {symbol: count for symbol, count in pairs if count}

    def final_ids(self, dictionary: Dictionary) -> NDArray[np.int64]:
        """The dictionary's id of each provisional id."""
        return np.fromiter(map(dictionary.index, self.ids), np.int64, len(self.ids))


class Spool:
    """Encoded batches in an unnamed temporary file until the dictionary is known."""

    def __init__(self, folder: Path) -> None:
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115, kept open for all batches
        self._sizes: list[list[int]] = []

    def append(self, ids: NDArray[np.int32], batch: EncodedBatch) -> None:
        """Keep a batch with its provisional ids."""
        arrays = (ids, *(batch.trees or (batch.token_counts,)))
        for array in arrays:
            self._file.write(array.astype(np.int32, copy=False).data)
        self._sizes.append([len(array) for array in arrays])

    def tokens(self, with_trees: bool) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int32]]]:
        """Provisional ids [T] and tokens a sentence [S] of each batch."""
        for ids, *arrays in self._read():
            yield ids, arrays[1 if with_trees else 0]

    def trees(self) -> Iterator[TreeArrays]:
        """The trees of each batch."""
        return (TreeArrays(*arrays) for _, *arrays in self._read())

    def _read(self) -> Iterator[list[NDArray[np.int32]]]:
        self._file.seek(0)
        for sizes in self._sizes:
            yield [np.frombuffer(self._file.read(4 * size), np.int32) for size in sizes]


@dataclass
class Counts:
    """What was written of one side of one split; tokens without ends of sentences.

    ``bin_crc32`` is the checksum of its ``.bin`` file.
    """

    sentences: int = 0
    tokens: int = 0
    nodes: int = 0
    unknown: int = 0
    empty: int = 0
    bin_crc32: int = 0


def write_side(
    plan: BinarizeOptions, side: SideOptions, split: str, spool: Spool, symbols: Symbols, dictionary: Dictionary,
    folder: Path,
) -> Counts:  # fmt: skip
    """Write the token files of one side of one split and, if it has trees, its tree store.

    Raises:
        InputError: if a file cannot be written.
    """
    prefix = folder / f"{split}.{plan.pair}.{side.language}"
    final_ids = symbols.final_ids(dictionary)
    counts = Counts()

    def tokens() -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32]]]:
        for provisional, sizes in spool.tokens(side.has_trees):
            ids = final_ids[provisional]
            counts.sentences += len(sizes)
            counts.tokens += len(ids)
            counts.unknown += int(np.isin(ids, dictionary.unknown_ids).sum())
            counts.empty += int((sizes == 0).sum())
            yield ids, sizes

    fingerprint = write_tokens(prefix, tokens(), len(dictionary), EOS)
    counts.bin_crc32 = TokenData(prefix).bin_crc32()
    if side.has_trees:
        write_store(
            f"{prefix}.tree", side.encoding.linearization, _counted(spool, counts), fingerprint
        )
    return counts


def _counted(spool: Spool, counts: Counts) -> Iterator[TreeArrays]:
    for arrays in spool.trees():
        counts.nodes += len(arrays.parents)
        yield arrays
