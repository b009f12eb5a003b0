"""Lines per second and time left, on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Task
    from rich.text import Text


class Advance(Protocol):
    """Called with the number of lines that have been done since."""

    def __call__(self, lines: int) -> None:
        """Show it."""
        ...


@contextmanager
def shown(total: int, done: int, console: Console) -> Iterator[Advance]:
    """A bar on a terminal, nothing elsewhere.

    Args:
        total: all lines.
        done: those that an earlier run has parsed.
        console: where to draw.
    """
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Speed(ProgressColumn):
        def render(self, task: Task) -> Text:
            """Sentences a second, lately."""
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{speed:,.0f} sentences/s")

    columns = (
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} lines"),
        BarColumn(),
        Speed(),
        TimeRemainingColumn(),
    )
    # The speed counts only what this run does.
    bar = Progress(*columns, console=console, disable=not console.is_terminal, transient=True)
    with bar:
        task = bar.add_task("parse", total=total, completed=done)
        yield lambda lines: bar.advance(task, lines)
