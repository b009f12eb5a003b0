"""The files of sections that a report had once: without a section to write them they keep old numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from treesyntax.files import read_object
from treesyntax.study.report.examples.sections import TYPES_FILE
from treesyntax.study.report.groups import CATEGORIES_FILE
from treesyntax.study.report.map import MAP_FILE
from treesyntax.study.report.pictures import ALL_METRICS, FIGURES, TABLES, Section
from treesyntax.study.report.worth import WORTH_FILE
from treesyntax.study.results.figure_files import FORMATS

OF_CATEGORY = "score_by_category"
TABLE_NAMES = (CATEGORIES_FILE, MAP_FILE, TYPES_FILE, WORTH_FILE)
FIGURE_NAMES = (
    "map",
    "worth",
    "verdict",
    "score_by_target_depth",
    OF_CATEGORY,
)
"""Those that a change of the recipe takes away."""


def remove_stale(folder: Path, sections: Sequence[Section]) -> None:
    """Remove the tables and figures of sections that the report no longer has; files of other names stay.

    Args:
        folder: of the study.
        sections: those of the report, which are written.
    """
    written = {f"{TABLES}/{name}" for section in sections for name in section.tables}
    for picture in (picture for section in sections for picture in section.pictures):
        written |= {picture.file, *picture.numbers}
    names = [f"{TABLES}/{name}" for name in TABLE_NAMES]
    for stem in (*FIGURE_NAMES, *_figures_of_test_sets(folder)):
        names.append(f"{FIGURES}/{stem}.json")
        for figure in (stem, f"{stem}{ALL_METRICS}"):
            if f"{FIGURES}/{figure}.svg" not in written:
                names += [f"{FIGURES}/{figure}.{suffix}" for suffix in FORMATS]
    for name in names:
        if name not in written:
            (folder / name).unlink(missing_ok=True)


def _figures_of_test_sets(folder: Path) -> Iterator[str]:
    """The figures of categories that are of one test set; the recipe may have forgotten its name, the numbers have not."""
    for file in sorted((folder / FIGURES).glob(f"{OF_CATEGORY}_*.json")):
        test_set = file.stem.removeprefix(f"{OF_CATEGORY}_")
        if read_object(file).get("quantity") == f"category of {test_set}":
            yield file.stem
