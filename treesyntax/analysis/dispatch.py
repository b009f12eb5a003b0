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

from treesyntax.analysis.arguments import SIDES
from treesyntax.analysis.figures import write_numbers
from treesyntax.errors import InputError, TreeSyntaxError
from treesyntax.files import atomic_folder, read_object
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
        InputError: if the folder cannot be written, or holds what no earlier call has written.
    """
    _check_replaceable(folder)
    drawn, absent = [], []
    with atomic_folder(folder) as staged:
        for analysis in tracked([*analyses], "analyses"):
            entry = {"name": analysis.name, "side": analysis.side}
            side_folder = staged / analysis.side
            side_folder.mkdir(exist_ok=True)
            before = set(side_folder.iterdir())
            try:
                analysis.work(side_folder)
            except Exception as error:  # the others and the study go on, whatever it is
                for file in set(side_folder.iterdir()) - before:
                    file.unlink()
                absent.append({**entry, "why": _reason(error)})
                print(f"{analysis.name}: not drawn: {absent[-1]['why']}", file=sys.stderr)
                continue
            new = sorted(
                str(file.relative_to(staged)) for file in set(side_folder.iterdir()) - before
            )
            figures = [name for name in new if name.endswith(".svg")]
            numbers = [name for name in new if name.endswith(NUMBERS)]
            drawn.append({**entry, "figures": figures, "numbers": numbers})
        write_numbers({"drawn": drawn, "absent": absent}, staged, LIST)


def _check_replaceable(folder: Path) -> None:
    """Refuse to replace a folder with files of others in it."""
    listed = read_object(folder / f"{LIST}.json")
    entries = [*listed.get("drawn", ()), *listed.get("absent", ())]
    known_names = (
        f"{LIST}.json",
        *(str(entry["name"]) for entry in entries if isinstance(entry, dict)),
    )
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name not in SIDES and not (listed and path.name.startswith(known_names)):
            cause = f"holds {path.name}, which would be deleted"
            raise InputError(folder, None, cause, "name a new folder")


def _reason(error: Exception) -> str:
    if isinstance(error, TreeSyntaxError):
        return str(error)
    traceback.print_exception(error, file=sys.stderr)
    return f"{type(error).__name__}: {error}; its log has the details"
