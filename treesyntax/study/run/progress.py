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

from treesyntax.jobs.terminal import NORMAL, loudness
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
        seconds: how long they took, by name.

    Attributes:
        failed: names of the steps that failed for good.
    """

    def __init__(
        self, plan: Plan, folder: Path, done: set[str], seconds: Mapping[str, float] | None = None
    ) -> None:
        self.plan, self.folder, self.ended = plan, folder, set(done)
        self.failed: set[str] = set()
        self.seconds = dict(seconds or {})
        self.seen: dict[str, tuple[float, float]] = {}
        self.begun = time.monotonic()
        self.before = self.work_done([])
        self.idle, self.noted = 0.0, self.begun

    @property
    def elapsed(self) -> float:
        """Seconds since this session began."""
        return time.monotonic() - self.begun

    def note(self, running: Sequence[Step]) -> None:
        """Note what runs: time in a queue says nothing about the pace."""
        now = time.monotonic()
        self.idle += 0 if running else now - self.noted
        self.noted = now
        for step in running:
            run = self.plan.run_of_training.get(step.name)
            share = 0.0 if run is None else self.trained(run, self.log(run))
            self.seen.setdefault(step.name, (now, share))

    def left_of(self, step: Step) -> float | None:
        """Seconds left of a step that runs; None if nothing tells.

        A training goes on at its pace, another step takes as long as the others of its kind did.
        """
        since, before = self.seen.get(step.name, (time.monotonic(), 1.0))
        so_far = time.monotonic() - since
        run = self.plan.run_of_training.get(step.name)
        if run is not None:
            share = self.trained(run, self.log(run))
            return so_far * (1 - share) / (share - before) if share > before else None
        kinds = {one.name for one in self.plan.steps if one.kind == step.kind}
        took = [seconds for name, seconds in self.seconds.items() if name in kinds and seconds]
        return max(0.0, median(took) - so_far) if took else None

    def end(self, step: Step, seconds: float) -> None:
        """Note that a step is done, and how long it took."""
        self.ended.add(step.name)
        self.seconds[step.name] = seconds

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
    seconds = estimate.left_of(step)
    left = "" if seconds is None else f", {clock(seconds)} left"
    if run is None:
        return f"{step.name}{left}"
    log = estimate.log(run)
    loss = "" if log.loss is None else f", loss {log.loss:.3f}"
    share = estimate.trained(run, log)
    return f"{step.name} {share:4.0%}: epoch {log.epochs:.1f}, update {log.updates}{loss}{left}"


def summary(running: Sequence[Step], estimate: Estimate) -> str:
    """The whole study in one line."""
    failed = f"{len(estimate.failed)} failed, " if estimate.failed else ""
    return (
        f"{estimate.runs_done} of {len(estimate.plan.runs)} runs done, {failed}"
        f"{clock(estimate.elapsed)} elapsed, {clock(estimate.left(running))} left"
    )


def steps_left(
    plan: Plan, done: set[str], seconds: Mapping[str, float], at_once: int
) -> tuple[dict[str, int], float | None]:
    """The number of steps of each kind that are left, and the seconds they take if that can be told.

    Args:
        plan: the study's plan.
        done: names of the steps that are done.
        seconds: how long they took, by name.
        at_once: how many steps run at a time.
    """
    left = [step for step in plan.steps if step.name not in done]
    kinds = Counter(step.kind for step in left)
    took: dict[str, list[float]] = {}
    for step in plan.steps:
        if seconds.get(step.name):
            took.setdefault(step.kind, []).append(seconds[step.name])
    if "train" in kinds and "train" not in took:
        return kinds, None
    total = sum(median(took.get(kind, [0.0])) * number for kind, number in kinds.items())
    return kinds, total / max(1, min(at_once, len(left)))


def outlook(plan: Plan, done: set[str], seconds: Mapping[str, float], at_once: int) -> str:
    """What is left of a study before it goes on, see `steps_left`."""
    kinds, time_left = steps_left(plan, done, seconds, at_once)
    if not kinds:
        return "nothing left to do"
    text = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
    steps = f"{sum(kinds.values())} of {len(plan.steps)} steps left ({text})"
    if time_left is None:
        return f"{steps}; the time left is told once a training has begun"
    return f"{steps}, about {clock(time_left)} as the steps done so far took"


class PlainProgress:
    """A line for each training that starts and each step that ends, and a summary twice a minute.

    With -v each step that starts has one, with its log; with -q only failures have.
    """

    def __init__(self, estimate: Estimate, console: Console) -> None:
        self.estimate, self.console = estimate, console
        self.next_line = time.monotonic() + LINE_EVERY
        self.told: dict[str, str] = {}

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
        """Say how long it took."""
        self.estimate.end(step, seconds)
        self.tell(f"done   {step.name} ({clock(seconds)})")

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
        """Say when the last step of a run is done; the view shows the rest."""
        before = self.estimate.runs_done
        self.estimate.end(step, seconds)
        if self.estimate.runs_done > before:
            self.say(f"done   {step.name.split('/')[0]}")

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
    """A live view on a terminal, plain lines elsewhere and with -v; with -q failures alone."""
    if not console.is_terminal or loudness() != NORMAL:
        yield PlainProgress(estimate, console)
        return
    progress = LiveProgress(estimate, console)
    with progress.live:
        yield progress
