"""The identity of a study: a hash of its recipe, its input files and the version."""

from __future__ import annotations

import hashlib
import json
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml

from treesyntax import __version__
from treesyntax.errors import InputError, OptionError
from treesyntax.files import read_json, sha256_of, write_json, write_text
from treesyntax.study.recipe.recipe import DATA, RECIPE_FILE, SPLITS, Recipe

IDENTITY_FILE = "study.json"
SHORT = 8


@dataclass(frozen=True)
class Identity:
    """A study's identity.

    Attributes:
        hash: sha256 over everything below and the recipe.
        inputs: size and sha256 of each input file, by its name as given.
    """

    hash: str
    version: str
    inputs: dict[str, dict[str, Any]]

    @property
    def short(self) -> str:
        """The first letters of the hash, enough to tell studies apart."""
        return self.hash[:SHORT]


def identify(recipe: Recipe) -> Identity:
    """Hash a recipe with its input files: any change makes another study."""
    inputs = {name: file_facts(Path(name)) for name in _input_names(recipe)}
    content = [recipe.content, inputs, __version__]
    # Order counts: methods are rows in this order, and the order of flags may matter to the tool.
    text = json.dumps(content, ensure_ascii=False, default=str)
    return Identity(hashlib.sha256(text.encode()).hexdigest(), __version__, inputs)


def file_facts(path: Path) -> dict[str, Any]:
    """Size in bytes and sha256 of a file."""
    digest = sha256_of(path)
    return {"size": path.stat().st_size, "sha256": digest}


def _input_names(recipe: Recipe) -> list[str]:
    """Data files from outside the study, and files named in commands under prepare."""
    names = set()
    for side in ("source", "target"):
        for split in SPLITS:
            for name in {getattr(getattr(method, side), split) for method in recipe.methods}:
                if f"{{{DATA}}}" in name:
                    continue
                if not Path(name).is_file():
                    raise _missing(recipe, f"data.{side}.{split}", name)
                names.add(name)
    for line in recipe.prepare:
        for word in _words(line):
            for name in filter(None, (word, word.partition("=")[2])):
                # generate pairs reads NAME.gz where there is no NAME.
                names |= {file for file in (name, f"{name}.gz") if Path(file).is_file()}
    return sorted(names)


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return []  # the plan reports it


def _missing(recipe: Recipe, key: str, name: str) -> OptionError:
    hint = ", ".join(f"--set {variable}=…" for variable in recipe.content["vars"])
    remedy = f"; say where it is with {hint}" if hint else ""
    return OptionError(f"{recipe.path}: {key}: no such file: {name}{remedy}")


def write_identity(folder: Path, recipe: Recipe, identity: Identity) -> None:
    """Write the identity and the resolved recipe into a study's folder, unless they exist."""
    # The identity first: after a kill in between, the folder still belongs to the study.
    if not (folder / IDENTITY_FILE).exists():
        write_json(folder / IDENTITY_FILE, asdict(identity))
    if not (folder / RECIPE_FILE).exists():
        text = yaml.safe_dump(recipe.content, sort_keys=False, allow_unicode=True, width=100)
        write_text(folder / RECIPE_FILE, f"# resolved from {recipe.path}\n{text}")


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
        content = read_json(path)
        identity = Identity(content["hash"], content["version"], content["inputs"])
        texts = all(type(text) is str for text in (identity.hash, identity.version))
        if texts and all(facts.keys() >= {"size", "sha256"} for facts in identity.inputs.values()):
            return identity
        raise TypeError
    except (InputError, KeyError, TypeError, AttributeError):
        raise InputError(path, None, "is damaged", "run the study in a new folder") from None
