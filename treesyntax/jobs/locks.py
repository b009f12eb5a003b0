"""A file that one process at a time holds, on this machine or on another that shares the disk."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from treesyntax.errors import OptionError

POLL = 0.2
HELD = (errno.EACCES, errno.EAGAIN)


class HeldError(OptionError):
    """Another process holds the file.

    Attributes:
        holder: that process, such as ``process 12 on node1``.
    """

    def __init__(self, path: Path, holder: str) -> None:
        self.holder = holder
        super().__init__(f"{path} is held by {holder}")


@contextmanager
def locked(path: Path, wait: float = 0.0) -> Iterator[None]:
    """Hold a file; the system releases it when this process ends, however it ends.

    Record locks, since they are known to other machines on NFS, and a fork does not inherit them: a
    killed training is not held by the workers that read its data.

    Args:
        path: of the file, which is made and stays.
        wait: seconds to wait for another process to release it.

    Raises:
        HeldError: if another process holds it.
        OptionError: if it cannot be written or locked.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise OptionError(f"{path.parent} cannot be written ({error.strerror})") from None
    try:
        _acquire(descriptor, path, time.monotonic() + wait)
        with suppress(OSError):  # a full disk: the text is only for the message
            os.truncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, limit: float) -> None:
    while True:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in HELD:
                raise OptionError(f"{path} cannot be locked ({error.strerror})") from None
            if time.monotonic() >= limit:
                holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip()
                raise HeldError(path, holder or "another process") from None
        time.sleep(POLL)
