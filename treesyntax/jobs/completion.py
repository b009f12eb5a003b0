"""Print a script with which a shell completes commands, options and names.

  treesyntax completion bash > ~/.local/share/bash-completion/completions/treesyntax
  source <(treesyntax completion zsh)           in ~/.zshrc

The next shell that starts completes subcommands, options, values that are names (of recipes, data sets and
others), and files elsewhere. Print it again after an update of treesyntax.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator

SHELLS = ("bash", "zsh")
PROGRAM = "treesyntax"
NAMES = "names_for_completion"
# The words before the cursor lead to a subcommand. Nothing to offer leaves it to the shell, which offers files.
SCRIPT = """\
# Completion of treesyntax, printed by: treesyntax completion {shell}
{begin}_treesyntax() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} place={program} names= one last=$((COMP_CWORD - 1))
    for one in "${{COMP_WORDS[@]:1:$last}}"; do
        case "$place $one" in
            {places}) place="$place $one" ;;
        esac
    done
    case "$place ${{COMP_WORDS[$last]}}" in
{values}
        *)
            case "$place" in
{positionals}
            esac
            if [[ $word == -* ]]; then
                case "$place" in
{options}
                esac
            fi ;;
    esac
    COMPREPLY=($(compgen -W "$names" -- "$word"))
}}
complete -o default -F _treesyntax treesyntax
"""
BEGIN = {
    "bash": "",
    "zsh": """\
(( $+functions[compdef] )) || { autoload -U +X compinit && compinit; }
autoload -U +X bashcompinit && bashcompinit
""",
}


def suggest(action: argparse.Action, names: Callable[[], Iterable[str]]) -> None:
    """Have an argument completed by names that are not all that it may be.

    Args:
        action: of a parser.
        names: gives the names; called only to print a script.
    """
    setattr(action, NAMES, names)


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for one of `SHELLS`, of a parser with all its subcommands."""
    parsers = dict(_parsers(parser, PROGRAM))
    values: dict[str, list[str]] = {}
    options, positionals = {}, {}
    for place, one in parsers.items():
        own = [action for action in one._actions if action.help != argparse.SUPPRESS]
        found = [_names(action) for action in own if not action.option_strings]
        positionals[place] = " ".join(filter(None, found))
        long = ([flag for flag in action.option_strings if flag.startswith("--")] for action in own)
        options[place] = " ".join(flags[0] for flags in long if flags)  # others are older spellings
        for action in own:
            if action.option_strings and action.nargs != 0:
                patterns = (f'"{place} {flag}"' for flag in action.option_strings)
                values.setdefault(_names(action), []).extend(patterns)
    return SCRIPT.format(
        shell=shell,
        begin=BEGIN[shell],
        program=PROGRAM,
        places=" | ".join(f'"{place}"' for place in parsers if place != PROGRAM),
        values=_cases(8, {" | ".join(patterns): names for names, patterns in values.items()}),
        positionals=_cases(16, {f'"{place}"': names for place, names in positionals.items()}),
        options=_cases(20, {f'"{place}"': names for place, names in options.items()}),
    )


def _parsers(
    parser: argparse.ArgumentParser, place: str
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """A parser and those of its subcommands, by the words that lead to them."""
    yield place, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, one in action.choices.items():
                yield from _parsers(one, f"{place} {name}")


def _names(action: argparse.Action) -> str:
    found = action.choices or getattr(action, NAMES, tuple)()
    return " ".join(map(str, found))


def _cases(indent: int, names: dict[str, str]) -> str:
    """A branch of ``case`` for each pattern."""
    return "\n".join(
        f'{" " * indent}{pattern}) names="{text}" ;;' for pattern, text in names.items()
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The shell."""
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads the script")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    from treesyntax.__main__ import COMMANDS, make_parser

    print(script(make_parser(COMMANDS), args.shell), end="")
    return 0
