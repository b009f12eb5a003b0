"""How much a command tells: -q, -v, and progress with the time left."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:  # rich is loaded by those who show something
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn


class Loudness(NamedTuple):
    """What is asked for with -q and -v."""

    quiet: bool = False
    verbose: bool = False


NORMAL = Loudness()
_loudness: ContextVar[Loudness] = ContextVar("loudness", default=NORMAL)
_bars: list[str] = []
"""The bars that are shown now."""

Item = TypeVar("Item")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare -q and -v of a command and of the commands below it, unless they have their own."""
    for names, text in (
        (("-q", "--quiet"), "tell results and failures, no progress"),
        (("-v", "--verbose"), "tell every step, and of an error where in the code it came from"),
    ):
        if names[1] not in parser._option_string_actions:
            parser.add_argument(*names, action="store_true", default=argparse.SUPPRESS, help=text)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in {
                id(subparser): subparser for subparser in action.choices.values()
            }.values():
                add_arguments(inner)


@contextmanager
def as_asked(args: argparse.Namespace) -> Iterator[None]:
    """What runs inside tells as much as these arguments ask for."""
    chosen = Loudness(getattr(args, "quiet", False), getattr(args, "verbose", False))
    token = _loudness.set(chosen)
    try:
        yield
    finally:
        _loudness.reset(token)


def loudness() -> Loudness:
    """What the command that runs was asked for."""
    return _loudness.get()


def console_of(stderr: bool = False, width: int | None = None) -> Console:
    """The console of standard output or standard error, a terminal only where that stream is one.

    By FORCE_COLOR, which servers that test code set, rich takes a file for a terminal of 80 columns, and writes into
    it what moves the cursor.
    """
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=width, force_terminal=stream.isatty())


def progress_bar(*columns: str | ProgressColumn, **settings: float) -> Progress:
    """A bar on standard error with the time left; on a terminal alone, and not with -q."""
    from rich.progress import Progress

    console = console_of(stderr=True)
    hidden = not console.is_terminal or loudness().quiet
    return Progress(*columns, console=console, transient=True, disable=hidden, **settings)  # type: ignore[arg-type]


def tracked(items: Sequence[Item], what: str) -> Iterator[Item]:
    """The items one after the other, with a bar; none inside the bar of others."""
    if _bars:
        yield from items
        return
    _bars.append(what)
    try:
        with progress_bar() as bar:
            yield from bar.track(items, description=what)
    finally:
        _bars.remove(what)
