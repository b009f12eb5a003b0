"""TreeStore: the trees of one side of one split, memory-mapped beside fairseq's token files.

``train.en-sv.en.tree`` lies beside ``train.en-sv.en.bin`` and ``.idx`` and has one tree a
sentence. Layout, little-endian:

====================  ===========================================================
8 bytes               magic ``TREESTOR``
3 × uint32            version 1, or 2 with labels; length and CRC-32 of the JSON header
JSON header           ``sentences``, ``view`` (the linearization), ``tokens`` (the fingerprint of the token
                      files), ``arrays`` (name → dtype, offset, count, crc32)
from byte 4,096       the arrays, each on a multiple of 64 bytes
====================  ===========================================================

The arrays are ``node_offsets`` and ``token_offsets`` [sentences + 1], and all sentences one after
another ``parents`` and ``branches`` [nodes] and ``token_nodes`` [tokens]; in version 2 ``labels``
[nodes] as well, the line of each label in ``labels.LANG.txt``, 0 for an unknown one. Nodes are numbered
within their sentence. Node arrays are signed, so that -1 (the parent of the root, the node of a
token without one) is kept, and of 16 bits where every number fits.
"""

from __future__ import annotations

import struct
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treesyntax.data.token_files import Fingerprint, TokenData
from treesyntax.errors import InputError
from treesyntax.files import open_record, parse_json, unreadable

MAGIC = b"TREESTOR"
VERSIONS = (1, 2)
PREAMBLE = struct.Struct("<8sIII")
ARRAYS_START = 4096
OFFSETS = ("node_offsets", "token_offsets")
NODE_ARRAYS = ("parents", "branches", "token_nodes")
LABELS = "labels"
AGAIN = "run treesyntax binarize again"
DTYPES = ("<i2", "<i4", "<i8")
BLOCK = 1 << 16
"""Sentences whose trees are checked at once, so that memory stays small."""

IntArray = NDArray[np.integer]


class TreeArrays(NamedTuple):
    """The trees of some sentences, one after another.

    Attributes:
        node_counts: nodes of each sentence [S].
        token_counts: tokens of each sentence [S], without the end of sentence.
        parents: parent of each node within its sentence [nodes], -1 for roots.
        branches: slot among the parent's slots [nodes].
        token_nodes: node of each token [tokens], -1 for none.
        labels: label of each node [nodes], None where there are none.
    """

    node_counts: IntArray
    token_counts: IntArray
    parents: IntArray
    branches: IntArray
    token_nodes: IntArray
    labels: IntArray | None = None


def deepest(trees: TreeArrays) -> int:
    """Steps from the root to the deepest node of all trees; 0 without any."""
    begins = np.cumsum(trees.node_counts, dtype=np.int64) - trees.node_counts
    parents = trees.parents + np.repeat(begins, trees.node_counts)
    above = np.where(trees.parents < 0, np.arange(len(parents)), parents)
    steps: NDArray[np.int64] = (trees.parents >= 0).astype(np.int64)
    # Each round goes twice as far up, so that a chain of 10,000 nodes takes 14 rounds.
    while (further := steps[above]).any():
        steps, above = steps + further, above[above]
    return int(steps.max(initial=0))


class StoredTree(NamedTuple):
    """One sentence: ``parents`` and ``branches`` int64 [N], ``token_nodes`` int64 [T], and
    ``labels`` int64 [N] where they are stored."""

    parents: NDArray[np.int64]
    branches: NDArray[np.int64]
    token_nodes: NDArray[np.int64]
    labels: NDArray[np.int64] | None = None


class TreeStore:
    """Trees by sentence number, memory-mapped; pickling carries the path only.

    Attributes:
        path: the file.
        linearization: name of the linearization that made the tokens.
        tokens: the token files that it belongs to.

    Raises:
        InputError: if the file is missing, is no tree store, is of another version, is cut
            short, its checksums differ, or its numbers make no trees.
    """

    def __init__(self, path: str | Path) -> None:
        self._open(path)
        self._verify()

    def _open(self, path: str | Path) -> None:
        self.path = Path(path)
        self._header = _read_header(self.path)
        self.linearization: str = self._header["view"]
        self.tokens = Fingerprint(**self._header["tokens"])
        self._file = np.memmap(self.path, dtype=np.uint8, mode="r")
        self._node_offsets, self._token_offsets, self._parents, self._branches, self._nodes = (
            self._array(name) for name in (*OFFSETS, *NODE_ARRAYS)
        )
        self._labels = self._array(LABELS) if LABELS in self._header["arrays"] else None

    @property
    def has_labels(self) -> bool:
        """Whether nodes have labels."""
        return self._labels is not None

    def _array(self, name: str) -> IntArray:
        entry = self._header["arrays"][name]
        return np.frombuffer(self._file, entry["dtype"], entry["count"], entry["offset"])

    def __getstate__(self) -> str:
        return str(self.path)

    def __setstate__(self, path: str) -> None:
        # A data loader's workers need not read the whole file again.
        self._open(path)

    def _verify(self) -> None:
        """Compare the checksums of all arrays: 0.1 s for a million sentences in memory."""
        for name, entry in self._header["arrays"].items():
            if zlib.crc32(self._array(name).data) != entry["crc32"]:
                raise _damaged(self.path, f"the checksum of {name} differs: the file is damaged")
        arrays = (self._parents, self._nodes)
        for offsets, values in zip((self._node_offsets, self._token_offsets), arrays, strict=True):
            whole = len(offsets) == len(self) + 1 and offsets[0] == 0 and offsets[-1] == len(values)
            if not whole or (np.diff(offsets) < 0).any():
                raise _damaged(self.path, "its offsets are not those of sentences in a row")
        for first in range(0, len(self), BLOCK):
            self._verify_trees(first, min(first + BLOCK, len(self)))

    def _verify_trees(self, first: int, end: int) -> None:
        """Every parent comes before its node, and every token stands on a node of its sentence."""
        nodes, tokens = (
            offsets[first : end + 1].astype(np.int64)
            for offsets in (self._node_offsets, self._token_offsets)
        )
        sizes = np.diff(nodes)
        numbers = np.arange(nodes[0], nodes[-1]) - np.repeat(nodes[:-1], sizes)
        parents = self._parents[nodes[0] : nodes[-1]]
        branches = self._branches[nodes[0] : nodes[-1]]
        token_nodes = self._nodes[tokens[0] : tokens[-1]]
        wrong = (parents >= numbers) | (parents < -1) | (branches < 0)
        outside = (token_nodes >= np.repeat(sizes, np.diff(tokens))) | (token_nodes < -1)
        if wrong.any() or outside.any():
            raise _damaged(self.path, "its numbers are not those of trees")
        if self._labels is not None and (self._labels[nodes[0] : nodes[-1]] < 0).any():
            raise _damaged(self.path, "its labels are not those of nodes")

    def __len__(self) -> int:
        """Number of sentences."""
        return int(self._header["sentences"])

    def __getitem__(self, sentence: int) -> StoredTree:
        """The tree of a sentence; an empty sentence has arrays of length 0.

        Raises:
            IndexError: if there is no such sentence.
        """
        size = len(self)
        if not -size <= sentence < size:
            raise IndexError(f"sentence {sentence} of {size}")
        sentence %= size
        first, end = self._node_offsets[sentence : sentence + 2].tolist()
        first_token, end_token = self._token_offsets[sentence : sentence + 2].tolist()
        return StoredTree(
            self._parents[first:end].astype(np.int64),
            self._branches[first:end].astype(np.int64),
            self._nodes[first_token:end_token].astype(np.int64),
            None if self._labels is None else self._labels[first:end].astype(np.int64),
        )

    @property
    def node_counts(self) -> NDArray[np.int64]:
        """int64 [sentences]: nodes of each sentence."""
        return np.diff(self._node_offsets)

    @property
    def token_counts(self) -> NDArray[np.int64]:
        """int64 [sentences]: tokens of each sentence without the end of sentence."""
        return np.diff(self._token_offsets)

    def check_tokens(self, sizes: IntArray) -> None:
        """Make sure that the trees belong to token data.

        Args:
            sizes: tokens of each sentence with its end of sentence [sentences], fairseq's
                ``dataset.sizes``.

        Raises:
            InputError: if the number of sentences or the length of one differs.
        """
        if len(sizes) != len(self):
            raise _foreign(self.path, f"{len(self)} trees, {len(sizes)} sentences")
        expected = self.token_counts + 1
        wrong = np.flatnonzero(expected != np.asarray(sizes))
        if len(wrong):
            first = int(wrong[0])
            raise _foreign(
                self.path,
                f"sentence {first} has {expected[first] - 1} tokens here, "
                f"{int(sizes[first]) - 1} there",
            )

    def check_files(self, data: TokenData) -> None:
        """Make sure that the trees were written together with these very token files.

        Raises:
            InputError: if the ``.idx`` file or the size of the ``.bin`` file differs.
        """
        self.check_tokens(data.sizes)
        if data.fingerprint != self.tokens:
            raise _foreign(self.path, f"{data.idx_path.name} is not the file written with them")


def _read_header(path: Path) -> dict:
    try:
        with open_record(path) as stream:
            start = stream.read(PREAMBLE.size)
            if len(start) < PREAMBLE.size or not start.startswith(MAGIC):
                raise InputError(
                    path, None, "is not a tree store", "treesyntax binarize writes .tree files"
                )
            _, version, length, crc32 = PREAMBLE.unpack(start)
            if version not in VERSIONS:
                known = " or ".join(map(str, VERSIONS))
                raise _damaged(path, f"is a tree store of version {version}, not {known}")
            text = stream.read(min(length, ARRAYS_START))
            size = stream.seek(0, 2)
    except OSError as error:
        raise unreadable(path, error) from None
    if zlib.crc32(text) != crc32:
        raise _damaged(path, "the checksum of the header differs: the file is damaged")
    header = _checked_header(path, text, has_labels=version == VERSIONS[1])
    expected = max(ARRAYS_START, *(_end_of(entry) for entry in header["arrays"].values()))
    if size != expected:
        raise _damaged(path, f"is cut short or padded: {size} bytes, {expected} expected")
    return header


def _checked_header(path: Path, text: bytes, has_labels: bool) -> dict:
    """The header, once it is certain that it has all that is read from it."""
    try:
        header = parse_json(text)
        whole = [header["sentences"], *Fingerprint(**header["tokens"])]
        names = (*OFFSETS, *NODE_ARRAYS, *[LABELS] * has_labels)
        entries = [header["arrays"][name] for name in names]
        whole += [entry[key] for entry in entries for key in ("offset", "count", "crc32")]
        right = all(type(number) is int and 0 <= number < 1 << 62 for number in whole)
        right &= len(header["arrays"]) == len(entries) and type(header["view"]) is str
        right &= all(entry["dtype"] in DTYPES for entry in entries)
        right &= entries[2]["count"] == entries[3]["count"]
        right &= not has_labels or entries[-1]["count"] == entries[2]["count"]
    except (ValueError, KeyError, TypeError):
        right = False
    if not right:
        raise _damaged(path, "its header is not that of a tree store")
    return header


def _end_of(entry: dict) -> int:
    return int(entry["offset"] + entry["count"] * np.dtype(entry["dtype"]).itemsize)


def _damaged(path: Path, cause: str) -> InputError:
    return InputError(path, None, cause, AGAIN)


def _foreign(path: Path, difference: str) -> InputError:
    return InputError(path, None, f"the trees do not belong to this data ({difference})", AGAIN)
