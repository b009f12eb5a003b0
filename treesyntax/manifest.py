"""What ``binarize.json`` tells of the data beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from treesyntax.errors import InputError
from treesyntax.files import parse_json
from treesyntax.indexed import TokenData

MANIFEST = "binarize.json"

Part = TypeVar("Part")


def read_manifest(folder: Path, part: Callable[[Any], Part]) -> Part | None:
    """What ``part`` makes of the JSON in a folder; None where there is none.

    Raises:
        InputError: if it is damaged.
    """
    path = folder / MANIFEST
    if not path.exists():
        return None
    try:
        return part(parse_json(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(
            path, None, "is not a record of treesyntax binarize", "run treesyntax binarize again"
        ) from None


def side_of(folder: Path, language: str) -> dict[str, Any]:
    """What ``treesyntax binarize`` wrote down about a language; empty where it did not.

    Raises:
        InputError: for a damaged record.
    """

    def side(manifest: Any) -> dict[str, Any]:
        sides = manifest["sides"].values()
        return next((dict(side) for side in sides if side["language"] == language), {})

    return read_manifest(folder, side) or {}


def check_tokens(tokens: TokenData) -> None:
    """Compare a ``.bin`` file with the checksum that ``treesyntax binarize`` wrote down, if it did.

    Raises:
        InputError: if they differ, or for a damaged record.
    """
    split, _, rest = tokens.bin_path.stem.partition(".")
    language = rest.rpartition(".")[2]

    def checksum(manifest: Any) -> int | None:
        return manifest.get("splits", {}).get(split, {}).get(language, {}).get("bin_crc32")

    expected = read_manifest(tokens.bin_path.parent, checksum)
    if expected is not None and expected != tokens.bin_crc32():
        raise InputError(
            tokens.bin_path,
            None,
            f"is not the file that {MANIFEST} describes, its checksum differs",
            "run treesyntax binarize again",
        )
