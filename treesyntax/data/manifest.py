"""What ``binarize.json`` tells of the data beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from treesyntax.data.dictionary import UNK, Dictionary, UnknownOf, one_unknown, unknown_symbol
from treesyntax.data.encoding import MANIFEST as MANIFEST
from treesyntax.data.encoding import TEXT, Encoding
from treesyntax.data.token_files import TokenData
from treesyntax.errors import InputError
from treesyntax.files import parse_json, read_record, sha256_of
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.names import GIVEN, SHUFFLED

DICTIONARIES = "dictionaries"
"""The key of the SHA-256 of each dictionary, by the name of its file."""
Part = TypeVar("Part")


def read_manifest(folder: Path, pick: Callable[[Any], Part]) -> Part | None:
    """What ``pick`` makes of the JSON in a folder; None where there is none."""
    path = folder / MANIFEST
    if not path.exists():
        return None
    try:
        return pick(parse_json(read_record(path)))
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


def shuffle_seed_of(folder: Path, language: str) -> int | None:
    """The seed of a side's ``shuffled`` control trees; None where it has no such trees.

    Raises:
        InputError: for a damaged record.
    """

    def seed(manifest: Any) -> int | None:
        sides = manifest["sides"].values()
        control = next((side["control"] for side in sides if side["language"] == language), None)
        return int(manifest["options"]["control_seed"]) if control == SHUFFLED else None

    return read_manifest(folder, seed)


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
        raise _not_described(tokens.bin_path)


def check_dictionary(path: Path) -> None:
    """Compare a dictionary with the digest that ``treesyntax binarize`` wrote down, if it did.

    Raises:
        InputError: if they differ, or for a damaged record.
    """

    def digest(manifest: Any) -> str | None:
        return manifest.get(DICTIONARIES, {}).get(path.name)

    expected = read_manifest(path.parent, digest)
    if expected is not None and expected != sha256_of(path):
        raise _not_described(path)


def read_dictionary(path: Path, unknown_of: UnknownOf = one_unknown) -> Dictionary:
    """The dictionary of a data folder, as :meth:`Dictionary.read` gives it.

    Raises:
        InputError: if it is not the one that ``treesyntax binarize`` wrote there, or is damaged.
    """
    check_dictionary(path)
    return Dictionary.read(path, unknown_of)


def _not_described(path: Path) -> InputError:
    return InputError(
        path,
        None,
        f"is not the file that {MANIFEST} describes, its checksum differs",
        "run treesyntax binarize again",
    )


def dictionary_file(language: str) -> str:
    """The name of the file with the symbols of a side."""
    return f"dict.{language}.txt"


def labels_file(language: str) -> str:
    """The name of the file with the labels of a side, a dictionary like that of its tokens."""
    return f"labels.{language}.txt"


def label_numbers(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Labels as the tree store has them, of ids of their dictionary: 0 for unknown, 1 for the first
    line."""
    return ids - UNK


class SideData(NamedTuple):
    """One language of a data folder.

    Attributes:
        language: its name in the names of the files.
        encoding: how records became tokens, with the subword model of the folder.
        segmented: whether its words were segmented elsewhere.
        longest: tokens of the longest sentence in the training data.
        deepest: steps from the root to the deepest node there. Both are 0 where the folder was written
            before they were noted.
    """

    language: str
    encoding: Encoding
    segmented: bool
    longest: int = 0
    deepest: int = 0

    @property
    def has_trees(self) -> bool:
        """Whether its records are trees."""
        return self.encoding.format_name != TEXT


class Data(NamedTuple):
    """A data folder."""

    folder: Path
    source: SideData
    target: SideData

    def dictionary(self, side: SideData) -> Dictionary:
        """The dictionary of a side, with the unknown symbols of its linearization."""
        slots = get_linearization(side.encoding.linearization).slots
        path = self.folder / dictionary_file(side.language)
        return read_dictionary(path, unknown_symbol if slots else one_unknown)

    def labels(self, side: SideData) -> Dictionary | None:
        """The labels of a side, None where they are not kept."""
        if not side.encoding.labels:
            return None
        return read_dictionary(self.folder / labels_file(side.language))


def read_data(folder: str | Path) -> Data:
    """Read ``binarize.json``.

    Raises:
        InputError: if the folder or the record is not there, or the record is damaged.
    """
    folder = Path(folder)

    def data(manifest: Any) -> Data:
        return Data(folder, *(_side(folder, manifest, role) for role in ("source", "target")))

    binarized = read_manifest(folder, data)
    if binarized is None:
        cause = f"has no {MANIFEST}" if folder.is_dir() else "is not a folder"
        raise InputError(folder, None, cause, "give the folder that treesyntax binarize wrote")
    return binarized


def _side(folder: Path, manifest: dict[str, Any], role: str) -> SideData:
    side, options = manifest["sides"][role], manifest["options"]
    encoding = Encoding(
        format_name=str(side["format"]),
        linearization=str(side["view"]),
        policy=str(options["subword_policy"]),
        subwords_style=str(options["pieces_style"]),
        model=folder / side["subword_model"] if side["subword_model"] else None,
        control=side["control"] or GIVEN,
        control_seed=int(options["control_seed"]),
        units=str(side.get("subword_units") or ""),
        labels=bool(side.get("labels")),
    )
    trained = manifest["splits"]["train"][side["language"]]
    most = (int(trained.get(name, 0)) for name in ("longest", "deepest"))
    return SideData(str(side["language"]), encoding, bool(options[f"{role}_pieces"]), *most)
