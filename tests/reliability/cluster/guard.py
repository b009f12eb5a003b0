"""Ends what a Slurm of the tests has started, also where the tests themselves were killed.

Daemons, steps and jobs have the path of its configuration in their environment, wherever they moved.
Run as ``guard.py FOLDER PID`` it waits until the process PID, which started it, is gone.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path


def started_by(folder: Path) -> list[int]:
    """The processes of the Slurm in a folder."""
    mark = f"SLURM_CONF={folder}/slurm.conf".encode()
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it ended, or is another user's
            if mark in file.read_bytes().split(b"\0"):
                found.append(int(file.parent.name))
    return found


def end_all(folder: Path) -> None:
    """Kill them until none is left: some start others until they are gone."""
    for _ in range(50):
        processes = started_by(folder)
        if not processes:
            return
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.1)


def guard(folder: Path) -> subprocess.Popen[bytes]:
    """Watch over this process from another; end it once all is ended."""
    words = [sys.executable, __file__, str(folder), str(os.getpid())]
    environment = {name: value for name, value in os.environ.items() if name != "SLURM_CONF"}
    return subprocess.Popen(words, start_new_session=True, env=environment)


if __name__ == "__main__":
    while os.getppid() == int(sys.argv[2]):
        time.sleep(0.2)
    end_all(Path(sys.argv[1]))
