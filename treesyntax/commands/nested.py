"""Commands below a command, whose modules are imported only when they run."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Callable, Mapping

from treesyntax.source import OURS, ROOT, Root, module_file


def add_commands(
    parser: argparse.ArgumentParser,
    dest: str,
    modules: Mapping[str, str],
    arguments: Mapping[str, Callable[[argparse.ArgumentParser], None]],
) -> None:
    """Declare commands, with the docstring of each module as its help.

    Args:
        parser: of the command above them.
        dest: attribute of the parsed arguments that gets the chosen name.
        modules: the module of each command by its name.
        arguments: declares the arguments of each command.
    """
    commands = parser.add_subparsers(dest=dest, metavar="NAME", required=True)
    for name, module in modules.items():
        text = documentation(module)
        command = commands.add_parser(
            name,
            help=text.split("\n")[0].rstrip("."),
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        arguments[name](command)


def documentation(module: str) -> str:
    """The docstring of a module of ours, from its source: importing it could take seconds."""
    file = module_file(module, [Root(ROOT, OURS)])
    return "" if file is None else ast.get_docstring(ast.parse(file.read_bytes())) or ""
