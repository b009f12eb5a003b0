"""What a parse depends on: trees of another input, model or option are never mixed with these."""

from __future__ import annotations

import hashlib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from treesyntax import __version__
from treesyntax.errors import InputError
from treesyntax.files import read_lines
from treesyntax.parsers import get_kind
from treesyntax.parsers.base import ParserConfig, model_path


class ParseTask(NamedTuple):
    """A file to parse.

    Attributes:
        source: the text, one line a record.
        output: the tree file; shards, offsets and the report stand beside it.
        settings: the parser.
        max_words: lines with more words get flat trees.
        shard_lines: lines that are parsed, and saved, together.
    """

    source: Path
    output: Path
    settings: ParserConfig
    max_words: int
    shard_lines: int

    @property
    def notation(self) -> str:
        """The format of the tree file."""
        return get_kind(self.settings.parser).notation


def identity(task: ParseTask) -> dict[str, Any]:
    """Everything that the trees depend on: contents, not places; neither workers nor batches.

    Raises:
        InputError: if the text is not a file or cannot be read twice.
    """
    if not task.source.is_file():
        cause = "is not a regular file" if task.source.exists() else "is not there"
        raise InputError(task.source, None, cause, "give a text file, one sentence a line")
    settings = task.settings
    path = model_path(settings)
    return {
        "input": _sha256(task.source),
        "lines": sum(1 for _ in read_lines(task.source)),
        "parser": settings.parser,
        "model": _fingerprint(path) if path else settings.model,
        "lang": settings.language,
        "pretokenized": settings.pretokenized,
        "max_words": task.max_words,
        "shard_lines": task.shard_lines,
        "device": "gpu" if settings.gpu else "cpu",
        "versions": _versions(get_kind(settings.parser).packages),
    }


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _fingerprint(path: Path) -> str:
    if path.is_file():
        return _sha256(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(path).as_posix()} {_sha256(file)}\n".encode())
    return digest.hexdigest()


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    found = {"treesyntax": __version__}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            # Loading the parser says so, with the remedy.
            found[package] = ""
    return found


def differences(found: dict[str, Any], wanted: dict[str, Any]) -> str:
    """The names of what differs between two identities, in a list for people."""
    names = [name for name in wanted if found.get(name) != wanted[name]]
    return ", ".join(name.replace("_", " ") for name in names)
