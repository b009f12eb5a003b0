"""Reading checkpoints as data: nothing in the file is executed."""

from __future__ import annotations

import argparse
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from treesyntax.errors import InputError

SAFE_CLASSES: list[Any] = [
    argparse.Namespace,
    # The counts of fairseq's --eval-bleu are small arrays; the function that makes arrays again
    # has another name in every version of numpy.
    np.zeros(0).__reduce__()[0],
    np.ndarray,
    np.dtype,
    type(np.dtype(np.int64)),
]
"""Plain classes that fairseq checkpoints hold besides tensors, numbers and text."""


def allow_plain_classes() -> None:
    """Let ``torch.load(..., weights_only=True)`` rebuild :data:`SAFE_CLASSES`, and nothing more."""
    torch.serialization.add_safe_globals(SAFE_CLASSES)


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """A fairseq checkpoint on the CPU, read without fairseq and without running its pickles.

    Raises:
        InputError: if the file is missing, damaged, or holds anything but plain data.
    """
    allow_plain_classes()
    _check_parts(Path(path))
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        reason = str(error).splitlines()[0][:200]
        raise InputError(
            path, None, f"not a plain checkpoint ({reason})", "load only checkpoints of fairseq"
        ) from None
    except Exception as error:  # what a damaged pickle raises has no end
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise InputError(path, None, f"cannot be read as a checkpoint ({reason})") from None
    if not isinstance(state, dict) or "model" not in state:
        raise InputError(path, None, "holds no model", "give a checkpoint written by fairseq-train")
    return state


def _check_parts(path: Path) -> None:
    """Refuse an archive with a part whose checksum differs: torch itself does not compare them."""
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
    except Exception:  # no archive, or not even that: torch says what is wrong with it
        return
    if damaged is not None:
        raise InputError(
            path, None, f"is damaged (the checksum of {damaged[:80]} differs)", "restore the file"
        )
