"""Commands as jobs of a cluster, submitted by submitit.

The nodes must see the folder of the study or parse. Interrupting the study or parse cancels its jobs.
If it is killed, the jobs go on, and the next call finds them instead of starting them twice. That a
job ended, and how, is read from the file that it leaves and from the queue, never from a pickle.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from treesyntax.errors import OptionError
from treesyntax.files import read_object, write_json
from treesyntax.jobs.node import Order, carry_out, result_of, ticket_of
from treesyntax.jobs.processes import without_variables
from treesyntax.jobs.queues import ENDED, GONE, WAITING, Entry, LocalQueue, Queue, SlurmQueue

FOLDER = "cluster"
KINDS = ("slurm", "local")
POLL = 1.0
"""Seconds between two looks at a job, whose files may be on a slow shared disk."""
RESULT_WAIT = 15.0
"""Seconds that a shared disk may take to show the result of a job."""
ANSWER_WAIT = 60.0
LOST = 1
LARGEST_ARRAY = 1000
WEEK = 7 * 24 * 60
OF_CLUSTER = ("SLURM_CONF", "SLURM_JWT", "SLURM_CLUSTERS")
"""Variables by which commands find a Slurm cluster. In a job, the others that begin so describe that job."""


class AwayError(OSError):
    """The cluster does not answer: what was asked of it may be asked once more later."""


AWAY = re.compile(
    "unable to contact slurm controller|not responding|connection (refused|timed out|failure)|timed out on send"
    "|zero bytes were transmitted|temporarily un(able|available)|in standby|no route to host",
    re.IGNORECASE,
)
"""What sbatch says where its controller is away, rather than of the job."""


class Job:
    """A submitted job, with the methods of a process that a study uses.

    Attributes:
        returncode: that of the command; `LOST` if the job ended without one; None while it runs.
        reason: why the job ended without a result, "" otherwise.
        entry: what the cluster last said of it, None before.
        seconds: how long the command ran.
        id: of the job.
    """

    def __init__(self, job: str, order: Order, queue: Queue) -> None:
        self.id, self.order, self.queue = job, order, queue
        self.returncode: int | None = None
        self.reason, self.seconds = "", 0.0
        self.entry: Entry | None = None
        self.submitted = time.monotonic()
        self.next_look = 0.0
        self.ended: float | None = None

    @property
    def waits(self) -> bool:
        """Whether it has not begun, as far as is known."""
        return self.entry is None or self.entry.state in WAITING

    @property
    def waits_for(self) -> str:
        """Why it has not begun, in the cluster's words."""
        return "" if self.entry is None or self.entry.reason == "None" else self.entry.reason

    def forget(self) -> None:
        """Drop the ticket of a job whose end is dealt with: the same work may be ordered again."""
        ticket_of(self.order.folder, self.order.name).unlink(missing_ok=True)

    def poll(self) -> int | None:
        """The return code; None while the job waits or runs."""
        if self.returncode is None and time.monotonic() >= self.next_look:
            self.next_look = time.monotonic() + POLL
            self._look()
        return self.returncode

    def _look(self) -> None:
        # The queue first: a job that it says has ended has written its result before.
        entry = self.queue.entry(self.id, self.submitted)
        if entry is not None and (entry != GONE or self.ended is None):
            self.entry = entry  # a cluster that forgets a job has said before why it ended
        result = read_object(result_of(self.order.folder, self.id))
        if isinstance(status := result.get("returncode"), int):
            self.returncode, self.seconds = status, float(result.get("seconds", 0.0))
        elif self.entry is None or self.entry.state not in (*ENDED, GONE.state):
            self.ended = None
        elif self.ended is None:
            self.ended = time.monotonic()
        elif time.monotonic() >= self.ended + RESULT_WAIT:
            self.returncode, self.reason = LOST, self._reason(self.entry)
            self.queue.cancel([self.id])  # that it cannot begin once more

    def _reason(self, entry: Entry) -> str:
        why = f" ({entry.reason})" if entry.reason not in ("", "None") else ""
        logs = sorted((self.order.folder).glob(f"{self.id}_*_log.err"))
        lines = [line for log in logs for line in log.read_text("utf-8", "replace").splitlines()]
        said = next((line.strip() for line in reversed(lines) if line.strip()), "")
        remedy = "; give it more time with --cluster-set timeout_min=N"
        return (
            f"job {self.id} ended without a result: {entry.state}{why}"
            + (f": {said}" if said else "")
            + (remedy if entry.state == "TIMEOUT" else "")
        )


def check_cluster(kind: str | None) -> None:
    """Refuse Slurm where there is none, before anything is written for its jobs.

    Raises:
        OptionError: if srun, which submitit looks for, is not there.
    """
    if kind == "slurm" and shutil.which("srun") is None:
        raise OptionError(
            "--cluster slurm: there is no Slurm on this machine (no command srun); run it on the login node of a "
            "Slurm cluster, or try --cluster local"
        )


class Cluster:
    """Submits commands as jobs.

    Args:
        kind: one of `KINDS`; "local" runs jobs on this machine, to try things out.
        folder: of the study or parse.
        parameters: of submitit's executor, such as ``slurm_partition`` or ``timeout_min``.

    Raises:
        OptionError: if submitit or Slurm is not installed, or submitit does not take the parameters.
    """

    def __init__(self, kind: str, folder: Path, parameters: Mapping[str, Any]) -> None:
        check_cluster(kind)
        try:
            import submitit
        except ImportError:
            raise OptionError(
                "--cluster needs submitit: pip install 'treesyntax[cluster]'"
            ) from None
        self.kind, self.folder = kind, folder.resolve() / FOLDER
        if kind == "local":
            parameters = {"timeout_min": WEEK, **parameters}
        try:
            # -P: a job must not import files of the working folder in place of modules.
            python = {f"{kind}_python": f"{shlex.quote(sys.executable)} -P"}
            self.executor = submitit.AutoExecutor(folder=self.folder, cluster=kind, **python)
            self.executor.update_parameters(**parameters)
        except (RuntimeError, NameError, ValueError, TypeError, AssertionError, OSError) as error:
            with suppress(OSError):  # made by submitit, and empty unless jobs ran before
                self.folder.rmdir()
            hint = "give --cluster-set EXECUTOR_NAME=VALUE, such as slurm_partition=gpu, or timeout_min=60"
            raise OptionError(f"--cluster {kind}: {str(error).splitlines()[0]}; {hint}") from None
        self.queue: Queue = SlurmQueue() if kind == "slurm" else LocalQueue(self.folder)
        self.begun = time.monotonic()

    def start(self, orders: Sequence[tuple[str, Order]]) -> list[Job]:
        """Submit commands, those that are not submitted yet: several as an array.

        Args:
            orders: each with a key; a job of the same name with another key is not taken up.

        Raises:
            AwayError: if the cluster does not answer now; those that it took are taken up by the next call.
            OSError: if they cannot be submitted.
        """
        jobs = {order.name: self.take_up(key, order) for key, order in orders}
        left = [(key, order) for key, order in orders if jobs[order.name] is None]
        for first in range(0, len(left), LARGEST_ARRAY):
            jobs |= self._submit(left[first : first + LARGEST_ARRAY])
        return [job for _, order in orders if (job := jobs[order.name]) is not None]

    def _submit(self, orders: Sequence[tuple[str, Order]]) -> dict[str, Job]:
        names = [order.name for _, order in orders]
        more = f"+{len(names) - 1}" if len(names) > 1 else ""
        try:
            self.executor.update_parameters(name=names[0] + more)
            with without_variables(_variables_of_job() if self.kind == "slurm" else ()):
                if more:
                    jobs = self.executor.map_array(carry_out, [order for _, order in orders])
                else:
                    jobs = [self.executor.submit(carry_out, orders[0][1])]
        except Exception as error:  # submitit has errors of its own for sbatch
            kind = AwayError if AWAY.search(str(error)) else OSError
            raise kind(0, _last_line(str(error))) from None
        for (key, order), job in zip(orders, jobs, strict=True):
            ticket = {"job": job.job_id, "key": key, "cluster": self.kind, "time": time.time()}
            write_json(ticket_of(self.folder, order.name), ticket)
        return {
            order.name: Job(job.job_id, order, self.queue)
            for (_, order), job in zip(orders, jobs, strict=True)
        }

    def take_up(self, key: str, order: Order) -> Job | None:
        """The job of an earlier call, if it waits, runs, or ended well."""
        ticket = read_object(ticket_of(self.folder, order.name))
        if ticket.get("key") != key or ticket.get("cancelled") or not self._is_own(ticket):
            return None
        result = read_object(result_of(self.folder, ticket["job"]))
        if result.get("returncode") == 0 or (not result and self._is_live(ticket["job"])):
            return Job(ticket["job"], order, self.queue)
        return None

    def _is_own(self, ticket: Mapping[str, Any]) -> bool:
        return ticket.get("cluster") == self.kind and isinstance(ticket.get("job"), str)

    def _is_live(self, job: str) -> bool:
        """Whether a job of an earlier call may still write."""
        limit = time.monotonic() + ANSWER_WAIT
        while (entry := self.queue.entry(job, self.begun)) is None:
            if time.monotonic() >= limit:
                raise OptionError(f"squeue does not say whether job {job} still runs; try later")
            time.sleep(POLL)
        return entry.state not in (*ENDED, GONE.state)

    def is_at_work(self, key: str, name: str) -> bool:
        """Whether a job of an earlier call still does some work."""
        ticket = read_object(ticket_of(self.folder, name))
        is_ours = self._is_own(ticket) and ticket.get("key") == key
        return (
            is_ours
            and not result_of(self.folder, ticket["job"]).exists()
            and self._is_live(ticket["job"])
        )

    def end_others(self, keys: Mapping[str, str]) -> Iterator[str]:
        """Cancel the jobs of earlier calls that do other work, and wait until they are gone.

        Args:
            keys: of the work that is to be done, by name.

        Yields:
            Each of these jobs, before the wait.
        """
        tickets = [
            (name, ticket) for name, ticket in tickets_in(self.folder) if self._is_own(ticket)
        ]
        others = [
            ticket["job"]
            for name, ticket in tickets
            if (ticket.get("cancelled") or keys.get(name) != ticket.get("key"))
            and not result_of(self.folder, ticket["job"]).exists()
            and self._is_live(ticket["job"])
        ]
        yield from others
        self.queue.cancel(others)
        for job in others:
            while self._is_live(job):
                time.sleep(POLL)

    def stop(self, jobs: Iterable[Job]) -> None:
        """Cancel jobs, and note it: no call takes them up again, whatever becomes of them."""
        jobs = [job for job in jobs if job.returncode is None]
        for job in jobs:
            ticket = ticket_of(self.folder, job.order.name)
            write_json(ticket, {**read_object(ticket), "cancelled": True})
        self.queue.cancel(job.id for job in jobs)


def _variables_of_job() -> list[str]:
    """Return the variables of the Slurm job that this process is in.

    A job inherits them, and its srun takes them for options, such as another kind of memory limit, which it refuses.
    submitit's clean_env also hides `OF_CLUSTER` and SBATCH_ variables, in which users keep their account.
    """
    names = [*os.environ] if "SLURM_JOB_ID" in os.environ else []
    return [name for name in names if name.startswith("SLURM_") and name not in OF_CLUSTER]


def tickets_in(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tickets in the folder of a cluster, with the names of their work."""
    tickets = folder / "tickets"
    for file in sorted(tickets.rglob("[!.]*.json")):
        yield str(file.relative_to(tickets).with_suffix("")), read_object(file)


def jobs_at_work(folder: Path) -> tuple[list[str], list[str]]:
    """The jobs of a study or parse that Slurm still has, and those of which nobody here can say it: without Slurm."""
    queue = SlurmQueue()
    at_work: list[str] = []
    unknown: list[str] = []
    for _, ticket in tickets_in(folder / FOLDER):
        job = ticket.get("job")
        if ticket.get("cluster") == "slurm" and isinstance(job, str):
            entry = queue.entry(job, float("-inf"))
            if entry is None and not ticket.get("cancelled"):
                unknown += [job] * (not result_of(folder / FOLDER, job).exists())
            elif entry is not None and entry.state not in (*ENDED, GONE.state):
                at_work.append(job)
    return at_work, unknown


def _last_line(text: str) -> str:
    """The last line that says anything: the first ones of an error of sbatch are the command."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"
