"""Execute a plan: several steps at once, nothing twice, nothing lost by a kill."""

from __future__ import annotations

import heapq
import json
import os
import shlex
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from treesyntax.errors import TreeSyntaxError
from treesyntax.files import atomic_file, parse_json
from treesyntax.jobs import Job
from treesyntax.study.run import process
from treesyntax.study.run.checkpoints import is_trained, repair_checkpoints
from treesyntax.study.run.failures import Failure, write_failures
from treesyntax.study.run.logs import last_line, peak_line, read_log
from treesyntax.study.run.options import ExecutionOptions, Watcher, command_words
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.process import USERS, Devices
from treesyntax.study.run.steps import Step

POLL = 0.05
TICK = 0.5


@dataclass
class _Child:
    step: Step
    process: subprocess.Popen[bytes] | Job
    started: float
    slot: str

    @property
    def is_job(self) -> bool:
        """Whether it runs on the cluster."""
        return isinstance(self.process, Job)


class Executor:
    """Runs the steps of a plan in a folder that nobody else uses.

    Args:
        plan: what to do.
        folder: the study's folder.
        settings: how.
        after: called after each step that ended well, before it counts as done; if it raises a
            TreeSyntaxError, the step failed.
    """

    def __init__(
        self,
        plan: Plan,
        folder: Path,
        settings: ExecutionOptions,
        after: Callable[[Step], None],
    ) -> None:
        self.plan, self.folder, self.settings, self.after = plan, folder, settings, after
        self.keys = plan.keys()
        self.devices = Devices(settings.gpus)
        self.attempts: Counter[str] = Counter()
        self.failures: dict[str, Failure] = {}
        self.children: list[_Child] = []
        self.done = {step.name for step in plan.steps if self.is_done(step)}
        self.waits: dict[str, set[str]] = {}
        # By whether they are jobs: numbers of steps, of which the least is started next.
        self.ready: dict[bool, list[int]] = {False: [], True: []}
        self.number = {step.name: number for number, step in enumerate(plan.steps)}
        for step in plan.steps:
            if step.name not in self.done:
                self.waits[step.name] = set(step.needs) - self.done
                if not self.waits[step.name]:
                    self._queue(step)

    def is_done(self, step: Step) -> bool:
        """Whether the very same command ended well before and its outputs are still there."""
        try:
            key = parse_json(self._marker(step).read_text(encoding="utf-8"))["key"]
        except (OSError, ValueError, KeyError, TypeError):
            return False
        outputs_exist = all((self.folder / output).exists() for output in step.outputs)
        return bool(key == self.keys[step.name]) and outputs_exist

    def execute(self, watcher: Watcher) -> dict[str, Failure]:
        """Do all that is not done yet; a failing step stops only what needs it.

        Args:
            watcher: who is told what happens.

        Returns:
            The steps that failed, by name.
        """
        self.watcher = watcher
        write_failures(self.folder, self.failures)
        next_tick = 0.0
        try:
            while any(self.ready.values()) or self.children:
                self._start_ready()
                self._collect()
                if time.monotonic() >= next_tick:
                    self.watcher.tick([child.step for child in self.children])
                    next_tick = time.monotonic() + TICK
                time.sleep(POLL)
        finally:
            self._stop()
        return self.failures

    def _queue(self, step: Step) -> None:
        is_job = self.settings.cluster is not None and step.command[0] in USERS
        heapq.heappush(self.ready[is_job], self.number[step.name])

    def _start_ready(self) -> None:
        """Start all that can be, in the order of the plan."""
        limits = {False: self.settings.jobs, True: self.settings.submitted}
        for is_job, limit in limits.items():
            queue = self.ready[is_job]
            while queue and sum(child.is_job == is_job for child in self.children) < limit:
                self._start(self.plan.steps[heapq.heappop(queue)])

    def _stop(self) -> None:
        for child in self.children:
            if isinstance(child.process, Job):
                child.process.stop()
        process.stop(child.process for child in self.children if not isinstance(child.process, Job))

    def _start(self, step: Step) -> None:
        if self._ended_unnoticed(step):
            self._finish(step, 0.0)
            return
        self.attempts[step.name] += 1
        log, words = self.folder / step.log, command_words(step, self.folder, self.settings)
        try:
            self._begin_log(log, words)
            for output in step.outputs:
                (self.folder / output).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            self._fail(step, f"{error.filename or log} cannot be written ({error.strerror})")
            return
        slot = "" if self.settings.cluster else self.devices.take(step.command[0])
        try:
            child = self._launch(step, words, slot)
        except OSError as error:
            self.devices.give(slot)
            self._fail(step, f"{words[0]} cannot be started ({error.strerror})")
            return
        self.children.append(_Child(step, child, time.monotonic(), slot))
        self.watcher.started(step)

    def _begin_log(self, log: Path, words: Sequence[str]) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as stream:
            stream.write(f"# {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {shlex.join(words)}\n")

    def _launch(self, step: Step, words: list[str], slot: str) -> subprocess.Popen[bytes] | Job:
        program, threads = step.command[0], str(self.settings.threads)
        environment = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        environment |= process.safe_environment(words, os.environ)
        log, cluster = self.folder / step.log, self.settings.cluster
        if cluster is not None and program in USERS:
            return cluster.start(step.name, self.keys[step.name], words, log, environment)
        environment |= self.devices.environment(program, slot)
        return process.start(words, log, self._stdout(step), environment)

    def _ended_unnoticed(self, step: Step) -> bool:
        """Whether a training came to its end in an earlier session; also mends its checkpoints."""
        run = self.plan.run_of_training.get(step.name)
        if run is None:
            return False
        folder = self.folder / run.folder / "checkpoints"
        repair_checkpoints(folder)
        flags = self.plan.recipe.flags(run.method, "train")
        max_update = int(flags.get("max-update") or 0)
        return is_trained(folder, read_log(self.folder / step.log), max_update)

    def _collect(self) -> None:
        for child in [child for child in self.children if self._has_ended(child)]:
            self.children.remove(child)
            self.devices.give(child.slot)
            if child.process.returncode:
                said = last_line(self.folder / child.step.log)
                how = process.ending(child.process.returncode)
                self._fail(child.step, f"{how}: {said}" if said else how)
            else:
                self._finish(child.step, time.monotonic() - child.started)

    def _has_ended(self, child: _Child) -> bool:
        if isinstance(child.process, Job):
            return child.process.poll() is not None
        status, peak = process.poll(child.process)
        if peak and child.step.name in self.plan.run_of_training:
            log = self.folder / child.step.log
            with suppress(OSError), log.open("a", encoding="utf-8") as stream:
                stream.write(peak_line(peak))
        return status is not None

    def _finish(self, step: Step, seconds: float) -> None:
        partial = self._stdout(step)
        if partial is not None:
            partial.replace(self.folder / step.stdout)
        missing = [output for output in step.outputs if not (self.folder / output).exists()]
        if missing:
            self._fail(step, f"ended well but left no {missing[0]}")
            return
        try:
            self.after(step)
        except TreeSyntaxError as error:
            self._fail(step, str(error))
            return
        self._mark(step, seconds)
        self._release(step)
        self.watcher.finished(step, seconds)

    def _mark(self, step: Step, seconds: float) -> None:
        content = {"key": self.keys[step.name], "seconds": round(seconds, 2)}
        with atomic_file(self._marker(step)) as staged:
            staged.write_text(json.dumps(content), encoding="utf-8")
        self.done.add(step.name)

    def _release(self, step: Step) -> None:
        """Let what waited for a step start."""
        for name in self.plan.needed_by.get(step.name, ()):
            waits = self.waits.get(name, set())
            if step.name in waits:
                waits.remove(step.name)
                if not waits:
                    self._queue(self.plan.steps[self.number[name]])

    def _fail(self, step: Step, message: str) -> None:
        failure = Failure(message, step.log)
        if self.attempts[step.name] <= self.settings.retries:
            self._queue(step)
            self.watcher.retried(step, failure)
            return
        self.failures[step.name] = failure
        write_failures(self.folder, self.failures)
        self.watcher.failed(step, failure)

    def _marker(self, step: Step) -> Path:
        return self.folder / "done" / f"{step.name}.json"

    def _stdout(self, step: Step) -> Path | None:
        return self.folder / f"{step.stdout}.part" if step.stdout else None
