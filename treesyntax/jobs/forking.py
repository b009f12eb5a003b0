"""The server that starts programs as forks of itself, see :mod:`treesyntax.jobs.preloaded`.

Run as ``python -m treesyntax.jobs.forking SOCKET MODULE ...``: the number of an open socket, and the
modules to load. An order is a line of JSON; so are the answers, the number of the process and later
its exit status. The server ends with its socket, and what it has started ends with it.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import logging
import os
import runpy
import select
import socket
import sys
from typing import Any

from treesyntax.jobs.postponed import postponed
from treesyntax.jobs.preloaded import READY, STALE
from treesyntax.jobs.processes import KIBIBYTE, tie_to_parent

POLL = 0.02


def main() -> None:
    """Load the modules, then start what is ordered."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    with postponed():
        for name in sys.argv[2:]:
            importlib.import_module(name)
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        return  # CUDA does not survive a fork
    gc.collect()
    gc.freeze()  # what is loaded is neither looked through nor copied by the forks
    order = Server(connection).next_fork()
    if order is not None:
        become(order)


class Server:
    """Forks for each order, and reports how the forks end.

    Args:
        connection: to the process that orders.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.lines = connection, connection.makefile("rb")
        self.numbers: dict[int, int] = {}
        self.stamps = stamps_of_modules()

    def next_fork(self) -> dict[str, Any] | None:
        """Serve until the socket is closed; returns None then, and in each fork what it is to do."""
        self._say(READY)
        while True:
            readable, _, _ = select.select([self.connection], [], [], POLL)
            if readable:
                line = self.lines.readline()
                if not line:
                    return None
                if not self.stamps.items() <= stamps_of_modules().items():
                    self._say(STALE)
                    continue
                order = json.loads(line)
                tie = tie_to_parent()
                process = os.fork()
                if not process:
                    if tie is not None:
                        tie()
                    self.lines.close()
                    self.connection.close()
                    return order
                self.numbers[process] = order["number"]
                self._say({"number": order["number"], "pid": process})
            self._report_ended()

    def _report_ended(self) -> None:
        while self.numbers:
            process, status, usage = os.wait4(-1, os.WNOHANG)
            if not process:
                return
            number = self.numbers.pop(process)
            code, peak = os.waitstatus_to_exitcode(status), usage.ru_maxrss * KIBIBYTE
            self._say({"number": number, "status": code, "peak": peak})

    def _say(self, answer: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):  # the next read finds the socket closed
            self.connection.sendall(json.dumps(answer).encode() + b"\n")


def stamps_of_modules() -> dict[str, tuple[int, int]]:
    """Size and time of the file of each module that is loaded; a file that is gone is left out."""
    stamps: dict[str, tuple[int, int]] = {}
    for module in list(sys.modules.values()):
        with contextlib.suppress(ImportError, OSError):  # of one that is imported by a look at it
            file = getattr(module, "__file__", None)
            if isinstance(file, str):
                state = os.stat(file)
                stamps[file] = state.st_size, state.st_mtime_ns
    return stamps


def become(order: dict[str, Any]) -> None:
    """Be the program that is ordered, as ``python -m`` starts it; ends the process as it does."""
    os.setsid()
    appended = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    log = os.open(order["log"], appended, 0o666)
    made = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    out = os.open(order["stdout"], made, 0o666) if order["stdout"] else log
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, file in enumerate((nothing, out, log)):
        os.dup2(file, number)
    for file in {nothing, out, log}:
        os.close(file)
    os.environ.update(order["environment"])
    # A new process has no handlers of logs. fairseq's, made when it was loaded, writes to standard output, so a
    # warning of sacrebleu stood among the scores.
    logging.root.handlers.clear()
    module = order["module"]
    sys.argv = [module, *order["arguments"]]
    sys.modules.pop(module, None)  # runpy would warn that it was imported before
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
