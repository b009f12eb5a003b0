"""What metrics keep of each test line, in one small file that `treesyntax score --lines` writes.

The score of any lines is a function of the sum of their statistics: see :func:`treesyntax.metrics.score_of_lines`.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesyntax.files import read_object, write_json

FILE = "lines.json"
"""Its name in the folder of a run."""
MOST_COLUMNS = 10_000
"""Of a metric whose columns depend on the references."""
Files = Mapping[str, str]
"""The SHA-256 of the files that were scored, by their option: ``hypothesis``, ``reference`` and so on."""


def pack(numbers: NDArray[Any]) -> str:
    """Whole numbers [lines, columns] from 0 to 2^32 - 1 as text.

    Column after column, each number in 1, 2 or 4 bytes, as the largest needs, the lowest byte first;
    compressed by zlib and written in base64.
    """
    whole = numbers.astype(np.uint32)
    width = np.min_scalar_type(whole.max(initial=0)).newbyteorder("<")
    return base64.b64encode(zlib.compress(whole.T.astype(width).tobytes(), 9)).decode("ascii")


def unpack(text: str, lines: int, columns: int | None) -> NDArray[np.float64]:
    """What `pack` was given.

    Args:
        text: of `pack`.
        lines: how many.
        columns: how many; None for those that fit, of one byte each.

    Raises:
        ValueError: if the text is damaged or of another size.
    """
    most = 4 * lines * (MOST_COLUMNS if columns is None else columns)
    stream = zlib.decompressobj()
    try:
        # No more than fits: a short text may unpack to any size.
        raw = stream.decompress(base64.b64decode(text, validate=True), max(most, 0) + 1)
    except (zlib.error, OverflowError) as error:
        raise ValueError(str(error)) from None
    if columns is None:
        columns = len(raw) // max(lines, 1)
    size = lines * columns
    if not stream.eof or size < 1 or len(raw) not in (size, 2 * size, 4 * size):
        raise ValueError(f"not {columns} numbers for each of {lines} lines")
    return np.frombuffer(raw, f"<u{len(raw) // size}").reshape(columns, lines).T.astype(np.float64)


def write_line_file(
    path: Path, files: Files, statistics: Mapping[str, NDArray[np.float64]]
) -> None:
    """Write the statistics [lines, columns] of each metric, all or nothing."""
    metrics = {name: [*numbers.shape, pack(numbers)] for name, numbers in statistics.items()}
    write_json(path, {"files": dict(files), "metrics": metrics}, None)


class LineFile:
    """The statistics of one run.

    Args:
        path: the file; one that is absent or damaged has nothing.
    """

    def __init__(self, path: Path) -> None:
        content = read_object(path)
        files, metrics = content.get("files"), content.get("metrics")
        self.files: Mapping[str, object] = files if isinstance(files, dict) else {}
        self.metrics: Mapping[str, object] = metrics if isinstance(metrics, dict) else {}

    def statistics(self, metric: str, files: Files) -> NDArray[np.float64] | None:
        """The statistics of a metric [lines, columns]; None where they are lacking, or of other files."""
        if any(self.files.get(name) != digest for name, digest in files.items()):
            return None
        packed = self.metrics.get(metric)
        if not isinstance(packed, list) or [type(field) for field in packed] != [int, int, str]:
            return None
        try:
            lines, columns, text = packed
            return unpack(text, lines, columns)
        except ValueError:
            return None
