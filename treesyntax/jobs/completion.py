"""Print a script with which a shell completes commands, options and names.

  treesyntax completion bash > ~/.local/share/bash-completion/completions/treesyntax
  eval "$(treesyntax completion zsh)"           in ~/.zshrc, after compinit
  treesyntax completion fish > ~/.config/fish/completions/treesyntax.fish

The next shell that starts completes subcommands, options, values that are names (of recipes, data sets and
others), and files elsewhere. Print it again after an update of treesyntax.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator

SHELLS = ("bash", "zsh", "fish")
NAMES = "names_for_completion"


def suggest(action: argparse.Action, names: Callable[[], Iterable[str]]) -> None:
    """Have an argument completed by names that are not all that it may be.

    Args:
        action: of a parser.
        names: gives the names; called only to print a script.
    """
    setattr(action, NAMES, names)


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for one of `SHELLS`, of a parser with all its subcommands, which parses nothing afterwards."""
    import shtab

    for action in _actions(parser):
        if names := getattr(action, NAMES, None):
            action.choices = [*names()]
        elif action.choices is None and action.nargs != 0 and action.type is not int:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    return shtab.complete(parser, shell)


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments of a parser and of its subcommands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)
        else:
            yield action


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The shell."""
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads the script")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from treesyntax.__main__ import COMMANDS, make_parser

    print(script(make_parser(COMMANDS), args.shell))
    return 0
