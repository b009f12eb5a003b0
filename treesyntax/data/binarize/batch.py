"""A batch of ``treesyntax binarize``, before and after: records, and integers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from treesyntax.data.binarize.alignment import Span
from treesyntax.data.binarize.records import Records
from treesyntax.data.tree_store import TreeArrays
from treesyntax.remarks import Remarks


class Batch(NamedTuple):
    """Raw records of one file, and what belongs to them.

    The last four are for an encoding with ``units``.

    Attributes:
        path: the file, for errors.
        records: its records.
        subwords_path: the file of subwords.
        subwords: segmented lines, None where the subwords are to be made.
        text: raw lines, None where the records (CoNLL-U) have them in comments.
        spans: the character span of every word in its line; None where they are read from
            ``offsets``, or from the records if they are CoNLL-U.
        offsets_path: the file of offsets.
        offsets: its lines.
    """

    path: Path
    records: Records
    subwords_path: Path | None = None
    subwords: Records | None = None
    text: list[str] | None = None
    spans: Sequence[Sequence[Span]] | None = None
    offsets_path: Path | None = None
    offsets: Records | None = None


class EncodedBatch(NamedTuple):
    """A batch as integers.

    Attributes:
        symbols: the different tokens of the batch in order of first appearance.
        ids: index into ``symbols`` of each token [T].
        token_counts: tokens of each sentence [S].
        trees: the trees, None for text; their labels index ``labels``.
        labels: the different labels in order of first appearance, if they are kept.
        remarks: what the reader of the records found odd in them, or left out.
    """

    symbols: list[str]
    ids: NDArray[np.int32]
    token_counts: NDArray[np.int32]
    trees: TreeArrays | None
    labels: Sequence[str] = ()
    remarks: Remarks | None = None
