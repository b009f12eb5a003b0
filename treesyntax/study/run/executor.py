"""Execute a plan: several steps at once, nothing twice, nothing lost by a kill."""

from __future__ import annotations

import heapq
import os
import shlex
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from graphlib import TopologicalSorter
from pathlib import Path

from treesyntax.errors import TreeSyntaxError
from treesyntax.files import read_json
from treesyntax.jobs import load_per_core, processes
from treesyntax.jobs.cluster import Cluster
from treesyntax.jobs.imports import with_files
from treesyntax.jobs.interrupts import raise_if_asked
from treesyntax.jobs.node import peak_line
from treesyntax.jobs.preloaded import Preloaded
from treesyntax.study.run import process
from treesyntax.study.run.categories import check_categories
from treesyntax.study.run.checkpoints import is_trained, repair_checkpoints
from treesyntax.study.run.failures import Failure, in_recipe, other_failures, write_failures
from treesyntax.study.run.ledger import Ledger
from treesyntax.study.run.logs import divergence, last_line, load_line, read_log
from treesyntax.study.run.pairs import check_pairs
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.process import Devices
from treesyntax.study.run.progress import PlainProgress
from treesyntax.study.run.references import check_references
from treesyntax.study.run.steps import BINARIZE, OUT, PLUGINS, PREPARED, Step
from treesyntax.study.run.submission import Submission, Submitted

POLL = 0.05
TICK = 0.5


@dataclass(frozen=True)
class ExecutionOptions:
    """How to execute a plan; none of it is part of the study itself.

    Attributes:
        jobs: how many commands run at once on this machine.
        threads: threads of each, by OMP_NUM_THREADS.
        plugins: folder for fairseq's --user-dir.
        programs: the words that the program names in commands stand for.
        retries: how often a command that failed is started again.
        gpus: see :func:`treesyntax.study.run.process.read_slots`.
        cluster: where steps are submitted to; None runs them here.
        submitted: how many jobs the cluster has at once.
        kinds: of the steps that are submitted.
    """

    jobs: int
    threads: int
    plugins: str
    programs: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: process.PROGRAMS)
    retries: int = 0
    gpus: tuple[str, ...] = ()
    cluster: Cluster | None = None
    submitted: int = 0
    kinds: tuple[str, ...] = ()


def command_words(step: Step, folder: Path, options: ExecutionOptions) -> list[str]:
    """The command of a step as it is executed in a folder."""
    replace = {OUT: str(folder), PLUGINS: options.plugins}
    return process.resolve(step.command, options.programs, replace)


@dataclass
class _Child:
    step: Step
    process: processes.Process
    started: float
    slot: str


class Executor:
    """Runs the steps of a plan in a folder that nobody else uses.

    Args:
        ledger: the steps, and which of them are done.
        options: how to run them.
        after: called after each step that ended well; it fails if that raises a TreeSyntaxError.
        chosen_plan: the part of the plan that is to be done now, see :meth:`Plan.of_rows`.
    """

    def __init__(
        self,
        ledger: Ledger,
        options: ExecutionOptions,
        after: Callable[[Step], None],
        chosen_plan: Plan,
    ) -> None:
        self.ledger, self.plan, self.folder = ledger, ledger.plan, ledger.folder
        self.options, self.after = options, after
        self.devices = Devices(options.gpus, os.environ)
        self.attempts: Counter[str] = Counter()
        rows = dict.fromkeys(run.method.name for run in chosen_plan.runs)
        self.rows = tuple(rows) if len(chosen_plan.runs) < len(ledger.plan.runs) else ()
        self.failures: dict[str, Failure] = {}
        self.earlier = other_failures(self.folder, {step.name for step in chosen_plan.steps})
        self.children: list[_Child] = []
        self.submission = Submission(options.cluster, options.kinds, ledger)
        self.done: set[str] = set()
        for step in self.plan.steps:
            # What a run makes anew is used anew; data that is made anew is the same, see Ledger.mark.
            made = {name for name in ledger.keys.reads[step.name] if not name.startswith(PREPARED)}
            if made <= self.done and ledger.is_done(step):
                self.done.add(step.name)
            elif self._ended_unnoticed(step):
                ledger.mark(step, 0.0)
                self.done.add(step.name)
        left = sum(
            step.kind == "train" and step.name not in self.done for step in chosen_plan.steps
        )
        shared = process.common_environment("", options.threads)
        log = self.folder / "logs/preloaded.log"
        runs = 0 if options.cluster else left
        self.programs = Preloaded(log, shared, runs, self.plan.trainer.loaded)
        self.index = {step.name: index for index, step in enumerate(self.plan.steps)}
        # The steps that wait for others, and by whether they are jobs the indices of those that do
        # not wait; the smallest is started next. Trainings are last: what is trained is scored first.
        self.waiting = TopologicalSorter(
            {name: set(needs) - self.done for name, needs in chosen_plan.needs.items()
             if name not in self.done}
        )  # fmt: skip
        self.waiting.prepare()
        self.ready: dict[bool, list[tuple[bool, int]]] = {False: [], True: []}
        # Trainings wait until all data that can be made is made and its pairs are compared.
        self.held: list[Step] = []
        self.data = [step.name for step in chosen_plan.steps if step.kind == BINARIZE]
        self.compared = False
        self._queue_ready()

    def execute(self, watcher: PlainProgress) -> dict[str, Failure]:
        """Do what is not done yet; returns the steps that failed, which stop only what needs them.

        Raises:
            OptionError: if a file that a step reads has changed since the study began, or rows would
                be trained on different pairs.
        """
        self.watcher = watcher
        write_failures(self.folder, self.earlier | self.failures)
        next_tick = 0.0
        try:
            while any(self.ready.values()) or self.held or self.children or self.submission:
                raise_if_asked()
                self._start_ready()
                self._collect()
                if time.monotonic() >= next_tick:
                    running = [child.step for child in self.children] + self.submission.running()
                    self.watcher.tick(running, self.submission.queued())
                    next_tick = time.monotonic() + TICK
                time.sleep(POLL)
        finally:
            self._stop()
            self.programs.close()
        return self.failures

    def _queue(self, step: Step) -> None:
        if step.kind == "train" and not self.compared:
            self.held.append(step)
            return
        order = step.kind == "train", self.index[step.name]
        heapq.heappush(self.ready[self.submission.takes(step)], order)

    def _queue_ready(self) -> None:
        for name in self.waiting.get_ready():
            self._queue(self.plan.steps[self.index[name]])

    def _start_ready(self) -> None:
        """Start all that can be, in the order of the plan."""
        if self.held and not any(map(self._may_come, self.data)):
            self._release()
        options, started = self.options, (self.children, self.submission)
        for is_job, limit in enumerate((options.jobs, options.submitted)):
            queue = self.ready[bool(is_job)]
            while queue and len(started[is_job]) < limit:
                self._start(self.plan.steps[heapq.heappop(queue)[1]])
        self._submit()

    def _may_come(self, name: str) -> bool:
        """Whether prepared data is still to be made: not done, and nothing that it needs has failed."""
        chain = {step.name for step in self.ledger.keys.chain(name)}
        return name not in self.done and not chain & self.failures.keys()

    def _release(self) -> None:
        """Let the trainings begin, whose rows use the same pairs and can be scored alike."""
        check_references(self.plan.recipe, self.folder)
        check_categories(self.plan.recipe, self.folder)
        begun = {run.name: self.ledger.begun(run) for run in self.plan.runs}
        for line in check_pairs(self.plan, self.folder, begun):
            self.watcher.say(line)
        self.compared = True
        for step in self.held:
            self._queue(step)
        self.held.clear()

    def _stop(self) -> None:
        self.submission.stop()
        processes.stop(child.process for child in self.children)

    def _start(self, step: Step) -> None:
        self.ledger.check_inputs(step)
        log, words = self.folder / step.log, command_words(step, self.folder, self.options)
        source = self.ledger.take_over(step) if step.kind in PREPARED else None
        if source is not None:
            self._begin_log(log, ["taken", "from", str(source)])
            self._count_done(step, 0.0)
            return
        self.attempts[step.name] += 1
        try:
            self._begin_log(log, words)
            self.ledger.separate(step)
            self.ledger.forget(step)
            for output in step.outputs:
                (self.folder / output).parent.mkdir(parents=True, exist_ok=True)
            run = self.plan.run_of_training.get(step.name)
            if run is not None and not self.submission.takes(step):  # on a cluster the job does it
                repair_checkpoints(self.folder / run.checkpoints)
            self.ledger.note_start(step)
        except OSError as error:
            self._fail(step, f"{error.filename or log} cannot be written ({error.strerror})")
            return
        environment = process.common_environment(step.name, self.options.threads)
        environment |= process.safe_environment(words, os.environ)
        environment |= with_files(self.plan.recipe.own_files, os.environ)
        if self.submission.takes(step):
            self.submission.order(step, words, environment, self._stdout(step))
            return
        slot = "" if self.options.cluster else self.devices.take(step.command[0])
        environment |= self.devices.environment(step.command[0], slot)
        try:
            child = self.programs.start(words, log, self._stdout(step), environment)
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

    def _submit(self) -> None:
        try:
            for submitted in self.submission.submit():
                self.watcher.submitted(submitted.step, submitted.job.id)
        except OSError as error:
            orders, self.submission.orders = self.submission.orders, []
            for step, _ in orders:
                remedy = "where it allows fewer jobs at once, give --jobs N"
                self._fail(step, f"the cluster took no job ({error.strerror}); {remedy}")

    def _ended_unnoticed(self, step: Step) -> bool:
        """Whether a training came to its end in an earlier session; also mends its checkpoints."""
        run = self.plan.run_of_training.get(step.name)
        if run is None or self.submission.is_at_work(step):
            return False
        folder = self.folder / run.checkpoints
        repair_checkpoints(folder)
        flags = self.plan.recipe.flags(run.method, "train")
        max_update = int(flags.get("max-update") or 0)
        return is_trained(folder, read_log(self.folder / step.log), max_update)

    def _collect(self) -> None:
        for child in [child for child in self.children if self._has_ended(child)]:
            self.children.remove(child)
            self.devices.give(child.slot)
            if child.process.returncode:
                self._fail(child.step, self._reason(child.step, child.process.returncode))
            else:
                self._finish(child.step, time.monotonic() - child.started)
        for ended in self.submission.collect(self.watcher):
            self._finish_job(ended, *self.submission.outcome(ended))

    def _finish_job(self, ended: Submitted, saved: int, reason: str) -> None:
        step, status = ended.step, ended.job.returncode
        if not status:
            self._finish(step, ended.job.seconds)
        elif saved:
            self.attempts[step.name] -= 1
            self.watcher.say(f"again  {step.name}: its time was over, saved at update {saved}")
            self._queue(step)
        else:
            self._fail(step, reason or self._reason(step, status))

    def _reason(self, step: Step, status: int) -> str:
        said = divergence(self.folder / step.log) or last_line(self.folder / step.log)
        how = processes.ending(status)
        return in_recipe(f"{how}: {said}", step, self.plan) if said else how

    def _has_ended(self, child: _Child) -> bool:
        status, peak = processes.poll(child.process)
        if peak and child.step.name in self.plan.run_of_training:
            log = self.folder / child.step.log
            with suppress(OSError), log.open("a", encoding="utf-8") as stream:
                threads = self.options.jobs * self.options.threads
                stream.write(peak_line(peak) + load_line(load_per_core(threads)))
        return status is not None

    def _finish(self, step: Step, seconds: float) -> None:
        partial = self._stdout(step)
        if partial is not None:
            try:
                read_json(partial)
            except TreeSyntaxError:
                # Its whole output, so that the cause can be seen.
                self._fail(
                    step,
                    f"printed more than its answer in JSON; see {partial.name} beside {step.stdout}",
                )
                return
            partial.replace(self.folder / step.stdout)
        missing = [output for output in step.outputs if not (self.folder / output).exists()]
        if missing:
            self._fail(step, f"ended well but left no {missing[0]}")
            return
        self.ledger.check_inputs(step)  # also what it read while it changed is not to be scored
        self.ledger.mark(step, seconds)  # the results of a run say what each of its steps took
        try:
            self.after(step)
        except TreeSyntaxError as error:
            self.ledger.forget(step)
            self._fail(step, str(error))
            return
        self._count_done(step, seconds)

    def _count_done(self, step: Step, seconds: float) -> None:
        self.done.add(step.name)
        self.waiting.done(step.name)
        self._queue_ready()
        self.watcher.finished(step, seconds)

    def _fail(self, step: Step, message: str) -> None:
        failure = Failure(message, step.log, self.rows)
        if self.attempts[step.name] <= self.options.retries:
            self._queue(step)
            self.watcher.retried(step, failure)
            return
        self.failures[step.name] = failure
        write_failures(self.folder, self.earlier | self.failures)
        self.watcher.failed(step, failure)

    def _stdout(self, step: Step) -> Path | None:
        return self.folder / f"{step.stdout}.part" if step.stdout else None
