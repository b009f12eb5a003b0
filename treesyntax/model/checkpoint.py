"""Reading checkpoints as data: nothing in the file is executed."""

from __future__ import annotations

import argparse
import pickle
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from treesyntax.errors import InputError
from treesyntax.files import open_record

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

OURS = "checkpoints written by fairseq-train"

FOLDER = 0x10
"""The attribute of folders in an archive: torch leaves the memory of such a tensor as it was."""


def allow_plain_classes() -> None:
    """Let ``torch.load(..., weights_only=True)`` rebuild :data:`SAFE_CLASSES`, and nothing more."""
    torch.serialization.add_safe_globals(SAFE_CLASSES)


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """A fairseq checkpoint on the CPU, read without fairseq and without running its pickles.

    Raises:
        InputError: if the file is missing, damaged, or holds anything but plain data.
    """
    allow_plain_classes()
    try:
        open_record(path).close()
    except OSError as error:
        raise InputError(path, None, f"cannot be read ({error.strerror or error})") from None
    _check_parts(Path(path))
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(path, None, f"cannot be read ({error.strerror or error})") from None
    except Exception as error:  # what a damaged pickle raises has no end
        raise InputError(path, None, _refused(path, error), f"load only {OURS}") from None
    weights = state.get("model") if isinstance(state, dict) else None
    if not isinstance(weights, dict) or not all(
        isinstance(name, str) and isinstance(tensor, torch.Tensor)
        for name, tensor in weights.items()
    ):
        raise InputError(path, None, "holds no model", f"load only {OURS}")
    for name, tensor in weights.items():
        odd = tensor.is_meta or tensor.is_quantized or tensor.is_nested
        if odd or tensor.layout is not torch.strided:
            cause = (
                f"its {name[:80]} is no plain tensor (sparse, nested, quantized or without numbers)"
            )
            raise InputError(path, None, cause, f"load only {OURS}")
    return state


def check_numbers(path: str | Path, weights: Mapping[str, torch.Tensor]) -> None:
    """Refuse a model with parameters that are NaN or infinite: all that it computes would be.

    Args:
        path: of its checkpoint.
        weights: its tensors by name.
    """
    for name, tensor in weights.items():
        if not tensor.isfinite().all():
            cause = f"{name[:80]} holds NaN or infinity"
            raise InputError(path, None, cause, "the training diverged; train anew")


def _refused(path: str | Path, error: Exception) -> str:
    """What is wrong with the file. Not torch's words: they advise to load it without protection."""
    name = re.search(r"GLOBAL:? ([\w.]+)", str(error))
    if isinstance(error, pickle.UnpicklingError) and name:
        return f"not a plain checkpoint: it asks for Python's {name[1][:100]}, which is not loaded"
    if Path(path).stat().st_size == 0:
        return "is empty"
    return "is no checkpoint, or is damaged or cut short"


def peek(path: str | Path) -> dict[str, Any]:
    """A checkpoint whose tensors are left in the file until they are read; empty if it is none.

    Quick however large it is, and without any check: who goes on to read it must do that.
    """
    allow_plain_classes()
    try:
        open_record(path).close()
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except Exception:  # what a damaged pickle raises has no end
        return {}
    return state if isinstance(state, dict) else {}


def _check_parts(path: Path) -> None:
    """Refuse an archive with a part that is not as it was written: torch itself does not compare
    checksums, and takes a tensor from the wrong place where a header is damaged."""
    try:
        archive = zipfile.ZipFile(path)
    except Exception:  # no archive, or not even that: torch says what is wrong with it
        return
    with archive:
        reason = _damage(archive)
    if reason:
        raise InputError(path, None, f"is damaged ({reason})", "restore the file")


def _damage(archive: zipfile.ZipFile) -> str:
    """What is wrong with the first damaged part; "" if all are whole."""
    for member in archive.infolist():
        if member.external_attr & FOLDER:
            return f"{member.filename[:80]} is marked as a folder"
    try:
        part_name = archive.testzip()
    except Exception as error:  # what a damaged header raises has no end
        return f"its parts cannot be read: {type(error).__name__}"
    return f"the checksum of {part_name[:80]} differs" if part_name else ""
