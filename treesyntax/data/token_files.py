"""fairseq's memory-mapped token files, ``.bin`` with its ``.idx``, written and read without fairseq.

The layout is that of fairseq's ``MMapIndexedDataset``. ``.bin`` holds the token ids of all
sentences one after another, each with its end-of-sentence token. ``.idx`` holds a magic string,
version 1, a code for the integer type, the number of sentences, their sizes (int32) and their
byte offsets in ``.bin`` (int64), all little-endian.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from glob import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treesyntax.data.encoding import SIDES
from treesyntax.errors import InputError
from treesyntax.files import atomic_file, read_record

MAGIC = b"MMIDIDX\x00\x00"
VERSION = 1
HEADER = struct.Struct("<9sQBQ")

# fairseq's type codes. It writes uint32 for large vocabularies since 2021 and int32 before;
# int32 is read by every version.
DTYPES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 8: "<u2", 9: "<u4", 10: "<u8"}
UINT16_LIMIT = 65500


class Fingerprint(NamedTuple):
    """What tells one ``.bin``/``.idx`` pair from another.

    Attributes:
        sentences: number of sentences.
        tokens: number of tokens with one end of sentence each.
        idx_crc32: CRC-32 of the ``.idx`` file.
        bin_bytes: size of the ``.bin`` file.
    """

    sentences: int
    tokens: int
    idx_crc32: int
    bin_bytes: int


def token_files(prefix: str | Path) -> tuple[Path, Path]:
    """The ``.bin`` and the ``.idx`` file of a prefix such as ``DATA/train.en-sv.en``."""
    return Path(f"{prefix}.bin"), Path(f"{prefix}.idx")


def write_tokens(
    prefix: str | Path,
    batches: Iterable[tuple[NDArray[np.integer], NDArray[np.integer]]],
    vocab_size: int,
    eos: int,
) -> Fingerprint:
    """Write the two files; each batch of sentences is written as it comes.

    Args:
        prefix: path without ``.bin`` and ``.idx``.
        batches: pairs of token ids [T] and number of tokens a sentence [S], which sum to T; the
            end of sentence is not among them and is added here.
        vocab_size: decides the integer type as fairseq does, 16 bits below 65,500 symbols.
        eos: id of the end of sentence.

    Raises:
        InputError: if a file cannot be written.
    """
    code = 8 if vocab_size < UINT16_LIMIT else 4
    dtype = np.dtype(DTYPES[code])
    bin_path, idx_path = token_files(prefix)
    all_sizes: list[NDArray[np.int32]] = []
    with atomic_file(bin_path) as staged, staged.open("wb") as stream:
        for ids, sizes in batches:
            stream.write(append_to_each(ids, sizes, eos).astype(dtype).tobytes())
            all_sizes.append(np.asarray(sizes, dtype=np.int32) + np.int32(1))
    lengths = np.concatenate([np.zeros(0, dtype=np.int32), *all_sizes])
    ends = np.cumsum(lengths, dtype=np.int64) * dtype.itemsize
    index = b"".join(
        (
            HEADER.pack(MAGIC, VERSION, code, len(lengths)),
            lengths.astype("<i4").tobytes(),
            (ends - lengths.astype(np.int64) * dtype.itemsize).astype("<i8").tobytes(),
        )
    )
    with atomic_file(idx_path) as staged:
        staged.write_bytes(index)
    total = int(lengths.sum(dtype=np.int64))
    return Fingerprint(len(lengths), total, zlib.crc32(index), total * dtype.itemsize)


def append_to_each(
    values: NDArray[np.integer], sizes: NDArray[np.integer], last: int
) -> NDArray[np.integer]:
    """The runs of ``values`` (of ``sizes`` [S] each) with one more value ``last`` after each."""
    ends = np.cumsum(np.asarray(sizes, dtype=np.int64) + 1) - 1
    extended = np.empty(len(values) + len(ends), dtype=np.int64)
    inner = np.ones(len(extended), dtype=bool)
    inner[ends] = False
    extended[ends] = last
    extended[inner] = values
    return extended


class TokenData:
    """A ``.bin``/``.idx`` pair, memory-mapped for reading.

    Attributes:
        sizes: int32 [sentences], tokens of each sentence with its end of sentence.

    Raises:
        InputError: if a file is missing, is of another kind or is cut short.
    """

    sizes: NDArray[np.int32]

    def __init__(self, prefix: str | Path) -> None:
        self.bin_path, self.idx_path = token_files(prefix)
        index = _read_bytes(self.idx_path)
        if len(index) < HEADER.size or not index.startswith(MAGIC):
            raise InputError(
                self.idx_path,
                None,
                "is not a memory-mapped fairseq index",
                "binarize with --dataset-impl mmap, or with treesyntax binarize",
            )
        _, version, code, sentences = HEADER.unpack_from(index)
        expected = HEADER.size + 12 * sentences
        if version != VERSION or code not in DTYPES or len(index) != expected:
            raise InputError(
                self.idx_path,
                None,
                f"is damaged: {len(index)} bytes of version {version}, {expected} of version "
                f"{VERSION} expected",
                "binarize again",
            )
        self.sizes = np.frombuffer(index, "<i4", sentences, HEADER.size)
        self._starts = np.frombuffer(index, "<i8", sentences, HEADER.size + 4 * sentences)
        self._dtype = np.dtype(DTYPES[code])
        ends = np.cumsum(self.sizes, dtype=np.int64) * self._dtype.itemsize
        starts = ends - self.sizes.astype(np.int64) * self._dtype.itemsize
        if (self.sizes < 0).any() or not np.array_equal(starts, self._starts):
            raise InputError(
                self.idx_path,
                None,
                "is damaged: its sizes and offsets are not those of sentences in a row",
                "binarize again",
            )
        bin_bytes = int(self.sizes.sum(dtype=np.int64)) * self._dtype.itemsize
        self.fingerprint = Fingerprint(
            sentences, bin_bytes // self._dtype.itemsize, zlib.crc32(index), bin_bytes
        )
        self._tokens = self._map_tokens(bin_bytes)

    def _map_tokens(self, expected: int) -> NDArray[np.integer]:
        try:
            size = self.bin_path.stat().st_size
        except OSError as error:
            raise _unreadable(self.bin_path, error) from None
        if size != expected:
            raise InputError(
                self.bin_path,
                None,
                f"has {size} bytes, but {self.idx_path.name} describes {expected}",
                "binarize again",
            )
        if not expected:
            return np.zeros(0, dtype=self._dtype)
        return np.memmap(self.bin_path, dtype=self._dtype, mode="r")

    def bin_crc32(self) -> int:
        """CRC-32 of the ``.bin`` file, all of which is read for it."""
        return zlib.crc32(self._tokens.data)

    def __len__(self) -> int:
        """Number of sentences."""
        return len(self.sizes)

    def __getitem__(self, sentence: int) -> NDArray[np.int64]:
        """int64 [tokens + 1]: the ids of a sentence, the end of sentence last."""
        start = int(self._starts[sentence]) // self._dtype.itemsize
        return self._tokens[start : start + int(self.sizes[sentence])].astype(np.int64)


def _read_bytes(path: Path) -> bytes:
    try:
        return read_record(path)
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError) -> InputError:
    return InputError(path, None, f"cannot be read ({error.strerror})", "check the name")


def find_prefix(folder: Path, split: str, side: str) -> Path:
    """The common path of the files of one side, ``DATA/train.en-sv.en``.

    Raises:
        InputError: if there is no such folder, or it has no such split, or of several language pairs.
    """
    if not folder.is_dir():
        raise InputError(folder, None, "is no folder of binarized data", "check the name")
    if "/" in split:
        raise InputError(folder, None, f"has no split {split}", "name a split, such as train")
    idx_paths = sorted(folder.glob(f"{escape(split)}.*-*.*.idx"))
    pairs = {path.name.split(".")[-3] for path in idx_paths}
    if len(pairs) != 1:
        cause = f"has data of several pairs ({', '.join(sorted(pairs))})" if pairs else "has none"
        splits = sorted({path.name.split(".")[0] for path in folder.glob("*.*-*.*.idx")})
        remedy = f"name another split: {', '.join(splits)}" if splits else "name another folder"
        raise InputError(folder, None, f"no single {split} split: it {cause}", remedy)
    pair = pairs.pop()
    return folder / f"{split}.{pair}.{pair.split('-')[SIDES.index(side)]}"
