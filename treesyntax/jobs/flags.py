"""Command lines that are checked without being run: the first fault that a parser finds."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, NoReturn

DATA_TREES = "--trees-of-the-data="
"""Begins a word that a study adds to a training that is checked: the format of its source, and the linearization
of its target, such as ``conllu:words``. fairseq-train itself has no such flag."""
LARGEST_SEED = 2**32 - 1
"""Of numpy, which draws the first random numbers of a training."""
_NAMED = re.compile(r"(?:argument )?(--[\w-]+)\S*:? ?(.*)", re.DOTALL)
_CHOICE = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)")


class Fault(NamedTuple):
    """What is wrong with a command line.

    Attributes:
        flag: the flag that it is about, without dashes before; "" if that is not known.
        problem: one clause.
    """

    flag: str
    problem: str


class _RefusedError(Exception):
    """Raised where argparse would end the process."""


def find_fault(
    parser: argparse.ArgumentParser,
    parse: Callable[[], tuple[argparse.Namespace, Sequence[str]]],
    program: str,
) -> tuple[argparse.Namespace | None, Fault | None]:
    """Parse a command line that may be wrong.

    Args:
        parser: what ``parse`` uses.
        parse: returns the arguments and the words that the parser does not know.
        program: its name, for the message.

    Returns:
        The arguments, or else the first fault.
    """
    _raise_faults(parser)
    try:
        args, unknown = parse()
    except _RefusedError as error:
        return None, fault_of(str(error))
    finally:
        for name in ("error", "_get_value"):
            del vars(parser)[name]
    if not unknown:
        return args, None
    word = next((word for word in unknown if word.startswith("--")), "")
    if not word:
        return None, Fault("", f"{program} does not take {' '.join(unknown)}")
    flag = word[2:].partition("=")[0]
    names = [name[2:] for action in parser._actions for name in action.option_strings]
    near = get_close_matches(flag.replace("_", "-"), names, n=1)
    hint = f"; did you mean {near[0]}" if near else ""
    return None, Fault(flag, f"{program} has no such flag{hint}")


def fault_of(message: str) -> Fault:
    """A message that may begin with the flag that it is about."""
    text = " ".join(message.split()).replace("<lambda> ", "")
    named = _NAMED.match(text)
    flag, problem = (named[1][2:], named[2] or text) if named else ("", text)
    if choice := _CHOICE.match(problem):
        names = re.findall(r"'([^']*)'", choice[2])
        near = get_close_matches(choice[1], names, n=1)
        hint = f"did you mean {near[0]}" if near else f"it takes {', '.join(names)}"
        problem = f"has no choice {choice[1]!r}; {hint}"
    return Fault(flag, problem)


def _raise_faults(parser: argparse.ArgumentParser) -> None:
    """Let a parser raise an exception for every fault, also where reading a value fails."""

    def refuse(message: str) -> NoReturn:
        raise _RefusedError(message)

    def get_value(action: argparse.Action, text: str) -> Any:
        try:
            return read_value(action, text)
        except argparse.ArgumentError:
            raise
        except Exception as error:  # fairseq evaluates some values as Python
            raise argparse.ArgumentError(action, f"invalid value {text!r} ({error})") from None

    read_value = parser._get_value
    vars(parser).update(error=refuse, _get_value=get_value)
