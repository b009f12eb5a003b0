"""The commands that a report tells its reader to run next."""

from __future__ import annotations

import shlex
from pathlib import Path

from treesyntax.study.recipe.recipe import RECIPE_FILE, Recipe
from treesyntax.study.run.folder import default_folder

LIMITS = ("max-update", "max-epoch")
"""The flags that end a training."""
LONGER = 2
"""How many times longer a training is to be that had not ended."""


def study_command(recipe: Recipe, folder: Path, *settings: str, other: Path | None = None) -> str:
    """The command that goes on with a study, or that makes another one with some entries of its recipe changed.

    It names the resolved recipe, which has what the first command changed with --set. Files of own
    methods are not beside that, so the recipe is then left to the reader to name.
    """
    name = "RECIPE" if recipe.imports else str(folder / RECIPE_FILE)
    out = [] if not other and folder == default_folder(recipe) else ["--out", str(other or folder)]
    changes = [word for setting in settings for word in ("--set", setting)]
    return shlex.join(["treesyntax", "study", name, *out, *changes])


def longer_command(recipe: Recipe, folder: Path) -> str:
    """The command that trains all rows longer, beside the study; "" where rows have limits of their own, or
    there are none."""
    own = {name.replace("_", "-") for row in recipe.methods for name in row.train}
    limits = {
        name: value
        for name, value in recipe.train.items()
        if name.replace("_", "-") in LIMITS and isinstance(value, int) and value > 0
    }
    if not limits or own & {*LIMITS}:
        return ""
    changes = (f"train.{name}={LONGER * value}" for name, value in limits.items())
    other = folder.with_name(f"{folder.name}-longer")
    return study_command(recipe, folder, *changes, other=other)
