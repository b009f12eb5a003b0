"""Worker processes end with the process that started them, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

PARENT = """
import os, sys, time
from types import SimpleNamespace
from treesyntax.data.binarize.read import Task, worker_pool
def number(encoding, batch):
    return os.getpid()
with worker_pool(3) as batch_map:
    tasks = [Task(SimpleNamespace(encoding=None), "train", None)] * 30
    print(*{process for _, process in batch_map(number, tasks)}, flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_workers_of_a_killed_process_end():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        workers = [int(number) for number in parent.stdout.readline().split()]
        assert workers
        parent.send_signal(signal.SIGKILL)
    limit = time.monotonic() + 30
    while any(runs(worker) for worker in workers):
        assert time.monotonic() < limit
        time.sleep(0.1)


def runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    try:
        with open(f"/proc/{process}/stat") as stream:
            return stream.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
