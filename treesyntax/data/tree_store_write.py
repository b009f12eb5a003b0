"""Writing a tree store: see `treesyntax.data.tree_store` for the layout."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

import numpy as np

from treesyntax.data.token_files import Fingerprint
from treesyntax.data.tree_store import (
    ARRAYS_START,
    MAGIC,
    NODE_ARRAYS,
    OFFSETS,
    PREAMBLE,
    VERSION,
    IntArray,
    TreeArrays,
)
from treesyntax.files import atomic_file

ALIGNMENT = 64
CHUNK_BYTES = 1 << 22


def write_store(
    path: str | Path, linearization: str, batches: Iterable[TreeArrays], tokens: Fingerprint
) -> None:
    """Write a store, all or nothing, in memory that does not grow with the data.

    Args:
        path: the ``.tree`` file.
        linearization: name of the linearization that made the tokens.
        batches: the trees of all sentences in order.
        tokens: what the token files beside it look like, from ``write_tokens``.

    Raises:
        InputError: if the file cannot be written.
    """
    path = Path(path)
    with atomic_file(path) as staged, staged.open("wb") as stream:
        spools = {name: _Spool(path.parent, "<i8") for name in OFFSETS}
        spools |= {name: _Spool(path.parent, "<i4") for name in NODE_ARRAYS}
        for name in OFFSETS:
            spools[name].append(np.zeros(1, dtype=np.int64))
        sentences = _spool_batches(spools, batches)
        arrays = {}
        stream.seek(ARRAYS_START)
        for name, spool in spools.items():
            stream.seek(-stream.tell() % ALIGNMENT, 1)
            arrays[name] = spool.write(stream)
        # The file must reach its full length even if the last arrays are empty.
        stream.truncate(max(stream.tell(), ARRAYS_START))
        header = json.dumps(
            {
                "sentences": sentences,
                "view": linearization,
                "tokens": tokens._asdict(),
                "arrays": arrays,
            }
        ).encode()
        stream.seek(0)
        stream.write(PREAMBLE.pack(MAGIC, VERSION, len(header), zlib.crc32(header)) + header)


def _spool_batches(spools: dict[str, _Spool], batches: Iterable[TreeArrays]) -> int:
    sentences, nodes, tokens = 0, 0, 0
    for batch in batches:
        sentences += len(batch.node_counts)
        node_ends = nodes + np.cumsum(batch.node_counts, dtype=np.int64)
        token_ends = tokens + np.cumsum(batch.token_counts, dtype=np.int64)
        nodes += len(batch.parents)
        tokens += len(batch.token_nodes)
        for name, values in zip(spools, (node_ends, token_ends, *batch[2:]), strict=True):
            spools[name].append(values)
    return sentences


class _Spool:
    """An array of unknown length in an unnamed temporary file."""

    def __init__(self, folder: Path, dtype: str) -> None:
        self._file = TemporaryFile(dir=folder)  # noqa: SIM115, kept open for all batches
        self._dtype = np.dtype(dtype)
        self._largest = 0

    def append(self, values: IntArray) -> None:
        self._file.write(np.ascontiguousarray(values, self._dtype).data)
        self._largest = max(self._largest, int(values.max(initial=0)))

    def write(self, stream: IO[bytes]) -> dict[str, int | str]:
        """Copy to the store, in 16 bits where numbers fit; its entry in the table of arrays."""
        narrow = self._dtype.itemsize == 4 and self._largest <= np.iinfo(np.int16).max
        dtype = np.dtype("<i2") if narrow else self._dtype
        offset, crc32 = stream.tell(), 0
        self._file.seek(0)
        while chunk := self._file.read(CHUNK_BYTES):
            data = np.frombuffer(chunk, self._dtype).astype(dtype).tobytes()
            crc32 = zlib.crc32(data, crc32)
            stream.write(data)
        self._file.close()
        count = (stream.tell() - offset) // dtype.itemsize
        return {"dtype": dtype.str, "offset": offset, "count": count, "crc32": crc32}
