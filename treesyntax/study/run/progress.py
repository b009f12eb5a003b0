"""Progress of a study: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from treesyntax.errors import InputError
from treesyntax.files import read_json
from treesyntax.jobs.terminal import NORMAL, loudness
from treesyntax.study.estimate import Estimate, clock
from treesyntax.study.run.failures import Failure
from treesyntax.study.run.steps import Step

LINE_EVERY = 30.0
SHOWN = 4
"""How many waiting jobs are named."""


def state_of(step: Step, estimate: Estimate) -> str:
    """A running step in a few words."""
    run = estimate.plan.run_of_training.get(step.name)
    seconds = estimate.left_of(step)
    left = "" if seconds is None else f", {clock(seconds)} left"
    if run is None:
        return f"{step.name}{left}"
    left = left or ", estimating"
    log = estimate.log(run)
    loss = "" if log.loss is None else f", loss {log.loss:.3f}"
    share = estimate.trained(run, log)
    return f"{step.name} {share:4.0%}: epoch {log.epochs:.1f}, update {log.updates}{loss}{left}"


def summary(running: Sequence[Step], estimate: Estimate) -> str:
    """The whole study in one line."""
    failed = f"{len(estimate.failed)} failed, " if estimate.failed else ""
    seconds = estimate.left(running)
    return (
        f"{estimate.runs_done} of {len(estimate.plan.runs)} runs done, {failed}"
        f"{clock(estimate.elapsed)} elapsed, "
        + ("estimating the time left" if seconds is None else f"about {clock(seconds)} left")
    )


def score_of(step: Step, estimate: Estimate) -> str:
    """``exact 71.20``: the primary score that a step has made, "" if it makes none."""
    for run in estimate.plan.runs if step.kind == "score" else ():
        if run.step("score") == step.name:
            with suppress(InputError, KeyError, TypeError, ValueError):
                scores = {
                    result["metric"]: result["value"]
                    for result in read_json(estimate.folder / step.stdout)
                }
                return f"{run.method.primary} {scores[run.method.primary]:.2f}"
    return ""


class PlainProgress:
    """A line for each training that starts and each step that ends, and a summary twice a minute.

    The step that scores a run has its primary score in it.

    With -v each step that starts has one, with its log; with -q only failures have.
    """

    def __init__(self, estimate: Estimate, console: Console) -> None:
        self.estimate, self.console = estimate, console
        self.next_line = time.monotonic() + LINE_EVERY
        self.step_by_message: dict[str, str] = {}
        self.scored = False

    def started(self, step: Step) -> None:
        """Say so, for a training."""
        if loudness().verbose:
            self.tell(f"start  {step.name} (log: {self.estimate.folder / step.log})")
        elif step.name.endswith("/train"):
            self.tell(f"start  {step.name}")

    def submitted(self, step: Step, job: str) -> None:
        """Name the job of a step."""
        self.tell(f"submit {step.name}: job {job}")

    def finished(self, step: Step, seconds: float) -> None:
        """Say how long it took, and how a run scored."""
        self.estimate.end(step, seconds)
        if score := score_of(step, self.estimate):
            self.tell_score(step, f"{score} ({clock(seconds)})")
        else:
            self.tell(f"done   {step.name} ({clock(seconds)})")

    def tell_score(self, step: Step, score: str) -> None:
        """Say how a run scored, and with the first one how to see the table of those that are done."""
        self.tell(f"done   {step.name.partition('/')[0]}: {score}")
        if not self.scored and len(self.estimate.plan.runs) > 1:
            folder = shlex.quote(str(self.estimate.folder))
            self.tell(f"       the table so far, at any time: treesyntax report {folder}")
        self.scored = True

    def retried(self, step: Step, failure: Failure) -> None:
        """Say so, with the reason."""
        self.say(f"retry  {step.name}: {failure.message} (see {failure.log})")

    def failed(self, step: Step, failure: Failure) -> None:
        """Say so, with the reason."""
        self.estimate.failed.add(step.name)
        first = self.step_by_message.setdefault(failure.message, step.name)
        message = failure.message if first == step.name else f"as {first}"
        self.say(f"FAILED {step.name}: {message} (see {failure.log})")

    def tick(self, running: list[Step], queued: Mapping[str, str]) -> None:
        """Print the summary twice a minute; ``queued`` says of the jobs that wait, why."""
        self.estimate.note(running)
        if time.monotonic() >= self.next_line:
            self.next_line = time.monotonic() + LINE_EVERY
            self.tell("; ".join([summary(running, self.estimate), *self._states(running, queued)]))

    def _states(self, running: list[Step], queued: Mapping[str, str]) -> list[str]:
        waiting = [f"{name} waits" + f" ({why})" * bool(why) for name, why in queued.items()]
        if len(waiting) > SHOWN:
            waiting = [*waiting[:SHOWN], f"{len(waiting) - SHOWN} more jobs wait"]
        return [*(state_of(step, self.estimate) for step in running), *waiting]

    def tell(self, text: str) -> None:
        """One line, unless -q asks for failures alone."""
        if not loudness().quiet:
            self.say(text)

    def say(self, text: str) -> None:
        """One line with the time of day."""
        line = f"{time.strftime('%H:%M:%S')} {text}"
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)


class LiveProgress(PlainProgress):
    """A summary that is redrawn in place; failures stay above it."""

    def __init__(self, estimate: Estimate, console: Console) -> None:
        super().__init__(estimate, console)
        # No thread of its own: children are tied to the main thread and started between redraws.
        self.live = Live(console=console, auto_refresh=False, transient=True)

    def started(self, step: Step) -> None:
        """The next redraw shows it."""

    def finished(self, step: Step, seconds: float) -> None:
        """Say how a run scored, or that its training is done if nothing follows it; the view shows the rest."""
        before = self.estimate.runs_done
        self.estimate.end(step, seconds)
        if score := score_of(step, self.estimate):
            self.tell_score(step, score)
        elif step.kind == "train" and self.estimate.runs_done > before:
            self.say(f"done   {step.name.partition('/')[0]}")

    def submitted(self, step: Step, job: str) -> None:
        """The next redraw shows it."""

    def tick(self, running: list[Step], queued: Mapping[str, str]) -> None:
        """Redraw."""
        self.estimate.note(running)
        rows = Table.grid(padding=(0, 1))
        for state in self._states(running, queued):
            rows.add_row("•", Text(state))
        self.live.update(Group(Text(summary(running, self.estimate)), rows), refresh=True)


@contextmanager
def watch(estimate: Estimate, console: Console) -> Iterator[PlainProgress]:
    """A live view on a terminal, plain lines elsewhere and with -v; with -q failures alone.

    On a terminal that redraws nothing (TERM=dumb, as in editors) rich shows no live view at all.
    """
    if not console.is_terminal or console.is_dumb_terminal or loudness() != NORMAL:
        yield PlainProgress(estimate, console)
        return
    progress = LiveProgress(estimate, console)
    with progress.live:
        yield progress
