"""List the injection methods: paper, formula, arguments.

A method is chosen by its architecture (tree_NAME) or with --encoder-injection, where methods
compose and take arguments: --encoder-injection 'stack_pe(depth=16)+relation_mask'.
"""

from __future__ import annotations

import argparse

from treesyntax.composition import options_of
from treesyntax.methods import METHODS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """No arguments."""


def describe(name: str) -> str:
    """A method in a few lines."""
    method = METHODS[name]
    arguments = ", ".join(f"{key}={value!r}" for key, value in options_of(name).items())
    facts = {
        "paper": method.paper,
        "adds": method.equation,
        "arguments": arguments or "none",
        "view": method.view,
        "positions": "takes their place" if method.replaces_positions else "kept",
        "file": method.__module__.replace(".", "/") + ".py",
    }
    return "\n".join([name, *(f"  {key:<10} {value}" for key, value in facts.items())])


def run(args: argparse.Namespace) -> int:
    """Print all methods."""
    print("\n\n".join(describe(name) for name in METHODS))
    return 0
