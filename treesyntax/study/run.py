"""Execute a plan: several steps at once, nothing twice, nothing lost by a kill."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from treesyntax.errors import InputError, TreeSyntaxError
from treesyntax.files import atomic_file
from treesyntax.study import process
from treesyntax.study.checkpoints import is_trained, repair_checkpoints
from treesyntax.study.logs import last_line, read_log
from treesyntax.study.plan import OUT, PLUGINS, Plan, Step

FAILURES_FILE = "failures.json"
POLL = 0.05
TICK = 0.5


@dataclass(frozen=True)
class Failure:
    """Why a step is not done: what it said last, and where all of it is."""

    message: str
    log: str


class Watcher(Protocol):
    """Who is told what happens."""

    def started(self, step: Step) -> None:
        """A command was started."""

    def finished(self, step: Step, seconds: float) -> None:
        """A command ended well."""

    def failed(self, step: Step, failure: Failure) -> None:
        """A command did not."""

    def tick(self, running: list[Step]) -> None:
        """Called twice a second."""


@dataclass(frozen=True)
class Settings:
    """How to execute, none of which is part of the study itself.

    Attributes:
        jobs: how many commands run at once.
        threads: threads of each, by OMP_NUM_THREADS.
        plugins: folder for fairseq's --user-dir.
        programs: what the program names in commands stand for.
    """

    jobs: int
    threads: int
    plugins: str
    programs: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: process.PROGRAMS)


@dataclass
class _Child:
    step: Step
    process: subprocess.Popen[bytes]
    started: float


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
        settings: Settings,
        after: Callable[[Step], None],
    ) -> None:
        self.plan, self.folder, self.settings, self.after = plan, folder, settings, after
        self.keys = plan.keys()
        self.trainings = {run.step("train"): run for run in plan.runs}
        self.failures: dict[str, Failure] = {}
        self.children: list[_Child] = []
        self.done = {step.name for step in plan.steps if self.is_done(step)}

    def is_done(self, step: Step) -> bool:
        """Whether the very same command ended well before and its outputs are still there."""
        marker = self._marker(step)
        if not marker.is_file():
            return False
        try:
            key = json.loads(marker.read_text(encoding="utf-8"))["key"]
        except (ValueError, KeyError, TypeError):
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
        self._write_failures()
        pending = [step for step in self.plan.steps if step.name not in self.done]
        next_tick = 0.0
        try:
            while pending or self.children:
                pending = self._start_ready(pending)
                self._collect()
                if time.monotonic() >= next_tick:
                    self.watcher.tick([child.step for child in self.children])
                    next_tick = time.monotonic() + TICK
                time.sleep(POLL)
        finally:
            process.stop(child.process for child in self.children)
        return self.failures

    def _start_ready(self, pending: list[Step]) -> list[Step]:
        """Start what can be; returns what still waits."""
        waiting: list[Step] = []
        dropped = set(self.failures)
        for step in pending:
            if dropped & set(step.needs):
                dropped.add(step.name)
            elif len(self.children) < self.settings.jobs and self.done.issuperset(step.needs):
                self._start(step)
            else:
                waiting.append(step)
        return waiting

    def _start(self, step: Step) -> None:
        if self._ended_unnoticed(step):
            self._finish(step, 0.0)
            return
        log, words = self.folder / step.log, command_words(step, self.folder, self.settings)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as stream:
            stream.write(f"# {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {shlex.join(words)}\n")
        for output in step.outputs:
            (self.folder / output).parent.mkdir(parents=True, exist_ok=True)
        threads = str(self.settings.threads)
        environment = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
        try:
            child = process.start(words, log, self._stdout(step), environment)
        except OSError as error:
            self._fail(step, f"{words[0]} cannot be started ({error.strerror})")
            return
        self.children.append(_Child(step, child, time.monotonic()))
        self.watcher.started(step)

    def _ended_unnoticed(self, step: Step) -> bool:
        """Whether a training came to its end in an earlier session; also mends its checkpoints."""
        run = self.trainings.get(step.name)
        if run is None:
            return False
        folder = self.folder / run.folder / "checkpoints"
        repair_checkpoints(folder)
        flags = {**self.plan.recipe.train, **run.method.train}
        max_update = int(flags.get("max-update") or 0)
        return is_trained(folder, read_log(self.folder / step.log), max_update)

    def _collect(self) -> None:
        ended = [child for child in self.children if child.process.poll() is not None]
        for child in ended:
            self.children.remove(child)
            if child.process.returncode:
                said = last_line(self.folder / child.step.log)
                how = process.ending(child.process.returncode)
                self._fail(child.step, f"{how}: {said}" if said else how)
            else:
                self._finish(child.step, time.monotonic() - child.started)

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
        self.watcher.finished(step, seconds)

    def _mark(self, step: Step, seconds: float) -> None:
        content = {"key": self.keys[step.name], "seconds": round(seconds, 2)}
        with atomic_file(self._marker(step)) as staged:
            staged.write_text(json.dumps(content), encoding="utf-8")
        self.done.add(step.name)

    def _fail(self, step: Step, message: str) -> None:
        self.failures[step.name] = Failure(message, step.log)
        self._write_failures()
        self.watcher.failed(step, self.failures[step.name])

    def _write_failures(self) -> None:
        content = {name: asdict(failure) for name, failure in self.failures.items()}
        with atomic_file(self.folder / FAILURES_FILE) as staged:
            staged.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")

    def _marker(self, step: Step) -> Path:
        return self.folder / "done" / f"{step.name}.json"

    def _stdout(self, step: Step) -> Path | None:
        return self.folder / f"{step.stdout}.part" if step.stdout else None


def command_words(step: Step, folder: Path, settings: Settings) -> list[str]:
    """The command of a step as it is executed in a folder."""
    replace = {OUT: str(folder), PLUGINS: settings.plugins}
    return process.resolve(step.command, settings.programs, replace)


def read_failures(folder: Path) -> dict[str, Failure]:
    """The steps that failed when a study last ran, by name."""
    path = folder / FAILURES_FILE
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {name: Failure(**values) for name, values in content.items()}
    except (ValueError, TypeError, AttributeError):
        raise InputError(path, None, "is damaged", "remove it") from None


def failure_of(name: str, plan: Plan, failures: Mapping[str, Failure]) -> Failure | None:
    """Why a step could not be done: its own failure, or that of something it needs."""
    needs = {step.name: step.needs for step in plan.steps}
    agenda = [name]
    while agenda:
        current = agenda.pop()
        if current in failures:
            return failures[current]
        agenda.extend(needs[current])
    return None
