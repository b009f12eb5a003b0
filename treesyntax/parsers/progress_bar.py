"""Lines per second and time left, on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from treesyntax.jobs.terminal import loudness

Advance = Callable[[float], None]
"""Called with the number of lines that have been done since the last call."""

SPEED_OVER = 300.0
"""Seconds over which the speed is taken: a slow parser may take more than a minute for a batch."""


class _Speed(ProgressColumn):
    def render(self, task: Task) -> Text:
        """Recent sentences a second."""
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} sentences/s")


@contextmanager
def shown(total: int, done: int, console: Console) -> Iterator[Advance]:
    """A progress bar on a terminal, nothing elsewhere; an earlier run did ``done`` of all lines."""
    columns = (
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} lines"),
        BarColumn(),
        _Speed(),
        TimeRemainingColumn(),
    )
    # The speed counts only what this run does.
    bar = Progress(
        *columns,
        console=console,
        disable=not console.is_terminal or loudness().quiet,
        transient=True,
        speed_estimate_period=SPEED_OVER,
    )
    with bar:
        task = bar.add_task("parse", total=total, completed=done)
        yield lambda lines: bar.advance(task, lines)
