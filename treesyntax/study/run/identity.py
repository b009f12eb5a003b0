"""What a study is: a hash of its recipe, its input files and the version, and its folder."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from treesyntax import __version__
from treesyntax.errors import InputError, OptionError
from treesyntax.files import atomic_file, parse_json
from treesyntax.study.recipe.recipe import DATA, RECIPE_FILE, Recipe

IDENTITY_FILE = "study.json"
SHORT = 8


@dataclass(frozen=True)
class Identity:
    """A study's identity.

    Attributes:
        hash: sha256 over everything below.
        inputs: size and sha256 of each file that the study starts from, by its name as given.
    """

    hash: str
    version: str
    inputs: dict[str, dict[str, Any]]

    @property
    def short(self) -> str:
        """The first letters of the hash, enough to tell studies apart."""
        return self.hash[:SHORT]


def identify(recipe: Recipe) -> Identity:
    """Hash a recipe with its input files: any change makes another study.

    Raises:
        OptionError: if an input file does not exist.
        InputError: if one cannot be read.
    """
    inputs = {name: file_facts(Path(name)) for name in _input_names(recipe)}
    content = [recipe.content, inputs, __version__]
    # Order counts: of methods it is the order of the table, of flags it may matter to the tool.
    text = json.dumps(content, ensure_ascii=False, default=str)
    return Identity(hashlib.sha256(text.encode()).hexdigest(), __version__, inputs)


def file_facts(path: Path) -> dict[str, Any]:
    """Size in bytes and sha256 of a file.

    Raises:
        InputError: if it cannot be read.
    """
    try:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return {"size": stream.tell(), "sha256": digest}
    except OSError as error:
        raise InputError(path, None, f"cannot be read ({error.strerror})") from None


def _input_names(recipe: Recipe) -> list[str]:
    """Data files from outside the study, and files named in commands under prepare."""
    names = []
    sides = dict.fromkeys(
        (name, getattr(method, name)) for method in recipe.methods for name in ("source", "target")
    )
    for side_name, side in sides:
        for split in ("train", "valid", "test"):
            name = getattr(side, split)
            if f"{{{DATA}}}" in name:
                continue
            if not Path(name).is_file():
                raise _missing(recipe, f"data.{side_name}.{split}", name)
            names.append(name)
    for line in recipe.prepare:
        words = [part for word in _words(line) for part in (word, word.partition("=")[2])]
        # generate pairs takes NAME.gz where NAME is not there.
        names += [
            name for word in words if word for name in (word, f"{word}.gz") if Path(name).is_file()
        ]
    return sorted(set(names))


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return []  # the plan reports it


def _missing(recipe: Recipe, key: str, name: str) -> OptionError:
    variables = recipe.content["vars"]
    hint = ", ".join(f"--set {name}=…" for name in variables)
    remedy = f"; say where it is with {hint}" if hint else ""
    return OptionError(f"{recipe.path}: {key}: no such file: {name}{remedy}")


def default_folder(recipe: Recipe, identity: Identity) -> Path:
    """``runs/NAME-HASH``."""
    return Path("runs") / f"{recipe.name}-{identity.short}"


def check_folder(folder: Path, identity: Identity) -> None:
    """Make sure that a folder is new, empty, or this study's.

    Raises:
        OptionError: if it belongs to another study or to something else.
    """
    if folder.exists() and not folder.is_dir():
        raise OptionError(f"--out {folder} is a file; name a folder")
    if (folder / IDENTITY_FILE).exists():
        found = read_identity(folder)
        if found.hash != identity.hash:
            raise OptionError(
                f"{folder} holds the study {found.short}, but the recipe, its data or the version "
                f"make {identity.short}; choose another --out, or leave it out"
            )
    elif folder.exists() and any(not item.name.startswith(".") for item in folder.iterdir()):
        raise OptionError(f"{folder} is not empty and holds no study; choose another --out")


def claim_folder(folder: Path, recipe: Recipe, identity: Identity) -> None:
    """Write the identity and the resolved recipe into a folder that :func:`check_folder` allows.

    Raises:
        InputError: if the folder cannot be written.
    """
    # The identity comes first: a kill in between leaves a folder that is claimed all the same.
    if not (folder / IDENTITY_FILE).exists():
        content = {"hash": identity.hash, "version": identity.version, "inputs": identity.inputs}
        with atomic_file(folder / IDENTITY_FILE) as staged:
            staged.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
    if not (folder / RECIPE_FILE).exists():
        with atomic_file(folder / RECIPE_FILE) as staged:
            text = yaml.safe_dump(recipe.content, sort_keys=False, allow_unicode=True, width=100)
            staged.write_text(f"# resolved from {recipe.path}\n{text}", encoding="utf-8")


def read_identity(folder: Path) -> Identity:
    """The identity stored in a study's folder.

    Raises:
        OptionError: if the folder holds no study.
        InputError: if its file is damaged.
    """
    path = folder / IDENTITY_FILE
    if not path.is_file():
        raise OptionError(f"{folder} holds no study ({IDENTITY_FILE} is missing)")
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        identity = Identity(content["hash"], content["version"], content["inputs"])
        texts = all(type(text) is str for text in (identity.hash, identity.version))
        if texts and all(facts.keys() >= {"size", "sha256"} for facts in identity.inputs.values()):
            return identity
        raise TypeError
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise InputError(path, None, "is damaged", "run the study in a new folder") from None
