"""Steps as jobs of a cluster: those that can start at the same time are submitted together."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from treesyntax.jobs.cluster import AwayError, Cluster, Job
from treesyntax.jobs.node import SAVED, Order
from treesyntax.study.run.checkpoints import repair_checkpoints
from treesyntax.study.run.ledger import Ledger
from treesyntax.study.run.logs import read_log
from treesyntax.study.run.progress import PlainProgress
from treesyntax.study.run.steps import Step

TRY_EVERY = 30.0
"""Seconds between two tries to submit while a cluster does not answer."""
MORE_TIME = "give it more time with --cluster-set timeout_min=N"


@dataclass(frozen=True)
class Submitted:
    """A step as a job.

    Attributes:
        step: the step.
        job: its job.
        saved: the update of the checkpoint that a training began with.
    """

    step: Step
    job: Job
    saved: int


class Submission:
    """The jobs of a study.

    Args:
        cluster: where they are submitted; without one, no step is a job.
        kinds: of the steps that are.
        ledger: the study's.
    """

    def __init__(self, cluster: Cluster | None, kinds: Sequence[str], ledger: Ledger) -> None:
        self.cluster, self.kinds, self.ledger = cluster, kinds, ledger
        self.orders: list[tuple[Step, Order]] = []
        self.submitted: list[Submitted] = []
        self.away, self.next_try = "", 0.0

    def __len__(self) -> int:
        """How many jobs there are, or will be after `submit`."""
        return len(self.orders) + len(self.submitted)

    def takes(self, step: Step) -> bool:
        """Whether a step is a job."""
        return self.cluster is not None and step.kind in self.kinds

    def order(
        self, step: Step, words: list[str], environment: Mapping[str, str], stdout: Path | None
    ) -> None:
        """Submit a step at the next `submit`."""
        assert self.cluster is not None
        folder, run = self.ledger.folder, self.ledger.plan.run_of_training.get(step.name)
        order = Order(
            self.cluster.folder,
            step.name,
            words,
            (folder / step.log).resolve(),  # a node may have another working folder
            environment,
            stdout and stdout.resolve(),
            partial(repair_checkpoints, (folder / run.checkpoints).resolve()) if run else None,
        )
        self.orders.append((step, order))

    def submit(self) -> list[Submitted]:
        """Submit what is ordered; orders wait while the cluster does not answer, as running jobs do.

        Raises:
            OSError: if the cluster does not take it.
        """
        if self.cluster is None or not self.orders or time.monotonic() < self.next_try:
            return []
        keyed = [(self.ledger.keys.of[step.name], order) for step, order in self.orders]
        try:
            jobs = self.cluster.start(keyed)
        except AwayError as error:
            self.away, self.next_try = (
                f"the cluster is away: {error.strerror}",
                time.monotonic() + TRY_EVERY,
            )
            return []
        self.away = ""
        pairs = zip(self.orders, jobs, strict=True)
        submitted = [Submitted(step, job, self.saved(step)) for (step, _), job in pairs]
        self.orders = []
        self.submitted += submitted
        return submitted

    def collect(self, watcher: PlainProgress) -> Iterator[Submitted]:
        """Look at all jobs, and tell of those that begin; yields those that ended."""
        for submitted in list(self.submitted):
            waited, status = submitted.job.waits, submitted.job.poll()
            if waited and not submitted.job.waits:
                self.ledger.note_start(submitted.step, of_job=True)
                watcher.started(submitted.step)
            if status is not None:
                self.submitted.remove(submitted)
                yield submitted
                submitted.job.forget()

    def stop(self) -> None:
        """Cancel all jobs."""
        if self.cluster is not None:
            self.cluster.stop(submitted.job for submitted in self.submitted)

    def running(self) -> list[Step]:
        """The steps that have begun."""
        return [submitted.step for submitted in self.submitted if not submitted.job.waits]

    def queued(self) -> dict[str, str]:
        """Why the others wait, by name."""
        return {step.name: self.away for step, _ in self.orders} | {
            submitted.step.name: submitted.job.waits_for
            for submitted in self.submitted
            if submitted.job.waits
        }

    def is_at_work(self, step: Step) -> bool:
        """Whether a job of an earlier session still does a step."""
        key, cluster = self.ledger.keys.of[step.name], self.cluster
        return cluster is not None and cluster.is_at_work(key, step.name)

    def saved(self, step: Step) -> int:
        """The update of the last checkpoint of a training, 0 for another step."""
        is_training = step.name in self.ledger.plan.run_of_training
        return read_log(self.ledger.folder / step.log).saved if is_training else 0

    def outcome(self, ended: Submitted) -> tuple[int, str]:
        """How a job ended that did not end well.

        Returns:
            The update from which its training goes on in another job, 0 if it does not; and the
            reason, "" if the log of the step has it.
        """
        if ended.job.returncode != SAVED:
            return 0, ended.job.reason
        saved = self.saved(ended.step)
        if saved > ended.saved:
            return saved, ""
        return 0, f"job {ended.job.id}: its time was over before an update was saved; {MORE_TIME}"
