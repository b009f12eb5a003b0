"""What to parse, and all that its trees depend on: trees of two identities are never mixed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from treesyntax import __version__
from treesyntax.errors import InputError
from treesyntax.files import count_lines, read_lines, sha256_of, sha256_of_value
from treesyntax.made.digests import sha256_of_tree
from treesyntax.parsers import get_kind, named_models
from treesyntax.parsers.parser import ParserConfig, model_path
from treesyntax.remarks import Remarks, remarks_of
from treesyntax.trees.formats.moses import check_raw, check_split


class ParseTask(NamedTuple):
    """A file to parse.

    Attributes:
        source: the text, one line a record.
        output: the tree file; shards, offsets and the report are written beside it.
        config: the parser.
        max_words: lines with more words get flat trees.
        shard_lines: lines that are parsed, and saved, together.
    """

    source: Path
    output: Path
    config: ParserConfig
    max_words: int
    shard_lines: int

    @property
    def notation(self) -> str:
        """The format of the tree file."""
        return get_kind(self.config.parser).notation


def task_identity(task: ParseTask) -> dict[str, Any]:
    """Everything that the trees depend on: contents, not paths; neither workers nor batches."""
    if not task.source.is_file():
        cause = "is not a regular file" if task.source.exists() else "does not exist"
        raise InputError(task.source, None, cause, "give a text file, one sentence a line")
    return {
        "input": sha256_of(task.source),
        "lines": count_lines(task.source),
        **parser_identity(task.config),
        "max_words": task.max_words,
        "shard_lines": task.shard_lines,
        "device": "gpu" if task.config.gpu else "cpu",
    }


def parser_identity(config: ParserConfig) -> dict[str, Any]:
    """What the trees of a parser depend on, whatever the text."""
    kind, path = get_kind(config.parser), model_path(config)
    model_package = (config.model,) if kind.packaged and path is None else ()
    return {
        "parser": config.parser,
        "model": sha256_of_tree(path) if path else _named(config),
        "lang": config.language,
        "pretokenized": config.pretokenized,
        "versions": _versions((*kind.packages, *model_package)),
    }


def _named(config: ParserConfig) -> str:
    """What a model given by its name is: its contents; the name of a package, whose version counts, or if none is there."""
    kind = get_kind(config.parser)
    models = [] if kind.packaged else named_models(kind, config.model)
    contents = [[path.name, sha256_of_tree(path)] for path in models]
    return sha256_of_value([config.model, contents]) if contents else config.model


def remarks_of_text(task: ParseTask) -> Remarks:
    """What looks wrong in a text to parse."""
    source = task.source
    with remarks_of(source) as remarks:
        for remarks.line, text in enumerate(
            read_lines(source) if source.is_file() else (), start=1
        ):
            check_raw(text)
            if task.config.pretokenized:
                check_split(text)
    remarks.records = remarks.line
    return remarks


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    versions = {"treesyntax": __version__}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            # Loading the parser reports it, with the remedy.
            versions[package] = ""
    return versions
