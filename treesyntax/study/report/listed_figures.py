"""The figures that analyses have drawn, as far as they are files of the study.

A study's folder may come from somebody else, and so may the lists of figures in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from treesyntax.files import read_object
from treesyntax.study.report.curves import data_uri

LARGEST = 1 << 24
"""Most bytes of a figure on the page."""


@dataclass(frozen=True)
class Picture:
    """A figure of the report.

    Attributes:
        file: the SVG inside the study.
        numbers: JSON files with its numbers inside the study.
        caption: what it shows.
        uri: the SVG itself, for a page.
    """

    file: str
    numbers: tuple[str, ...]
    caption: str
    uri: str


def read_list(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The analyses that were drawn and those that were not, without entries of another form; both
    empty before the step ran."""
    found = read_object(path)
    forms: dict[str, dict[str, type]] = {
        "drawn": {"name": str, "side": str, "figures": list, "numbers": list},
        "absent": {"name": str, "why": str},
    }
    return {key: _of_form(found.get(key), form) for key, form in forms.items()}


def _of_form(entries: Any, form: Mapping[str, type]) -> list[dict[str, Any]]:
    return [
        entry
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
        and all(isinstance(entry.get(key), kind) for key, kind in form.items())
        and all(isinstance(name, str) for key in form for name in entry[key])
    ]


def listed_pictures(
    folder: Path, place: str, owner: str, entry: Mapping[str, Any]
) -> tuple[list[Picture], list[str]]:
    """The figures of one entry of a list, and notes of those that are left out.

    Args:
        folder: of the study.
        place: the folder of the list in it.
        owner: whose figures they are.
        entry: of ``drawn``.
    """
    side = " (decoder)" if entry["side"] == "decoder" else ""
    inside = {
        name: file
        for name in (*entry["figures"], *entry["numbers"])
        if (file := _file_inside(folder, f"{place}/{name}")) is not None
    }
    numbers = tuple(f"{place}/{name}" for name in entry["numbers"] if name in inside)
    pictures, notes = [], []
    for name in entry["figures"]:
        if name not in inside:
            notes.append(f"{owner}: {place}/{name} is not drawn, as it is no figure in this folder")
            continue
        stem = Path(name).stem
        caption = f"{owner}{side}: {stem.replace('_', ' ')}"
        if stem == "learned_p":
            caption += f" = {_learned_p(folder / numbers[0]) if numbers else '?'}"
        uri = data_uri(inside[name].read_bytes())
        pictures.append(Picture(f"{place}/{name}", numbers, f"{caption}.", uri))
    return pictures, notes


def _file_inside(folder: Path, name: str) -> Path | None:
    """The file of that name, if it is a small file of the folder and not of a place elsewhere."""
    try:
        path = (folder / name).resolve()
        fits = path.is_relative_to(folder.resolve()) and path.is_file()
        return path if fits and path.stat().st_size <= LARGEST else None
    except (OSError, ValueError, RuntimeError):  # a loop of links, a NUL in the name
        return None


def _learned_p(path: Path) -> str:
    values = read_object(path).get("learned_p")
    plain = isinstance(values, list) and all(isinstance(value, float | int) for value in values)
    return ", ".join(f"{value:.3f}" for value in values) if plain and values else "?"
