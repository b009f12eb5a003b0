"""All analyses of a study as a whole.

Figures and numbers go into one folder, with a list of them, analyses.json. So far there is one
analysis: how far mask strengths spread beside what the masks gain (strength_study).

Example: treesyntax analyse study runs/lines-en-sv --metric bleu --out figures
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from treesyntax.analysis import strength_study
from treesyntax.analysis.dispatch import Analysis, write_analyses
from treesyntax.study.recipe.identity import read_identity


def analyse(study: Path, metric: str, out: Path) -> None:
    """Draw what can be drawn, and list the rest with the reasons.

    Raises:
        InputError: if there is no study, or the folder holds other files.
    """
    read_identity(study)
    work = partial(strength_study.analyse, [study], metric, None)
    write_analyses([Analysis(strength_study.NAME, "", work)], out)
