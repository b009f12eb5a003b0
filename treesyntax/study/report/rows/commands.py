"""The commands that a report tells its reader to run next."""

from __future__ import annotations

import shlex
from pathlib import Path

from treesyntax.study.recipe.budget import TRAIN_ON
from treesyntax.study.recipe.recipe import RECIPE_FILE, Recipe
from treesyntax.study.run.folder import default_folder

LONGER = 2
"""How many times longer a training is to be that was still learning."""


def study_command(recipe: Recipe, folder: Path, *settings: str, other: Path | None = None) -> str:
    """The command that goes on with a study, or that makes another one with some entries of its recipe changed.

    It names the resolved recipe, which has what the first command changed with --set. Files of own
    methods are not beside that, so the recipe is then left to the reader to name.
    """
    name = "RECIPE" if recipe.imports else str(folder / RECIPE_FILE)
    out = [] if not other and folder == default_folder(recipe) else ["--out", str(other or folder)]
    changes = [word for setting in settings for word in ("--set", setting)]
    return shlex.join(["treesyntax", "study", name, *out, *changes])


def train_on_command(recipe: Recipe, folder: Path) -> str:
    """The command by which all trainings go on from their last checkpoints, to twice as many updates."""
    return f"{study_command(recipe, folder)} --{TRAIN_ON} {LONGER * recipe.train_on:g}"
