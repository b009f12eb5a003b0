"""Work beside this process: worker processes, jobs of a cluster, and how many cores there are."""

from __future__ import annotations

import multiprocessing
import os
import platform
import signal
import threading
from pathlib import Path


def load_per_core(threads: int) -> float:
    """Busy threads for each core: those of this command, or the load of the last minutes if higher."""
    return round(max(threads, os.getloadavg()[1]) / cores(), 2)


def cores() -> int:
    """How many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor() -> str:
    """Name of the CPU."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def begin_worker() -> None:
    """Prepare a worker process: it ignores interrupts, and ends when the main process is gone.

    The main process handles interrupts and ends its workers. The workers of a process that was
    killed would otherwise wait for work for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
