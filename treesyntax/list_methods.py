"""List the injection methods: paper, formula, arguments.

A method is chosen by its architecture (tree_NAME) or with --encoder-injection, where methods
compose and take arguments: --encoder-injection 'stack_pe(depth=16)+relation_mask'.
"""

from __future__ import annotations

import argparse
import inspect

from rich.console import Console
from rich.table import Table

from treesyntax.composition import options_of
from treesyntax.methods import METHODS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def methods_table() -> Table:
    """One row a method."""
    table = Table(show_lines=True)
    for heading in ("method", "paper", "adds", "arguments", "view", "file"):
        table.add_column(heading, overflow="fold")
    for name, method in METHODS.items():
        arguments = ", ".join(f"{key}={value!r}" for key, value in options_of(name).items())
        file = inspect.getmodule(method).__name__.replace(".", "/") + ".py"  # type: ignore[union-attr]
        table.add_row(name, method.paper, method.equation, arguments, method.view, file)
    return table


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    Console().print(methods_table())
    return 0
