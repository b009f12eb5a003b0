"""Which pairs of a split a step of fairseq uses: counted, told in the log, and refused where none is left.

fairseq leaves pairs that are too long out of a training with a warning, and ends with a traceback where
that leaves nothing.
"""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from treesyntax.data.pairs import Lengths, Limits, read_left_out, some
from treesyntax.errors import OptionError

logger = logging.getLogger(__name__)

SKIP = "skip_invalid_size_inputs_valid_test"


def limits_of(most: Any) -> Limits:
    """fairseq's limits: a number for both sides, one for each, or nothing."""
    if most is None:
        return Limits()
    source, target = most if isinstance(most, Sequence) else (most, most)
    return Limits(source and int(source), target and int(target))


class UsedPairs:
    """Chooses the pairs of each split, and notes their numbers in the log whenever these change.

    Args:
        left_out: file with the pairs to be left out; "" for none.
        positions: the most tokens of a side by ``--max-source-positions`` and ``--max-target-positions``.
    """

    def __init__(self, left_out: str, positions: Any) -> None:
        self._file, self._positions = left_out, limits_of(positions)
        self._noted: dict[str, dict[str, Any]] = {}

    def choose(
        self, split: str, indices: NDArray[Any], lengths: Lengths, most: Any, skips: bool
    ) -> NDArray[Any]:
        """The indices of a split without those that are left out or too long.

        Args:
            split: its name.
            indices: in the order of the batches.
            lengths: of all pairs of the split.
            most: fairseq's limits.
            skips: whether pairs that are too long are left out; else they are refused.

        Raises:
            OptionError: if none is left, or one is too long where none may be left out.
        """
        listed = read_left_out(self._file).get(split) if self._file else None
        listed = np.zeros(0, np.int64) if listed is None else listed
        kept, limits = indices[~np.isin(indices, listed)], limits_of(most)
        long = lengths.too_long(limits)
        fit = kept[~np.isin(kept, long)]
        if len(fit) < len(kept) and (not skips or not len(fit)):
            raise OptionError(
                self._refusal(split, np.intersect1d(kept, long), lengths, limits, skips)
            )
        counts = {
            "split": split,
            "pairs": len(indices),
            "left_out": len(indices) - len(kept),
            "too_long": len(kept) - len(fit),
            "empty": int(np.isin(fit, lengths.empty).sum()),
            "limits": list(limits),
            "crc32": zlib.crc32(np.sort(fit).astype("<i8").tobytes()),
        }
        if self._noted.get(split) != counts:
            self._noted[split] = counts
            logger.info("pairs | %s", json.dumps(counts))
        if len(fit) < len(kept):
            logger.warning(
                "%s: %d of %d pairs are left out, longer than %s (number %s)",
                split, len(kept) - len(fit), len(indices), limits, some(np.intersect1d(kept, long)),
            )  # fmt: skip
        return fit

    def _refusal(
        self, split: str, long: NDArray[Any], lengths: Lengths, limits: Limits, skips: bool
    ) -> str:
        first = int(long[0])
        sizes = f"{lengths.source[first]} and {lengths.target[first]}"
        by_positions = not skips or limits == self._positions
        flags = (
            "--max-source-positions and --max-target-positions" if by_positions else "--max-tokens"
        )
        if skips:
            return (
                f"all {len(long)} pairs of {split} are longer than {limits}, such as number {first + 1} "
                f"with {sizes}; give a larger {flags}"
            )
        return (
            f"{split}: {len(long)} of {len(lengths.source)} pairs are longer than {limits}, the first is "
            f"number {first + 1} with {sizes}; train with larger {flags}, shorten the pairs, or leave "
            f"them out with --{SKIP.replace('_', '-')}"
        )


def check_batch_limit(indices: NDArray[Any], lengths: NDArray[Any], max_tokens: int | None) -> None:
    """Refuse pairs that fit no batch, on which fairseq's own batches end in an assertion.

    Args:
        indices: of the pairs.
        lengths: of the longer side of each.
        max_tokens: of a batch.
    """
    if max_tokens is None or max_tokens <= 0:
        return
    over = lengths > max_tokens
    if over.any():
        raise OptionError(
            f"{int(over.sum())} of {len(indices)} pairs have more tokens than a batch may have "
            f"(--max-tokens {max_tokens}; the longest has {int(lengths.max())}); give a larger "
            "--max-tokens, or --batch-size in its place"
        )
