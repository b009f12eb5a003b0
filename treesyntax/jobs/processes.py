"""Commands as processes: how they start and end, and that none outlives this process."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

PR_SET_PDEATHSIG = 1
KIBIBYTE = 1024
GRACE = 3.0
"""Seconds that children have to end by themselves when asked to."""


class Process(Protocol):
    """What is asked of a child: a :class:`subprocess.Popen`, or one of another server."""

    pid: int
    returncode: int | None

    def poll(self) -> int | None:
        """The exit status, None while it runs."""

    def wait(self) -> int:
        """Wait for its end; returns the exit status."""


@contextmanager
def without_variables(names: Iterable[str]) -> Iterator[None]:
    """Hide environment variables from this process and from those that it starts; they come back."""
    hidden = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(hidden)


def start(
    words: Sequence[str],
    log: Path,
    stdout: Path | None,
    environment: Mapping[str, str],
    inherit: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a command in a process group of its own, its output appended to ``log``.

    On Linux the kernel kills it as soon as this process is gone, however that happens.

    Args:
        words: the command.
        log: file for standard error, and for standard output unless ``stdout`` is given.
        stdout: file for the standard output, made anew.
        environment: variables to set beside the inherited ones.
        inherit: numbers of open files that it is given.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as log_stream:
        out_stream = stdout.open("wb") if stdout else log_stream
        try:
            return subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=out_stream,
                stderr=log_stream,
                env={**os.environ, **environment},
                start_new_session=True,
                preexec_fn=tie_to_parent(),
                pass_fds=inherit,
            )
        finally:
            out_stream.close()


def tie_to_parent() -> Callable[[], None] | None:
    """What a child calls first, so that the kernel kills it with this process; None if none does."""
    if not sys.platform.startswith("linux"):
        return None
    # Everything is looked up before the fork: after it, only plain calls are safe.
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def tie() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    return tie


def poll(child: Process) -> tuple[int | None, int]:
    """The exit status of a child, None while it runs, and its peak memory.

    Returns:
        The status, and the largest resident size of the child or one of its own children in
        bytes; 0 where that is not known.
    """
    if child.returncode is None and sys.platform.startswith("linux"):
        try:
            ended, status, usage = os.wait4(child.pid, os.WNOHANG)
        except ChildProcessError:
            return child.poll(), getattr(child, "peak", 0)
        if ended:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode, usage.ru_maxrss * KIBIBYTE
    return child.poll(), getattr(child, "peak", 0)


def stop(processes: Iterable[Process]) -> None:
    """End process groups: ask, wait, then kill. Returns when all are gone."""
    processes = list(processes)
    for process in processes:
        _signal_group(process, signal.SIGTERM)
    deadline = time.monotonic() + GRACE
    while time.monotonic() < deadline and any(process.poll() is None for process in processes):
        time.sleep(0.02)
    for process in processes:
        _signal_group(process, signal.SIGKILL)
        process.wait()


def _signal_group(process: Process, number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return


def ending(returncode: int) -> str:
    """How a process ended, in words."""
    if returncode >= 0:
        return f"exit status {returncode}"
    name = signal.Signals(-returncode).name
    return f"killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
