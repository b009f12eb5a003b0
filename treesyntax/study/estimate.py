"""How long a study still takes: from the steps that ended, and from the logs of trainings that run."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from statistics import median
from typing import Any

from treesyntax.study.recipe.recipe import Method
from treesyntax.study.run.logs import TrainLog, read_log
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import Run, Step

PAIRS_A_SECOND = {"mini": (260, 650), "compact": (200, 450)}
"""By the size of an architecture: validation included, sentences of some 10 to 20 tokens. The studies in docs/results
read so many, by their medians; tasks whose targets are one token read twice as many."""
BESIDE = (15, 60)
"""Seconds that a run needs beside its training: starting up, generating a small test set, scores, analyses."""
OF_SIZE = ("layers", "embed-dim", "ffn-embed-dim")
"""Flags ending so make another size of an architecture."""
UNKNOWN = "how long is told once a training runs; a first one: --set seeds=[1] --only {row}"


def how_long(plan: Plan, at_once: int) -> str:
    """The time of a run and of all runs of a plan; how to find out where that is not known."""
    spans = [seconds_of(plan.recipe.flags(run.method, "train"), run.method) for run in plan.runs]
    known = [span for span in spans if span is not None]
    if not known or len(known) < len(spans):
        return UNKNOWN.format(row=plan.runs[0].method.name if plan.runs else "ROW")
    low, high = min(low for low, _ in known), max(high for _, high in known)
    at_once = min(at_once, len(spans))
    whole = [sum(ends) / at_once for ends in zip(*known, strict=True)]
    many = f", all {len(known)} about {_minutes(*whole)}" + f" with {at_once} at once" * (
        at_once > 1
    )
    return (
        f"a run of this size takes about {_minutes(low, high)} on a CPU core"
        + many * (len(known) > 1)
        + ", less on a GPU"
    )


def seconds_of(flags: dict[str, Any], method: Method) -> tuple[float, float] | None:
    """Seconds that a run takes at least and at most, on one core; None where nothing tells."""
    speeds = PAIRS_A_SECOND.get(method.arch.rpartition("_")[2])
    counts = [flags.get("max-update"), flags.get("batch-size"), flags.get("update-freq", 1)]
    numbers = [count for count in counts if type(count) is int and count > 0]
    if speeds is None or len(numbers) < len(counts) or any(map(_changes_size, flags)):
        return None
    pairs = prod(numbers)
    return pairs / speeds[1] + BESIDE[0], pairs / speeds[0] + BESIDE[1]


def _changes_size(flag: str) -> bool:
    return flag.endswith(OF_SIZE)


def _minutes(low: float, high: float) -> str:
    """``3 to 6 minutes``, or hours where there are many."""
    unit, seconds = ("hours", 3600.0) if high > 3 * 3600 else ("minutes", 60.0)
    ends = [max(1, round(end / seconds)) for end in (low, high)]
    if ends[0] == ends[1]:
        return f"{ends[0]} {unit if ends[0] > 1 else unit[:-1]}"
    return f"{ends[0]} to {ends[1]} {unit}"


ENOUGH_SECONDS, ENOUGH_SHARE = 60.0, 0.05
"""What is seen of a training before its pace is told. Before its first update it only starts up."""
TRAINING_SHARE = 0.9
"""Share of training in a run's work, until a run has ended."""


class Estimate:
    """How much of a study is done and how long the rest takes.

    Args:
        plan: the study's plan, or the part of it that is asked for.
        folder: its folder, where the logs are.
        done: names of the steps that were done before.
        seconds: how long they took, by name.
        at_once: how many steps run at a time.

    Attributes:
        failed: names of the steps that failed for good.
    """

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        done: set[str],
        seconds: Mapping[str, float] | None = None,
        at_once: int = 1,
    ) -> None:
        self.plan, self.folder, self.ended, self.at_once = plan, folder, set(done), at_once
        self.failed: set[str] = set()
        self.seconds = dict(seconds or {})
        self.trainings: dict[str, float] = {}
        self.started: dict[str, float] = {}
        self.begun, self.together = time.monotonic(), 0

    @property
    def elapsed(self) -> float:
        """Seconds since this session began."""
        return time.monotonic() - self.begun

    def note(self, running: Sequence[Step]) -> None:
        """Note what runs, and since when; jobs of a cluster may be fewer at a time than are submitted."""
        self.together = max(self.together, len(running))
        for step in running:
            self.started.setdefault(step.name, time.monotonic())

    def end(self, step: Step, seconds: float) -> None:
        """Note that a step is done, and how long it took."""
        self.ended.add(step.name)
        self.seconds[step.name] = seconds
        self.trainings.pop(step.name, None)

    @property
    def runs_done(self) -> int:
        """Runs without any step left."""
        return sum(self._is_done(run) for run in self.plan.runs)

    @property
    def steps_left(self) -> dict[str, int]:
        """The number of steps of each kind that are left."""
        return Counter(step.kind for step in self.plan.steps if step.name not in self.ended)

    @property
    def begun_trainings(self) -> list[Step]:
        """Trainings that have a log and have not ended: they run, or go on with the study."""
        names = self.plan.run_of_training.keys() - self.ended
        steps = (step for step in self.plan.steps if step.name in names)
        return [step for step in steps if (self.folder / step.log).exists()]

    def left_of(self, step: Step) -> float | None:
        """Seconds left of a step that runs; None if nothing tells.

        A training goes on at its pace, another step takes as long as the others of its kind did.
        """
        run = self.plan.run_of_training.get(step.name)
        if run is not None:
            log = self.log(run)
            whole = self.whole(run, log)
            return None if whole is None else whole * (1 - self.trained(run, log))
        took = self._medians().get(step.kind)
        so_far = time.monotonic() - self.started.get(step.name, time.monotonic())
        return None if took is None else max(0.0, took - so_far)

    def left(self, running: Sequence[Step]) -> float | None:
        """Seconds left of the study; None before a training has ended or has a pace.

        Args:
            running: the steps that run, or those that will go on.
        """
        names = {step.name for step in running}
        begun = {
            run.name: self.log(run)
            for name, run in self.plan.run_of_training.items()
            if name in names
        }
        paces: dict[str, float] = {}
        wholes: dict[str, list[float]] = {}
        for run in self.plan.runs:
            whole, log = self._took(run), begun.get(run.name)
            if not whole and log is not None and (pace := self.whole(run, log)):
                paces[run.name], whole = pace, pace + log.start_up
            if whole:
                wholes.setdefault(run.method.name, []).append(whole)
        kinds = self._medians()
        rests = []
        for run in self.plan.runs:
            steps = self.plan.steps_of(run)
            if self._is_done(run) or not self.failed.isdisjoint(step.name for step in steps):
                continue
            if not wholes:
                return None
            alike = wholes.get(run.method.name) or [
                seconds for row in wholes.values() for seconds in row
            ]
            training = median(alike)
            guess = training * (1 / TRAINING_SHARE - 1) / max(1, len(steps) - 1)
            share = self.trained(run, begun[run.name]) if run.name in begun else 0.0
            rest = {run.step("train"): paces.get(run.name, training) * (1 - share)}
            left = (step for step in steps if step.name not in self.ended)
            rests.append(sum(rest.get(step.name, kinds.get(step.kind, guess)) for step in left))
        at_once = max(1, min(self.at_once, self.together or self.at_once))
        # The last run cannot be shared out.
        return max(sum(rests) / at_once, max(rests, default=0.0))

    def _took(self, run: Run) -> float | None:
        """Seconds of a training that has ended; of one that was resumed only the last session was timed."""
        name = run.step("train")
        if (seconds := self.seconds.get(name)) and name not in self.trainings:
            log = read_log(self.folder / f"logs/{name}.log")
            pace = self.whole(run, log) if log.resumed else None
            in_all = pace * self.trained(run, log) + log.start_up if pace else 0.0
            self.trainings[name] = max(seconds, in_all)
        return self.trainings.get(name)

    def _medians(self) -> dict[str, float]:
        """Seconds that steps of a kind took, by kind."""
        took: dict[str, list[float]] = {}
        for step in self.plan.steps:
            if seconds := self.seconds.get(step.name):
                took.setdefault(step.kind, []).append(seconds)
        return {kind: median(times) for kind, times in took.items()}

    def _is_done(self, run: Run) -> bool:
        return self.ended.issuperset(step.name for step in self.plan.steps_of(run))

    def log(self, run: Run) -> TrainLog:
        """The end of a run's training log."""
        return read_log(self.folder / f"logs/{run.step('train')}.log", tail=True)

    def trained(self, run: Run, log: TrainLog) -> float:
        """Share of a training that is done, 0 to 1."""
        flags = self.plan.recipe.flags(run.method, "train")
        shares = [
            done / float(flags[flag])
            for flag, done in (
                ("max-update", log.updates), ("max-epoch", log.epochs),
                ("max_steps", log.updates), ("num_train_epochs", log.epochs),
            )
            if flags.get(flag)
        ]  # fmt: skip
        return min(1.0, max(shares, default=0.0))

    def whole(self, run: Run, log: TrainLog) -> float | None:
        """Seconds of a whole training at the pace in its log; None before enough of it is seen."""
        updates, seconds = log.seen
        share = self.trained(run, log) * updates / max(1, log.updates)
        enough = seconds >= ENOUGH_SECONDS or share >= ENOUGH_SHARE
        return seconds / share if enough and seconds > 0 and share > 0 else None


def clock(seconds: float | None) -> str:
    """Seconds as ``1:02:03`` or ``2:03``, "?" if unknown."""
    if seconds is None:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def outlook(estimate: Estimate) -> str:
    """What is left of a study before it goes on, or while another process is at it."""
    kinds, begun = estimate.steps_left, estimate.begun_trainings
    if not kinds:
        return "nothing left to do"
    text = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
    steps = f"{sum(kinds.values())} of {len(estimate.plan.steps)} steps left ({text})"
    seconds = estimate.left(begun)
    if seconds is not None:
        return f"{steps}, about {clock(seconds)} as fast as it went so far"
    if begun:
        names = ", ".join(step.name.partition("/")[0] for step in begun)
        return f"{steps}; no training has ended yet, and too little is seen of {names} to tell the time left"
    return f"{steps}; {how_long(estimate.plan, estimate.at_once)}"
