"""What a study's folder says of itself: its name for good, the files it reads, the keys of its runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from treesyntax import __version__
from treesyntax.errors import InputError, OptionError
from treesyntax.files import atomic_file, read_object, sha256_of_value, write_json
from treesyntax.made.digests import IDENTITY_FILE as IDENTITY_FILE
from treesyntax.made.records import read_record_of
from treesyntax.study.recipe.reading import IMPORT, RESOLVED
from treesyntax.study.recipe.recipe import DATA, RECIPE_FILE, Recipe
from treesyntax.study.recipe.rows import data_files
from treesyntax.study.recipe.trainer import outside_files


@dataclass(frozen=True)
class Identity:
    """A study's identity.

    Attributes:
        hash: given when the study began; it stays when the study grows.
        version: of treesyntax at that time.
        inputs: size and sha256 of each file or folder from outside, by its name as given.
        runs: by run the key of its outputs; results with other keys are not of this study.
    """

    hash: str
    version: str
    inputs: dict[str, dict[str, Any]]
    runs: dict[str, str]

    @property
    def digests(self) -> dict[str, str]:
        """The sha256 of each input."""
        return {name: str(facts["sha256"]) for name, facts in self.inputs.items()}


def make_identity(
    recipe: Recipe,
    inputs: Mapping[str, dict[str, Any]],
    runs: Mapping[str, str],
    before: Identity | None = None,
) -> Identity:
    """The identity of a new study, or of one that goes on with other inputs and runs."""
    if before is None:
        begun = sha256_of_value([recipe.content, dict(inputs)])
        before = Identity(begun, __version__, {}, {})
    return Identity(before.hash, before.version, {**before.inputs, **inputs}, dict(runs))


def check_data_files(recipe: Recipe) -> None:
    """Make sure that all data files from outside the study, and files of own methods, exist."""
    for name, file in zip(recipe.imports, recipe.own_files, strict=True):
        if os.pathsep in str(
            file.absolute()
        ):  # a list in the environment of every process names them
            raise OptionError(
                f"{recipe.path}: {IMPORT}: {file.absolute()} holds {os.pathsep!r}; choose a path without it"
            )
        if not file.is_file():
            raise OptionError(f"{recipe.path}: {IMPORT}: no such file: {file} ({name})")
    files = [file for files in zip(*map(data_files, recipe.methods), strict=True) for file in files]
    files += outside_files(recipe.content).items()
    files += [("categories", row.categories) for row in recipe.methods if row.categories]
    for key, name in files:
        if f"{{{DATA}}}" not in name and not Path(name).is_file():
            hint = where_it_is(recipe)
            raise OptionError(f"{recipe.path}: {key}: no such file: {name}{hint}")


def where_it_is(recipe: Recipe) -> str:
    """The end of a message about a file that is missing."""
    known = ", ".join(f"--set {name}=…" for name in recipe.content["vars"])
    return f"; say where it is with {known}" if known else ""


def find_changes(folder: Path, recipe: Recipe) -> list[str]:
    """A line for each difference of a recipe from the one in its study's folder."""
    before = written_recipe(folder)
    if before is None:
        return [f"{RECIPE_FILE} is lost or damaged, and is written again"]
    return list(_differences("", before, recipe.content))


def written_recipe(folder: Path) -> dict[str, Any] | None:
    """The recipe in a study's folder as plain values; None if it is lost or damaged."""
    try:
        content = yaml.safe_load((folder / RECIPE_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return None
    return content if isinstance(content, dict) else None


def _differences(key: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            yield from _differences(f"{key}.{name}" if key else name, old.get(name), new.get(name))
    elif isinstance(old, list) and isinstance(new, list) and old != new:
        more, less = (
            [item for item in values if item not in others]
            for values, others in ((new, old), (old, new))
        )
        changes = [
            f"{sign} {', '.join(map(str, items))}"
            for sign, items in (("+", more), ("-", less))
            if items
        ]
        yield f"{key}: {'; '.join(changes) or 'in another order'}"
    elif old != new:
        shown = ["nothing" if value is None else str(value) for value in (old, new)]
        yield f"{key}: {' -> '.join(shown)}"


def write_identity(folder: Path, recipe: Recipe, identity: Identity) -> None:
    """Write the identity and the resolved recipe into a study's folder."""
    text = yaml.safe_dump(recipe.content, sort_keys=False, allow_unicode=True, width=100)
    # Both are on the disk before either is renamed. The identity is the first: after a kill in
    # between, the folder belongs to the study, which writes a recipe that is lost again.
    with atomic_file(folder / RECIPE_FILE) as staged:
        staged.write_text(f"{RESOLVED} {recipe.path}\n{text}", "utf-8", "backslashreplace")
        write_json(folder / IDENTITY_FILE, asdict(identity))


def began_with(folder: Path) -> dict[str, str]:
    """The sha256 of each input of the study in a folder when it began; none where it has not begun."""
    return read_identity(folder).digests if (folder / IDENTITY_FILE).exists() else {}


def read_identity(folder: Path) -> Identity:
    """The identity stored in a study's folder.

    Raises:
        OptionError: if the folder holds no study, or one of a version that kept no keys of runs.
        InputError: if its file is damaged.
    """
    path = folder / IDENTITY_FILE
    if not path.is_file():
        raise OptionError(f"{folder} holds no study ({IDENTITY_FILE} is missing)")
    if read_object(path).keys() == {"hash", "version", "inputs"}:
        raise OptionError(
            f"{folder} holds a study of treesyntax before runs had keys; report it with the "
            "version that made it, or choose another --out"
        )
    remedy = "run the study in a new folder"
    identity = read_record_of(Identity, path, "is damaged", remedy)
    if not all(type(facts.get("sha256")) is str for facts in identity.inputs.values()):
        raise InputError(path, None, "is damaged", remedy)
    return identity
