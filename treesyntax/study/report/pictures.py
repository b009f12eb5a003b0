"""The figures of a report: those that it draws, and those of analyses, as far as they are files of
the study.

A study's folder may come from somebody else, and so may the lists of figures in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from treesyntax.files import read_object, write_json, write_text
from treesyntax.study.report.curves import data_uri
from treesyntax.study.report.examples.choice import Examples
from treesyntax.study.results.figure_files import write_figure_files
from treesyntax.study.results.table_text import Rows, Table, csv_text

if TYPE_CHECKING:  # matplotlib is loaded by those who draw
    from matplotlib.figure import Figure

ANALYSES = {
    "attention_mass": (
        "Attention by tree relation",
        "Share of a token's attention that goes to tokens in a relation, mean over the first validation sentences. "
        "The last row is chance. Then the same against chance, as a power of 2: 1 is twice as much.",
    ),
    "mask_strengths": (
        "Mask strengths",
        "Strength s of each relation in each head, which adds −exp(s) to the logits of its pairs: a large s hides the "
        "relation (McDonald & Chiang 2021). With form='additive' s itself is added, and a small s hides.",
    ),
    "sentence_masks": (
        "The masks of one sentence",
        "The strengths that hold for each pair of tokens of one validation sentence, summed. Dots "
        "before a token show how deep its node is in the tree.",
    ),
    "strength_trajectories": (
        "Mask strengths over training",
        "Each line is the strength of one relation, mean over heads, at the checkpoints that were "
        "kept.",
    ),
    "strength_study": (
        "Mask strengths beside what masks gain",
        "Smallest and largest strength, mean over the seeds, and the difference of the mean score "
        "to the baseline's.",
    ),
    "encoding_similarity": (
        "Similarity of stack encodings",
        "Cosines of the encodings of nodes of a complete tree, named by their steps from the root: for chosen and for "
        "learned p, behind the projection, and after a step up (U) or to a child (D0, D1, …). Hatched: zero.",
    ),
    "relative_tables": (
        "Vectors of relative distances",
        "For each distance the length of its learned vector, and the cosines of all pairs of "
        "distances.",
    ),
}  # fmt: skip
"""By the name of an analysis its heading in the report and what its figures show."""

FIGURES, TABLES = "figures", "tables"
ALL_METRICS = "_all_metrics"
"""Ends the name of a figure that has a panel for each metric."""
NO_TABLE = Table("", (), ())
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
        owner: the run that it is of; "" for the whole study.
    """

    file: str
    numbers: tuple[str, ...]
    caption: str
    uri: str
    owner: str = ""


class Drawing(NamedTuple):
    """A figure that is to be written.

    Attributes:
        name: of its file.
        figure: the figure.
        numbers: everything in it as plain values, by the name of their file.
        caption: what it shows.
        owner: as of `Picture`.
    """

    name: str
    figure: Figure
    numbers: Mapping[str, Any]
    caption: str
    owner: str = ""


@dataclass
class Section:
    """A heading with figures under it.

    Attributes:
        name: its id on the page.
        heading: in words.
        text: how to read the figures.
        notes: the figures that could not be drawn, and why.
        table: under the figures; one without rows for none.
        examples: single outputs, opened by a click.
        lines: facts in words, above the figures.
        drawings: figures that are to be written, and then are among the pictures.
        tables: the numbers of its table in full, with a header, by the name of their CSV file.
    """

    name: str
    heading: str
    text: str
    pictures: list[Picture] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    table: Table = NO_TABLE
    examples: list[Examples] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    drawings: list[Drawing] = field(default_factory=list)
    tables: dict[str, Rows] = field(default_factory=dict)

    def draw(self, name: str, figure: Figure, numbers: Any, caption: str) -> None:
        """Add a figure with numbers of its own."""
        self.drawings.append(Drawing(name, figure, {name: numbers}, caption))

    def write(self, folder: Path) -> None:
        """Write figures, their numbers and tables into a study's folder."""
        for name, rows in self.tables.items():
            write_text(folder / TABLES / name, csv_text(rows))
        for name, figure, numbers, caption, owner in self.drawings:
            for stem, values in numbers.items():
                write_json(folder / FIGURES / f"{stem}.json", values)
            uri = data_uri(write_figure_files(figure, folder / FIGURES / f"{name}.svg").encode())
            files = tuple(f"{FIGURES}/{stem}.json" for stem in numbers)
            self.pictures.append(Picture(f"{FIGURES}/{name}.svg", files, caption, uri, owner))
        self.drawings = []

    @property
    def is_filled(self) -> bool:
        """Whether there is anything to see."""
        return any((self.pictures, self.drawings, self.notes, self.table.rows, self.examples))

    @property
    def folded(self) -> bool:
        """Whether all there is to see is of single runs or outputs, and opened by a click."""
        if self.examples:
            return True
        return bool(self.pictures) and all(picture.owner for picture in self.pictures)

    @property
    def groups(self) -> list[tuple[str, list[Picture]]]:
        """The figures by the run that they are of."""
        return [
            (owner, list(pictures))
            for owner, pictures in groupby(self.pictures, lambda picture: picture.owner)
        ]


def read_list(path: Path) -> dict[str, list[dict[str, Any]]]:
    """The analyses that were drawn and those that were not, without entries of another form; both
    empty before the step ran."""
    lists = read_object(path)
    forms: dict[str, dict[str, type]] = {
        "drawn": {"name": str, "side": str, "figures": list, "numbers": list},
        "absent": {"name": str, "why": str},
    }
    return {key: _of_form(lists.get(key), form) for key, form in forms.items()}


def _of_form(entries: Any, form: Mapping[str, type]) -> list[dict[str, Any]]:
    return [
        entry
        for entry in (entries if isinstance(entries, list) else ())
        if isinstance(entry, dict)
        and all(isinstance(entry.get(key), kind) for key, kind in form.items())
        and all(isinstance(name, str) for key in form for name in entry[key])
    ]


def listed_pictures(
    folder: Path, list_folder: str, owner: str, entry: Mapping[str, Any]
) -> tuple[list[Picture], list[str]]:
    """The figures of one entry of a list, and notes of those that are left out.

    Args:
        folder: of the study.
        list_folder: the folder of the list in it.
        owner: whose figures they are.
        entry: of ``drawn``.
    """
    side = " (decoder)" if entry["side"] == "decoder" else ""
    inside = {
        name: file
        for name in (*entry["figures"], *entry["numbers"])
        if (file := _file_inside(folder, f"{list_folder}/{name}")) is not None
    }
    numbers = tuple(f"{list_folder}/{name}" for name in entry["numbers"] if name in inside)
    pictures, notes = [], []
    for name in entry["figures"]:
        if name not in inside:
            notes.append(
                f"{owner}: {list_folder}/{name} is not drawn, as it is no figure in this folder"
            )
            continue
        stem = Path(name).stem
        caption = f"{owner}{side}: {stem.replace('_', ' ')}"
        if stem == "learned_p":
            caption += f" = {_learned_p(folder / numbers[0]) if numbers else '?'}"
        uri = data_uri(inside[name].read_bytes())
        pictures.append(Picture(f"{list_folder}/{name}", numbers, f"{caption}.", uri, owner))
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
