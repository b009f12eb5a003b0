"""What ``binarize.json`` says of a data folder: how its text became tokens, and what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from treesyntax.arity import unknown_symbol
from treesyntax.binarize_encode import TEXT, Encoding
from treesyntax.dictionary import Dictionary, one_unknown
from treesyntax.errors import InputError
from treesyntax.linearize import get_view
from treesyntax.manifest import MANIFEST, read_manifest
from treesyntax.transforms.controls import GIVEN


class SideData(NamedTuple):
    """One language of a data folder.

    Attributes:
        language: its name in the names of the files.
        encoding: how records became tokens, with the subword model of the folder.
        pieces: whether its words were segmented elsewhere.
    """

    language: str
    encoding: Encoding
    pieces: bool

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
        """The dictionary of a side, with the unknown symbols of its view.

        Raises:
            InputError: if it cannot be read.
        """
        slots = get_view(side.encoding.view).slots
        path = self.folder / f"dict.{side.language}.txt"
        return Dictionary.read(path, unknown_symbol if slots else one_unknown)


def read_data(folder: str | Path) -> Data:
    """Read ``binarize.json``.

    Raises:
        InputError: if the folder or the record is not there, or the record is damaged.
    """
    folder = Path(folder)

    def data(manifest: Any) -> Data:
        return Data(folder, *(_side(folder, manifest, role) for role in ("source", "target")))

    found = read_manifest(folder, data)
    if found is None:
        cause = f"has no {MANIFEST}" if folder.is_dir() else "is not a folder"
        raise InputError(folder, None, cause, "give the folder that treesyntax binarize wrote")
    return found


def _side(folder: Path, manifest: dict[str, Any], role: str) -> SideData:
    side, options = manifest["sides"][role], manifest["options"]
    encoding = Encoding(
        format_name=str(side["format"]),
        view=str(side["view"]),
        policy=str(options["subword_policy"]),
        pieces_style=str(options["pieces_style"]),
        model=folder / side["subword_model"] if side["subword_model"] else None,
        control=side["control"] or GIVEN,
        control_seed=int(options["control_seed"]),
        units=str(side.get("subword_units") or ""),
    )
    return SideData(str(side["language"]), encoding, bool(options[f"{role}_pieces"]))
