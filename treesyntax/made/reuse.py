"""Whether what lies on the disk is what would be made: the same identity, and files that nobody changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from treesyntax.errors import InputError
from treesyntax.files import sha256_of


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the names of what differs between two identities: options, digests of inputs, versions."""
    return [name for name in {**now, **before} if before.get(name) != now.get(name)]


def changed_file(
    folder: Path, digests: Mapping[str, str], digest_of: Callable[[Path], str] = sha256_of
) -> Path | None:
    """Return the first file that is gone or is not what it was; None if all are as they were.

    Args:
        folder: that names are relative to.
        digests: of the files when they were made, by name.
        digest_of: gives the digest that a file has now.
    """
    for name, digest in digests.items():
        file = folder / name
        if not file.is_file() or digest_of(file) != digest:
            return file
    return None


def is_taken(folder: Path) -> bool:
    """Return whether a folder to be made has something in it already.

    Raises:
        InputError: if it is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(folder, None, "is a file", "name a folder")
    return folder.is_dir() and any(folder.iterdir())
