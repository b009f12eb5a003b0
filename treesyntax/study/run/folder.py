"""The folder of a study: one study each, and one process at a time."""

from __future__ import annotations

import os
import shutil
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from treesyntax.errors import OptionError
from treesyntax.made.lock import HOLDER, locked
from treesyntax.study.recipe.identity import IDENTITY_FILE, read_identity
from treesyntax.study.recipe.recipe import Recipe
from treesyntax.study.recipe.search import CHOSEN_FILE, SEARCH, TRIALS_FILE

LOCK_FILE = ".lock"
OF_SEARCH = (SEARCH, TRIALS_FILE, CHOSEN_FILE)
"""What a search leaves in the folder of a study that has not begun."""
LEFTOVERS = (".part", ".old")
"""How the names of half-written hidden files and folders end."""


def default_folder(recipe: Recipe) -> Path:
    """``runs/NAME``."""
    return Path("runs") / recipe.name


def check_folder(folder: Path) -> None:
    """Make sure that a folder is new, empty, or that of a study."""
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"--out {folder} is a file; name a folder")
    if (folder / IDENTITY_FILE).exists():
        read_identity(folder)
    elif folder.exists() and any(
        not item.name.startswith(".") and item.name not in OF_SEARCH for item in folder.iterdir()
    ):
        raise OptionError(f"{folder} is not empty and holds no study; choose another --out")


def studies_near(folder: Path) -> list[Path]:
    """The other studies beside a study's folder, around it, and in it."""
    folder = folder.absolute()
    studies = {
        file.parent
        for root in (folder.parent, folder)
        for pattern in (IDENTITY_FILE, f"*/{IDENTITY_FILE}")
        for file in root.glob(pattern)
    }
    return sorted(studies - {folder})


def held_alone(folder: Path) -> AbstractContextManager[None]:
    """Hold a study's folder; the system releases it when this process ends, however it ends."""
    busy = f"{folder} is in use by another treesyntax study ({HOLDER}); wait for it or choose another --out"
    return locked(folder / LOCK_FILE, busy)


def remove_leftovers(folder: Path) -> None:
    """Remove the half-written files of a killed study from a folder that this process holds."""
    for parent, folders, files in os.walk(folder):
        if Path(parent) != folder and IDENTITY_FILE in files:  # another study, which may be at work
            folders.clear()
            continue
        for name in [name for name in (*folders, *files) if is_leftover(name)]:
            path = Path(parent, name)
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with suppress(OSError):
                    path.unlink()
        folders[:] = [name for name in folders if not is_leftover(name)]


def is_leftover(name: str) -> bool:
    """Whether a name is that of a half-written file or folder."""
    return name.startswith(".") and name.endswith(LEFTOVERS)
