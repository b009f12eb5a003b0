"""Folders of generated data: aligned text files and a manifest of how they were made."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from treesyntax import __version__
from treesyntax.errors import InputError
from treesyntax.files import atomic_folder, read_object, sha256_of, write_json

MANIFEST = "manifest.json"


def checksum(lines: Sequence[str]) -> str:
    """SHA-256 of the lines as a text file holds them."""
    return hashlib.sha256(_text(lines)).hexdigest()


def is_current(folder: Path, options: dict[str, Any], code: str = "") -> bool:
    """Whether the folder already holds, unchanged, what these options and this code make.

    Anything else in it is an error: nothing is ever overwritten.

    Args:
        folder: of the data set.
        options: everything that the contents depend on.
        code: digest of the code that makes it, see :func:`same_lines` for data of other code.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(folder, None, "is a file", "name a folder")
    if not folder.is_dir() or not any(folder.iterdir()):
        return False
    manifest = read_object(folder / MANIFEST)
    if manifest.get("options") != options:
        raise InputError(
            folder,
            None,
            "is not empty and was not made with these options",
            "name another folder or delete this one",
        )
    for name, digest in _digests(folder, manifest).items():
        path = folder / name
        if not path.is_file() or sha256_of(path) != digest:
            raise InputError(
                path,
                None,
                "was changed or deleted since it was made",
                "delete the folder to make it again",
            )
    return manifest.get("code", "") == code


def same_lines(folder: Path, files: dict[str, list[str]], code: str) -> bool:
    """Whether a folder that other code made holds what the present code makes; it then says so in its manifest.

    Raises:
        InputError: if the present code makes something else.
    """
    manifest = read_object(folder / MANIFEST)
    if not manifest:
        return False
    present = {name: checksum(lines) for name, lines in files.items() if lines}
    before = _digests(folder, manifest)
    if other := [name for name in {**before, **present} if before.get(name) != present.get(name)]:
        raise InputError(
            folder,
            None,
            f"was made by other code: today the same options make another {', '.join(other)}",
            "delete the folder to make it again, or name another folder",
        )
    write_json(folder / MANIFEST, {**manifest, "code": code}, indent=2)
    return True


def write_folder(
    folder: Path,
    options: dict[str, Any],
    files: dict[str, list[str]],
    notes: dict[str, Any],
    code: str = "",
) -> dict[str, Any]:
    """Write the folder, whole or not at all, and return its manifest.

    The folder is absent or empty, see `is_current`. Files without lines are left out.
    """
    described: dict[str, dict[str, Any]] = {}
    with atomic_folder(folder) as staged:
        for name, lines in files.items():
            if lines:
                (staged / name).write_bytes(_text(lines))
                described[name] = {
                    "lines": len(lines),
                    "mean_length": round(fmean(len(line.split()) for line in lines), 2),
                    "sha256": checksum(lines),
                }
        manifest = {
            "version": __version__,
            "code": code,
            "options": options,
            "notes": notes,
            "files": described,
        }
        write_json(staged / MANIFEST, manifest, indent=2)
    return manifest


def _text(lines: Sequence[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


def _digests(folder: Path, manifest: dict[str, Any]) -> dict[str, str]:
    """The SHA-256 of each file in the folder."""
    try:
        found = {name: facts["sha256"] for name, facts in manifest["files"].items()}
        outside = any(Path(name).name != name for name in found)
        right = not outside and all(type(digest) is str for digest in found.values())
    except (KeyError, TypeError, AttributeError):
        right = False
    if not right:
        raise InputError(
            folder / MANIFEST, None, "is damaged", "delete the folder to make it again"
        )
    return found
