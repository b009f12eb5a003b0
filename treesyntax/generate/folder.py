"""Folders of generated data: aligned text files and a manifest that says how they were made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from treesyntax import __version__
from treesyntax.errors import InputError
from treesyntax.files import atomic_folder

MANIFEST = "manifest.json"


def checksum(lines: Sequence[str]) -> str:
    """SHA-256 of the lines as a text file holds them."""
    return hashlib.sha256(_text(lines)).hexdigest()


def is_current(folder: Path, options: dict[str, Any]) -> bool:
    """Whether the folder already holds, unchanged, what these options make.

    Raises:
        InputError: if it is a file, or holds anything else: nothing is ever overwritten.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(folder, None, "is a file", "name a folder")
    if not folder.is_dir() or not any(folder.iterdir()):
        return False
    manifest = _read_manifest(folder)
    if manifest.get("options") != options:
        raise InputError(
            folder,
            None,
            "is not empty and was not made with these options",
            "name another folder or delete this one",
        )
    for name, facts in manifest.get("files", {}).items():
        path = folder / name
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != facts["sha256"]:
            raise InputError(
                path, None, "is not as it was generated", "delete the folder to make it again"
            )
    return True


def write_folder(
    folder: Path,
    options: dict[str, Any],
    files: dict[str, list[str]],
    notes: dict[str, Any],
) -> dict[str, Any]:
    """Write the folder, whole or not at all, and return its manifest.

    Args:
        folder: absent or empty, see `is_current`.
        options: everything that the contents depend on, of JSON types.
        files: the lines of each file by its name; files without lines are left out.
        notes: what else is worth knowing.

    Raises:
        InputError: if it cannot be written.
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
            "options": options,
            "notes": notes,
            "files": described,
        }
        text = json.dumps(manifest, indent=2, ensure_ascii=False)
        (staged / MANIFEST).write_text(text + "\n", encoding="utf-8")
    return manifest


def _text(lines: Sequence[str]) -> bytes:
    return "".join(line + "\n" for line in lines).encode()


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}
