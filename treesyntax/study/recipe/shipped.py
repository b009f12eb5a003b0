"""The recipes that come with the package, by name: ``nmt/dependency`` is ``recipes/nmt/dependency.yaml``.

The last part of a name is enough where no other recipe has it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from treesyntax.errors import OptionError, unknown_name

PACKAGE = Path(__file__).parents[2]
SUFFIX = ".yaml"


def recipes_folder() -> Path:
    """The folder of the recipes: in the package where it was installed, beside it in a clone."""
    inside = PACKAGE / "recipes"
    return inside if inside.is_dir() else PACKAGE.parent / "recipes"


@cache
def shipped_recipes() -> dict[str, Path]:
    """All recipes by name, such as ``demo/for2lam``."""
    folder = recipes_folder()
    return {
        path.relative_to(folder).with_suffix("").as_posix(): path
        for path in sorted(folder.glob(f"*/*{SUFFIX}"))
    }


def shipped_recipe(name: str) -> Path:
    """The file of a recipe.

    Raises:
        OptionError: if no recipe has that name, or several have it as their last part.
    """
    recipes = shipped_recipes()
    names = [full for full in recipes if name in (full, full.rpartition("/")[2])]
    if len(names) > 1:
        raise OptionError(f"several recipes are named {name}: {', '.join(names)}")
    if not names:
        raise unknown_name("recipe", name, recipes)
    return recipes[names[0]]


def recipe_file(path: Path) -> Path:
    """A file as it is; a name without a suffix, where no file has it, as the shipped recipe.

    Raises:
        OptionError: if there is neither.
    """
    if path.exists() or path.is_absolute():
        return path
    if not path.suffix:
        return shipped_recipe(path.as_posix())
    if shipped := shipped_name(path.as_posix()):
        raise OptionError(
            f"there is no file {path}; the recipe that comes with treesyntax is named {shipped}"
        )
    return path


def shipped_name(path: str) -> str | None:
    """The name of the shipped recipe that a path such as ``recipes/nmt/dependency.yaml`` is of."""
    name = Path(path).with_suffix("").as_posix().rpartition("recipes/")[2]
    return name if name in shipped_recipes() else None
