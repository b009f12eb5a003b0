"""What the commands of a study need and is not there, which ``--plan`` tells."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from treesyntax.commands.parse import add_parser_arguments
from treesyntax.data.binarize.options import file_flags
from treesyntax.errors import OptionError
from treesyntax.files import PACKED
from treesyntax.parsers import ParserConfig, get_kind, named_models
from treesyntax.parsers.parser import model_path
from treesyntax.study.recipe.identity import where_it_is
from treesyntax.study.recipe.recipe import DATA
from treesyntax.study.run.keys import GENERATE
from treesyntax.study.run.ledger import marker_of
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import OUT

READS = {
    ("parse",): (),
    **{
        (*command[1:], kind): flags
        for command in GENERATE
        for kind, flags in {
            "pairs": ("--train", "--valid", "--test"),
            "questions": ("--data",),
        }.items()
    },
}
"""By the words of a command the flags whose values are files that it reads."""


def check_present(plan: Plan, folder: Path) -> None:
    """Refuse a study that lacks a file, a folder or a parser's model.

    What a command has made already is not asked for again.

    Args:
        plan: the study's.
        folder: its folder, which need not exist.

    Raises:
        OptionError: for the first that is missing, with the key of the recipe.
    """
    recipe = plan.recipe
    for number, step in enumerate(plan.prepare, start=1):
        if marker_of(folder, step.name).exists():
            continue
        where = f"{recipe.path}: prepare, command {number}:"
        words = [word for word in step.command[1:] if step.command[0] == "treesyntax"]
        ends = ("", PACKED) if "pairs" in words[:3] else ("",)  # others read no NAME.gz for NAME
        for name in _read_by(words):
            if OUT not in name and not any(Path(name + end).exists() for end in ends):
                raise OptionError(f"{where} no such file or folder: {name}{where_it_is(recipe)}")
        if words[:1] == ["parse"]:
            _check_parser(words[1:], where)
    of_files = file_flags()
    for method in recipe.methods:
        for flag, value in recipe.flags(method, "binarize").items():
            for name in (value if isinstance(value, list) else [value]) * (flag in of_files):
                if f"{{{DATA}}}" not in str(name) and name and not Path(str(name)).is_file():
                    raise OptionError(f"{recipe.path}: binarize.{flag}: no such file: {name}")


def _read_by(words: Sequence[str]) -> Iterator[str]:
    """The files and folders that a command reads, as far as it is one of `READS`."""
    for names, flags in READS.items():
        if tuple(words[: len(names)]) != names:
            continue
        if not flags:
            yield from words[1:2]
        reading = False
        for word in words[len(names) :]:
            reading = word in flags if word.startswith("--") else reading
            if reading and not word.startswith("--"):
                yield word


def _check_parser(words: Sequence[str], where: str) -> None:
    """Refuse a parser whose packages or model are not there, as far as that is seen without loading it."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    add_parser_arguments(parser.add_argument, required=False)
    try:
        args, _ = parser.parse_known_args(words)
    except argparse.ArgumentError as error:
        raise OptionError(f"{where} {error}") from None
    if args.parser is None or args.model is None:
        raise OptionError(f"{where} lacks --parser or --model")
    kind = get_kind(args.parser)
    if lost := [package for package in kind.packages if find_spec(package) is None]:
        raise OptionError(
            f"{where} {args.parser} needs {lost[0]}: pip install 'treesyntax[parsers]'"
        )
    try:
        path = model_path(ParserConfig(args.parser, args.model, args.lang))
    except OptionError as error:
        raise OptionError(f"{where} {error}") from None
    if path is None and not args.download and not named_models(kind, args.model):
        raise OptionError(
            f"{where} there is no {args.parser} model {args.model!r}: give its folder, or download it once: "
            f"treesyntax parse FILE FILE.trees --parser {args.parser} --model {args.model} --download"
        )
