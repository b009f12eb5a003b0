"""Several analyses in one folder, with a list of what was drawn and what was not.

The list is ``analyses.json``: ``drawn`` names each analysis with its figures and its numbers,
``absent`` those that failed, with the reason. If one analysis fails, the others are still made.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from treesyntax.analysis.figures import write_numbers
from treesyntax.errors import TreeSyntaxError
from treesyntax.files import atomic_folder
from treesyntax.jobs.terminal import tracked

LIST = "analyses"
NUMBERS = (".json", ".md", ".tex")


@dataclass(frozen=True)
class Analysis:
    """One analysis to make.

    Attributes:
        name: of the analysis.
        side: ``encoder`` or ``decoder``, the subfolder for its files; "" for the folder itself.
        work: writes its files into a folder.
    """

    name: str
    side: str
    work: Callable[[Path], None]


def write_analyses(analyses: Iterable[Analysis], folder: Path) -> None:
    """Make all analyses; the folder is written whole and replaces an older one.

    Raises:
        InputError: if the folder cannot be written.
    """
    drawn, absent = [], []
    with atomic_folder(folder) as staged:
        for one in tracked([*analyses], "analyses"):
            entry = {"name": one.name, "side": one.side}
            place = staged / one.side
            place.mkdir(exist_ok=True)
            before = set(place.iterdir())
            try:
                one.work(place)
            except Exception as error:  # the others and the study go on, whatever it is
                for file in set(place.iterdir()) - before:
                    file.unlink()
                absent.append({**entry, "why": _reason(error)})
                continue
            new = sorted(str(file.relative_to(staged)) for file in set(place.iterdir()) - before)
            figures = [name for name in new if name.endswith(".svg")]
            numbers = [name for name in new if name.endswith(NUMBERS)]
            drawn.append({**entry, "figures": figures, "numbers": numbers})
        write_numbers({"drawn": drawn, "absent": absent}, staged, LIST)


def _reason(error: Exception) -> str:
    if isinstance(error, TreeSyntaxError):
        return str(error)
    traceback.print_exception(error, file=sys.stderr)
    return f"{type(error).__name__}: {error}; its log has the details"
