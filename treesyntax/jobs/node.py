"""What a job does on its node: it runs one command and leaves a result.

A cluster may start a job again (a requeue) while another one does the same work. So a job works only
if a ticket names it, if it left no result yet, and while it holds the lock of its work.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from treesyntax.files import read_object, write_json
from treesyntax.jobs import processes, processor
from treesyntax.made.lock import HOLDER, locked

SAVED = 75
"""Exit status of a training that saved at the warning signal and is not done."""
WARNING = signal.SIGUSR2
"""What Slurm sends some time before the time limit, as submitit asks it to."""
POLL = 0.2
TICKET_WAIT = 90.0
"""Seconds that a shared disk may take to show the ticket of a job."""
LOCK_WAIT = 60.0
STOPPED = 143


@dataclass(frozen=True)
class Order:
    """A command for a node.

    Attributes:
        folder: with the tickets and results.
        name: of the work, unique in the folder.
        words: the command.
        log: file to append its output to.
        environment: variables to set beside those of the node.
        stdout: file for the standard output, made anew; None for the log.
        before: what to do first; importable on the node.
    """

    folder: Path
    name: str
    words: Sequence[str]
    log: Path
    environment: Mapping[str, str]
    stdout: Path | None = None
    before: Callable[[], object] | None = None


def job_line(job: str, node: str, waited: float, cpu: str) -> str:
    """The line by which a job says in a log where it runs, after so many seconds in the queue."""
    return f"# job {job} on {node} after {waited:.0f} s, {cpu}\n"


def peak_line(size: int) -> str:
    """The line by which the largest resident size, in bytes, is added to a log."""
    return f"# peak resident memory: {size} bytes\n"


def ticket_of(folder: Path, name: str) -> Path:
    """The file that names the job of some work."""
    return folder / "tickets" / f"{name}.json"


def result_of(folder: Path, job: str) -> Path:
    """The file that a job leaves."""
    return folder / "results" / f"{job}.json"


def carry_out(order: Order) -> None:
    """Run the command of an order as this job.

    A job that is told to end leaves no result: the cluster knows why it ended, and may start it again.
    """
    job = _job_id()
    result = result_of(order.folder, job)
    if result.exists() or not _is_called(order, job):
        print(f"job {job} has nothing to do: {order.name} is done, or another job does it")
        return
    ticket = read_object(ticket_of(order.folder, order.name))
    _rename(job, order.name)
    lock = order.folder / "locks" / f"{order.name}.lock"
    with locked(lock, f"{order.name} is done by {HOLDER}", LOCK_WAIT):
        if order.before is not None:
            order.before()
        order.log.parent.mkdir(parents=True, exist_ok=True)
        begun = time.time()
        waited = max(0.0, begun - float(ticket.get("time", begun)))
        with order.log.open("a", encoding="utf-8") as stream:
            stream.write(job_line(job, socket.gethostname(), waited, processor()))
        status, peak = _run(order)
        if peak:
            with suppress(OSError), order.log.open("a", encoding="utf-8") as stream:
                stream.write(peak_line(peak))
        write_json(result, {"returncode": status, "begun": begun, "seconds": time.time() - begun})


def _run(order: Order) -> tuple[int, int]:
    """The exit status of the command, and its peak memory in bytes."""
    # Slurm signals every process of a job. Those that do not handle the warning shall ignore it.
    signal.signal(WARNING, signal.SIG_IGN)
    # Handlers only note: what they raise before the child is known would leave it an orphan.
    ends: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _: ends.append(got))
    child = processes.start(order.words, order.log, order.stdout, order.environment)

    def warn(*_: object) -> None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, WARNING)

    signal.signal(WARNING, warn)
    try:
        status, peak = processes.poll(child)
        while status is None and not ends:
            time.sleep(POLL)
            status, peak = processes.poll(child)
    finally:
        processes.stop([child])
    if status is not None and status < 0:
        time.sleep(1)  # what killed it may be on its way to this process
    if status is None or ends:
        sys.exit(STOPPED)
    return status, peak


def _job_id() -> str:
    """As submitit has it, of a job on this machine even within one of Slurm."""
    if local := os.environ.get("SUBMITIT_LOCAL_JOB_ID"):
        return local
    names = ("SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID")
    if names[0] in os.environ:
        return "_".join(os.environ[name] for name in names)
    return os.environ["SLURM_JOB_ID"]


def _is_called(order: Order, job: str) -> bool:
    """Whether the ticket of the work names this job; who submits it may be about to write that."""
    limit = time.monotonic() + TICKET_WAIT
    while (named := read_object(ticket_of(order.folder, order.name))).get("job") != job:
        if time.monotonic() >= limit:
            return False
        time.sleep(POLL)
    return not named.get("cancelled")


def _rename(job: str, name: str) -> None:
    """Give a task of an array a name of its own."""
    if "_" in job:
        words = ["scontrol", "update", f"JobId={job}", f"JobName={name}"]
        with suppress(OSError, subprocess.SubprocessError):
            subprocess.run(words, timeout=30, capture_output=True)
