"""How a plan is executed, which is no part of the study itself, and who is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from treesyntax.jobs import Cluster
from treesyntax.study.run import process
from treesyntax.study.run.failures import Failure
from treesyntax.study.run.steps import OUT, PLUGINS, Step


class Watcher(Protocol):
    """Who is told what happens."""

    def started(self, step: Step) -> None:
        """A command was started."""

    def finished(self, step: Step, seconds: float) -> None:
        """A command ended well."""

    def retried(self, step: Step, failure: Failure) -> None:
        """A command did not end well and will be started once more."""

    def failed(self, step: Step, failure: Failure) -> None:
        """A command did not end well, for good."""

    def tick(self, running: list[Step]) -> None:
        """Called twice a second."""


@dataclass(frozen=True)
class ExecutionOptions:
    """How to execute, none of which is part of the study itself.

    Attributes:
        jobs: how many commands run at once on this machine.
        threads: threads of each, by OMP_NUM_THREADS.
        plugins: folder for fairseq's --user-dir.
        programs: what the program names in commands stand for.
        retries: how often a command that failed is started once more.
        gpus: see :func:`treesyntax.study.run.process.read_slots`.
        cluster: where training and generation are submitted to; None runs them here.
        submitted: how many jobs the cluster has at once.
    """

    jobs: int
    threads: int
    plugins: str
    programs: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: process.PROGRAMS)
    retries: int = 0
    gpus: tuple[str, ...] = ()
    cluster: Cluster | None = None
    submitted: int = 0


def command_words(step: Step, folder: Path, settings: ExecutionOptions) -> list[str]:
    """The command of a step as it is executed in a folder."""
    replace = {OUT: str(folder), PLUGINS: settings.plugins}
    return process.resolve(step.command, settings.programs, replace)
