"""Progress of a study: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from treesyntax.study.run.failures import Failure
from treesyntax.study.run.logs import TrainLog, read_log
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import Run, Step

LINE_EVERY = 30.0
SHOWN = 4
"""How many waiting jobs are named."""
TRAINING_SHARE = 0.9
"""Share of training in a run's work, for the time that is left."""


class Estimate:
    """How much of a study is done and how long the rest takes.

    Args:
        plan: the study's plan.
        folder: its folder, where the logs are.
        done: names of the steps that were done before.

    Attributes:
        failed: names of the steps that failed for good.
    """

    def __init__(self, plan: Plan, folder: Path, done: set[str]) -> None:
        self.plan, self.folder, self.ended = plan, folder, set(done)
        self.failed: set[str] = set()
        self.begun = time.monotonic()
        self.before = self.work_done([])
        self.idle, self.noted = 0.0, self.begun

    @property
    def elapsed(self) -> float:
        """Seconds since this session began."""
        return time.monotonic() - self.begun

    def note(self, works: bool) -> None:
        """Note whether anything runs: time in a queue says nothing about the pace."""
        now = time.monotonic()
        self.idle += 0 if works else now - self.noted
        self.noted = now

    @property
    def runs_done(self) -> int:
        """Runs without any step left."""
        return sum(self._is_done(run) for run in self.plan.runs)

    def left(self, running: Sequence[Step]) -> float | None:
        """Seconds left at the pace so far; None before there is a pace."""
        done = self.work_done(running)
        if done <= self.before:
            return None
        return (self.elapsed - self.idle) * (len(self.plan.runs) - done) / (done - self.before)

    def work_done(self, running: Sequence[Step]) -> float:
        """Runs done, counting parts of runs."""
        names = {step.name for step in running}
        return sum(self._share(run, run.step("train") in names) for run in self.plan.runs)

    def _share(self, run: Run, training: bool) -> float:
        if self._is_done(run):
            return 1.0
        if run.step("train") in self.ended:
            return TRAINING_SHARE
        return TRAINING_SHARE * self.trained(run, self.log(run)) if training else 0.0

    def _is_done(self, run: Run) -> bool:
        return self.ended.issuperset(step.name for step in self.plan.steps_of(run))

    def log(self, run: Run) -> TrainLog:
        """The end of a run's training log."""
        return read_log(self.folder / f"logs/{run.step('train')}.log", tail=True)

    def trained(self, run: Run, log: TrainLog) -> float:
        """Share of a training that is done, 0 to 1."""
        flags = self.plan.recipe.flags(run.method, "train")
        parts = [
            done / float(flags[flag])
            for flag, done in (("max-update", log.updates), ("max-epoch", log.epochs))
            if flags.get(flag)
        ]
        return min(1.0, max(parts, default=0.0))


def clock(seconds: float | None) -> str:
    """Seconds as ``1:02:03`` or ``2:03``, "?" if unknown."""
    if seconds is None:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def state_of(step: Step, estimate: Estimate) -> str:
    """A running step in a few words."""
    run = estimate.plan.run_of_training.get(step.name)
    if run is None:
        return step.name
    log = estimate.log(run)
    loss = "" if log.loss is None else f", loss {log.loss:.3f}"
    share = estimate.trained(run, log)
    return f"{step.name} {share:4.0%}: epoch {log.epochs:.1f}, update {log.updates}{loss}"


def summary(running: Sequence[Step], estimate: Estimate) -> str:
    """The whole study in one line."""
    failed = f"{len(estimate.failed)} failed, " if estimate.failed else ""
    return (
        f"{estimate.runs_done} of {len(estimate.plan.runs)} runs done, {failed}"
        f"{clock(estimate.elapsed)} elapsed, {clock(estimate.left(running))} left"
    )


def outlook(plan: Plan, done: set[str], seconds: Mapping[str, float], at_once: int) -> str:
    """What is left of a study before it goes on: steps by kind, and the time if it can be told.

    Args:
        plan: the study's plan.
        done: names of the steps that are done.
        seconds: how long they took, by name.
        at_once: how many steps run at a time.
    """
    left = [step for step in plan.steps if step.name not in done]
    if not left:
        return "nothing left to do"
    kinds = Counter(step.kind for step in left)
    took: dict[str, list[float]] = {}
    for step in plan.steps:
        if seconds.get(step.name):
            took.setdefault(step.kind, []).append(seconds[step.name])
    text = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
    steps = f"{len(left)} of {len(plan.steps)} steps left ({text})"
    if "train" in kinds and "train" not in took:
        return f"{steps}; the time left is told once a training has begun"
    total = sum(median(took.get(kind, [0.0])) * number for kind, number in kinds.items())
    return f"{steps}, about {clock(total / min(at_once, len(left)))} as the steps done so far took"


class PlainProgress:
    """A line for each training that starts and each step that ends, and a summary twice a minute."""

    def __init__(self, estimate: Estimate, console: Console) -> None:
        self.estimate, self.console = estimate, console
        self.next_line = time.monotonic() + LINE_EVERY
        self.told: dict[str, str] = {}

    def started(self, step: Step) -> None:
        """Say so, for a training."""
        if step.name.endswith("/train"):
            self.say(f"start  {step.name}")

    def submitted(self, step: Step, job: str) -> None:
        """Name the job of a step."""
        self.say(f"submit {step.name}: job {job}")

    def finished(self, step: Step, seconds: float) -> None:
        """Say how long it took."""
        self.estimate.ended.add(step.name)
        self.say(f"done   {step.name} ({clock(seconds)})")

    def retried(self, step: Step, failure: Failure) -> None:
        """Say so, with the reason."""
        self.say(f"retry  {step.name}: {failure.message} (see {failure.log})")

    def failed(self, step: Step, failure: Failure) -> None:
        """Say so, with the reason."""
        self.estimate.failed.add(step.name)
        first = self.told.setdefault(failure.message, step.name)
        message = failure.message if first == step.name else f"as {first}"
        self.say(f"FAILED {step.name}: {message} (see {failure.log})")

    def tick(self, running: list[Step], queued: Mapping[str, str]) -> None:
        """Print the summary twice a minute; ``queued`` says of the jobs that wait, why."""
        self.estimate.note(bool(running))
        if time.monotonic() >= self.next_line:
            self.next_line = time.monotonic() + LINE_EVERY
            self.say("; ".join([summary(running, self.estimate), *self._states(running, queued)]))

    def _states(self, running: list[Step], queued: Mapping[str, str]) -> list[str]:
        waiting = [f"{name} waits" + f" ({why})" * bool(why) for name, why in queued.items()]
        if len(waiting) > SHOWN:
            waiting = [*waiting[:SHOWN], f"{len(waiting) - SHOWN} more jobs wait"]
        return [*(state_of(step, self.estimate) for step in running), *waiting]

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
        """Say when the last step of a run is done; the view shows the rest."""
        before = self.estimate.runs_done
        self.estimate.ended.add(step.name)
        if self.estimate.runs_done > before:
            self.say(f"done   {step.name.split('/')[0]}")

    def submitted(self, step: Step, job: str) -> None:
        """The next redraw shows it."""

    def tick(self, running: list[Step], queued: Mapping[str, str]) -> None:
        """Redraw."""
        self.estimate.note(bool(running))
        rows = Table.grid(padding=(0, 1))
        for state in self._states(running, queued):
            rows.add_row("•", Text(state))
        self.live.update(Group(Text(summary(running, self.estimate)), rows), refresh=True)


@contextmanager
def watch(estimate: Estimate, console: Console) -> Iterator[PlainProgress]:
    """A live view on a terminal, plain lines elsewhere."""
    if not console.is_terminal:
        yield PlainProgress(estimate, console)
        return
    progress = LiveProgress(estimate, console)
    with progress.live:
        yield progress
