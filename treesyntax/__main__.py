"""The ``treesyntax`` command: one module a subcommand, imported only when it is called."""

from __future__ import annotations

import argparse
import importlib
import io
import os
import shlex
import sys
import traceback
from collections.abc import Collection, Sequence
from typing import NamedTuple

from treesyntax import __version__
from treesyntax.errors import TreeSyntaxError, in_one_line
from treesyntax.jobs.interrupts import stop_signals_interrupt
from treesyntax.jobs.terminal import add_arguments as add_loudness
from treesyntax.jobs.terminal import as_asked


class Command(NamedTuple):
    """A subcommand: its module has ``add_arguments(parser)`` and ``run(args) -> int``."""

    module: str
    summary: str


COMMANDS = {
    "parse": Command("treesyntax.commands.parse", "raw text to tree files"),
    "binarize": Command(
        "treesyntax.commands.binarize", "text and tree files to fairseq data with trees"
    ),
    "average": Command("treesyntax.commands.average", "average the last checkpoints of a training"),
    "inspect": Command("treesyntax.commands.inspect", "show sentences and trees of binarized data"),
    "data": Command("treesyntax.commands.data", "list and make data sets by name"),
    "generate": Command("treesyntax.commands.generate", "make synthetic data sets"),
    "translate": Command(
        "treesyntax.commands.translate", "translate text or trees with a trained model"
    ),
    "finetune": Command(
        "treesyntax.commands.finetune", "finetune a pretrained model of Hugging Face with trees"
    ),
    "score": Command("treesyntax.commands.score", "score a file of outputs against references"),
    "methods": Command("treesyntax.commands.methods", "list the injection methods"),
    "analyse": Command("treesyntax.commands.analyse", "draw what a trained model has learnt"),
    "recipes": Command("treesyntax.commands.recipes", "list the recipes, or copy one to change it"),
    "new": Command("treesyntax.commands.new", "write a recipe for data of your own"),
    "study": Command("treesyntax.commands.study", "train and compare methods side by side"),
    "report": Command("treesyntax.commands.report", "write the report of a study again"),
    "plugins": Command("treesyntax.commands.plugins", "print the folder for fairseq's --user-dir"),
    "completion": Command(
        "treesyntax.jobs.completion", "print a script with which bash or zsh completes commands"
    ),
}

GOES_ON = ("finetune", "parse", "study")
"""The commands that go on where they were interrupted; the others write their output whole or not at
all."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand; an error of the user's gives one line on stderr and status 2."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    try:
        args = make_parser(arguments[:1]).parse_args(arguments)
    except SystemExit:  # after --help and --version
        try:
            _flush_output()
        except OSError as error:
            print(f"treesyntax: {error.strerror}; check free space", file=sys.stderr)
            return 2
        raise
    try:
        with stop_signals_interrupt(), as_asked(args):
            status = int(args.run(args))
        _flush_output()
        return status
    except KeyboardInterrupt as stop:
        if stop.args:
            print(f"treesyntax {args.command}: interrupted; {stop}", file=sys.stderr)
            return 130
        advice = "what is done is kept; to go on" if args.command in GOES_ON else "to begin again"
        again = shlex.join(["treesyntax", *arguments])
        print(f"treesyntax {args.command}: interrupted; {advice}: {again}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except TreeSyntaxError as error:
        reason = str(error)
        if getattr(args, "verbose", False):
            traceback.print_exc()
    except OSError as error:
        prefix = f"{error.filename}: " if error.filename else ""
        reason = f"{prefix}{error.strerror or error}; check free space and permissions"
    except MemoryError:
        reason = "out of memory"
    except RuntimeError as error:
        if not str(error).startswith("Symlink loop"):  # so says pathlib before Python 3.13
            raise
        reason = f"{error}; name what the link was to point to"
    print(f"treesyntax {args.command}: {in_one_line(reason)}", file=sys.stderr)
    return 2


def make_parser(loaded: Collection[str]) -> argparse.ArgumentParser:
    """The parser of the command line.

    Args:
        loaded: the commands whose modules are imported, so that they have their arguments; imports take time.
    """
    parser = argparse.ArgumentParser(
        prog="treesyntax", description="Trees in Transformers, and whether they help."
    )
    parser.add_argument("--version", action="version", version=f"treesyntax {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        module = importlib.import_module(command.module) if name in loaded else None
        subparser = commands.add_parser(
            name,
            help=command.summary,
            description=(module.__doc__ if module else None),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if module is not None:
            module.add_arguments(subparser)
            add_loudness(subparser)
            subparser.set_defaults(run=module.run)
    return parser


def _open_streams() -> None:
    """Make standard streams fit to use: those that are closed, and those that lack some characters."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _flush_output() -> None:
    """Write what ``print`` has buffered, so that a full disk is reported, and only once."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


if __name__ == "__main__":
    sys.exit(main())
