"""A file that one process at a time holds, on this machine or on another that shares the disk.

These are record locks: other machines know them on NFS, and a fork does not inherit them, so that a killed
training is not held by the workers that read its data. A process gives up its lock when it closes any
descriptor of the file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from treesyntax.errors import OptionError

POLL = 0.2
HELD = (errno.EACCES, errno.EAGAIN)
TRAINING, TRAINING_WAIT = ".training.lock", 10.0
"""The file that a training holds, and seconds in which one that was killed may still be ending."""
HOLDER = "{holder}"
"""Stands in a message for the process that holds the file, such as ``process 12 on node1``."""


@contextmanager
def locked(path: Path, busy: str, wait: float = 0.0) -> Iterator[None]:
    """Hold a file; the system releases it when this process ends, however it ends.

    Args:
        path: of the file, which is made and stays.
        busy: what is said if another process holds it; may have `HOLDER` in it.
        wait: seconds to wait for another process to release it.

    Raises:
        OptionError: if another process holds it, or it cannot be written or locked.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise OptionError(f"{path.parent} cannot be written ({error.strerror})") from None
    try:
        hold(descriptor, path, busy, wait)
        with suppress(OSError):  # a full disk: the text is only for the message
            os.truncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def training_in(folder: Path, flag: str) -> AbstractContextManager[None]:
    """Hold a folder for one training, see `locked`.

    Args:
        folder: of checkpoints.
        flag: what chooses another.
    """
    busy = f"{folder}: another training writes here ({HOLDER}); wait until it ends, or choose another {flag}"
    return locked(folder / TRAINING, busy, TRAINING_WAIT)


def hold(descriptor: int, path: Path, busy: str, wait: float = 0.0) -> None:
    """Hold a file that is open for writing until it is closed, see `locked`."""
    limit = time.monotonic() + wait
    while True:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in HELD:
                raise OptionError(
                    f"{path} cannot be locked ({error.strerror}), so two processes could write at once; "
                    "choose a folder on a disk with file locks"
                ) from None
            if time.monotonic() >= limit:
                holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip()
                raise OptionError(busy.replace(HOLDER, holder or "another process")) from None
        time.sleep(POLL)
