"""The jobs that a cluster has, by their ids: one question for all of them, seldom asked."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

TIMEOUT = 30.0
"""Seconds that a command of Slurm may take."""
EVERY = 5.0
"""Seconds between two questions to Slurm, at least."""
ENDED = (
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "PREEMPTED", "REVOKED", "TIMEOUT",
)  # fmt: skip
WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT")


class Entry(NamedTuple):
    """A job as its cluster has it.

    Attributes:
        state: in Slurm's words, such as PENDING.
        reason: why it waits or has ended, as far as the cluster says so.
    """

    state: str
    reason: str = ""


GONE = Entry("GONE", "the cluster does not know it any more")


class Queue(Protocol):
    """What a study needs of a cluster."""

    def entry(self, job: str, since: float) -> Entry | None:
        """A job that was submitted before a time of `time.monotonic`; None if nothing is known."""

    def cancel(self, jobs: Iterable[str]) -> None:
        """End jobs, whether they wait or run."""


class SlurmQueue:
    """The jobs of this user. ``squeue`` knows ended ones for some minutes; no accounting is needed."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.asked_at = self.answered_at = float("-inf")
        self.took = 0.0

    def entry(self, job: str, since: float) -> Entry | None:
        """See `Queue`."""
        now = time.monotonic()
        if now >= self.asked_at + max(EVERY, 10 * self.took):
            self.asked_at = now
            self._ask()
            self.took = time.monotonic() - now
        return None if self.answered_at <= since else self.entries.get(job, GONE)

    def _ask(self) -> None:
        """No answer changes nothing: a controller that is down says nothing about its jobs."""
        began = time.monotonic()
        words = ["squeue", "--noheader", "--array", "--states=all", f"--user={os.getuid()}"]
        said = _said([*words, "--format=%i|%T|%r"])
        if said is not None:
            rows = [line.split("|", 2) for line in said.splitlines() if line.count("|") >= 2]
            self.entries = {job.strip(): Entry(state, why) for job, state, why in rows}
            self.answered_at = began

    def cancel(self, jobs: Iterable[str]) -> None:
        """See `Queue`."""
        if jobs := list(jobs):
            _said(["scancel", *jobs])


def _said(words: list[str]) -> str | None:
    """The standard output of a command that ended well; None otherwise."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


class LocalQueue:
    """Processes of submitit on this machine, which stand for jobs.

    Args:
        folder: of submitit, which its processes have in their command lines.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)

    def entry(self, job: str, since: float) -> Entry | None:
        """See `Queue`."""
        return Entry("RUNNING") if self._lives(int(job)) else GONE

    def _lives(self, process: int) -> bool:
        with suppress(ChildProcessError):
            os.waitpid(process, os.WNOHANG)
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # the number is another user's now
            return False
        words = Path(f"/proc/{process}/cmdline")
        return not words.exists() or self.folder.encode() in words.read_bytes().split(b"\0")

    def cancel(self, jobs: Iterable[str]) -> None:
        """See `Queue`."""
        for job in jobs:
            if self._lives(int(job)):
                with suppress(ProcessLookupError):
                    os.kill(int(job), signal.SIGTERM)
