"""Writing a tree store: see `treesyntax.data.tree_store` for the layout."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import numpy as np

from treesyntax.data.token_files import Fingerprint
from treesyntax.data.tree_store import (
    ARRAYS_START,
    LABELS,
    MAGIC,
    NODE_ARRAYS,
    OFFSETS,
    PREAMBLE,
    VERSIONS,
    IntArray,
    TreeArrays,
)
from treesyntax.files import atomic_file

ALIGNMENT = 64
CHUNK_BYTES = 1 << 22


class TreeStoreWriter:
    """Takes trees batch by batch, in memory that does not grow with the data.

    Args:
        folder: where temporary files lie until the store is written.
        has_labels: whether the trees have labels.

    Attributes:
        sentences: how many it has taken.
        nodes: of all of them together.
    """

    def __init__(self, folder: Path, has_labels: bool = False) -> None:
        names = (*NODE_ARRAYS, *[LABELS] * has_labels)
        self._spools = {name: _Spool(folder, "<i8") for name in OFFSETS}
        self._spools |= {name: _Spool(folder, "<i4") for name in names}
        for name in OFFSETS:
            self._spools[name].append(np.zeros(1, dtype=np.int64))
        self.sentences = self.nodes = self._tokens = 0

    def append(self, batch: TreeArrays) -> None:
        """Take the trees of the next sentences."""
        node_ends = self.nodes + np.cumsum(batch.node_counts, dtype=np.int64)
        token_ends = self._tokens + np.cumsum(batch.token_counts, dtype=np.int64)
        self.sentences += len(batch.node_counts)
        self.nodes += len(batch.parents)
        self._tokens += len(batch.token_nodes)
        arrays = [node_ends, token_ends, batch.parents, batch.branches, batch.token_nodes]
        if LABELS in self._spools:
            assert batch.labels is not None
            arrays.append(batch.labels)
        for spool, values in zip(self._spools.values(), arrays, strict=True):
            spool.append(values)

    def write(
        self,
        path: str | Path,
        linearization: str,
        tokens: Fingerprint,
        label_ids: IntArray | None = None,
    ) -> None:
        """Write the store, all or nothing; nothing can be appended after that.

        Args:
            path: the ``.tree`` file.
            linearization: name of the linearization that made the tokens.
            tokens: the fingerprint of the token files beside it, from ``write_tokens``.
            label_ids: what stands for each label that was appended, None for itself.

        Raises:
            InputError: if the file cannot be written.
        """
        with atomic_file(path) as staged, staged.open("wb") as stream:
            arrays = {}
            stream.seek(ARRAYS_START)
            for name, spool in self._spools.items():
                stream.seek(-stream.tell() % ALIGNMENT, 1)
                arrays[name] = spool.write(stream, label_ids if name == LABELS else None)
            # The file must reach its full length even if the last arrays are empty.
            stream.truncate(max(stream.tell(), ARRAYS_START))
            facts = {"sentences": self.sentences, "view": linearization, "tokens": tokens._asdict()}
            header = json.dumps({**facts, "arrays": arrays}).encode()
            stream.seek(0)
            version = VERSIONS[LABELS in arrays]
            stream.write(PREAMBLE.pack(MAGIC, version, len(header), zlib.crc32(header)) + header)


class _Spool:
    """An array of unknown length in an unnamed temporary file."""

    def __init__(self, folder: Path, dtype: str) -> None:
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115, kept open for all batches
        self._dtype = np.dtype(dtype)
        self._largest = 0

    def append(self, values: IntArray) -> None:
        self._file.write(np.ascontiguousarray(values, self._dtype).data)
        self._largest = max(self._largest, int(values.max(initial=0)))

    def write(self, stream: IO[bytes], table: IntArray | None = None) -> dict[str, int | str]:
        """Copy to the store, in 16 bits where all values fit; its entry in the table of arrays.

        With a table, what it has at each value is written instead.
        """
        largest = self._largest if table is None else int(table.max(initial=0))
        narrow = self._dtype.itemsize == 4 and largest <= np.iinfo(np.int16).max
        dtype = np.dtype("<i2") if narrow else self._dtype
        offset, crc32 = stream.tell(), 0
        self._file.seek(0)
        while chunk := self._file.read(CHUNK_BYTES):
            values = np.frombuffer(chunk, self._dtype)
            values = values if table is None else table[values]
            data = values.astype(dtype).tobytes()
            crc32 = zlib.crc32(data, crc32)
            stream.write(data)
        self._file.close()
        count = (stream.tell() - offset) // dtype.itemsize
        return {"dtype": dtype.str, "offset": offset, "count": count, "crc32": crc32}
