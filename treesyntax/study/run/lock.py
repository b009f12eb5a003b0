"""One process a study."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from treesyntax.errors import OptionError

LOCK_FILE = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a study's folder; the system lets go of it when this process ends, however it ends.

    Raises:
        OptionError: if another process holds it, or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stream = (folder / LOCK_FILE).open("a+b", buffering=0)
    except OSError as error:
        raise OptionError(f"{folder} cannot be written ({error.strerror})") from None
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            stream.seek(0)
            holder = stream.read(20).decode("ascii", "replace").strip() or "unknown"
            raise OptionError(
                f"{folder} is in use by another treesyntax study (process {holder}); "
                "wait for it or choose another --out"
            ) from None
        with suppress(OSError):  # a full disk: the number is for people only
            stream.truncate(0)
            stream.write(f"{os.getpid()}\n".encode())
        yield
