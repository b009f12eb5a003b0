"""Programs that start at once: forks of a process that has loaded torch and fairseq before.

Loading them takes about six seconds of processor time, and each run of a study starts three such programs.
Where a study has runs left, one server loads them once, while the first commands are processes of
their own; the later ones are its forks. A program runs in the same way in both: module, words, output,
environment, process group, and the end with its parent.

Linux only, and not with a GPU, which a fork cannot use if its parent has looked for it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from treesyntax.jobs import processes

READY, STALE = {"ready": 1}, {"stale": 1}
"""What the server answers once it has loaded all, and to an order after a file of that was edited: a fork would run the
former code, while a study records the present one."""

MODULES = (
    "fairseq_cli.train", "fairseq_cli.generate", "treesyntax.__main__", "treesyntax.study.run.hypotheses",
)  # fmt: skip
"""Those that may be forks, started by ``python -P -m MODULE``."""
LOADED = ("fairseq_cli.train", "fairseq_cli.generate", "torch._dynamo", "sacrebleu")
SERVER = "treesyntax.jobs.forking"
PATIENCE = 1.0
"""Seconds to wait for an answer before looking whether there is still somebody to give it."""
FEWEST_RUNS = 2
"""For fewer runs a server costs more than it saves."""


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


class Child:
    """A fork of the server, with what is asked of a :class:`subprocess.Popen`.

    Attributes:
        pid: its process, and process group.
        returncode: as of ``Popen``; None while it runs.
        peak: its peak memory in bytes once it has ended.
    """

    def __init__(self, owner: Preloaded) -> None:
        self.owner, self.pid, self.peak = owner, 0, 0
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status, None while it runs."""
        self.owner.read()
        return self.returncode

    def wait(self) -> int:
        """Wait for its end; returns the exit status."""
        while self.returncode is None:
            ended = not _exists(self.pid)
            self.owner.read(PATIENCE)
            if ended and self.returncode is None:  # an interrupt lost the answer
                self.returncode = -signal.SIGKILL
        return self.returncode


class Preloaded:
    """Starts commands, as forks of a server where that is possible and pays.

    Args:
        log: file for what the server prints.
        environment: variables of all commands that must be set before torch is loaded.
        runs: how many runs are left; with fewer than `FEWEST_RUNS` all commands are processes of their own.
        loaded: the modules that the server loads.
        modules: the programs that may be forks.
    """

    def __init__(
        self,
        log: Path,
        environment: Mapping[str, str],
        runs: int,
        loaded: Sequence[str] = LOADED,
        modules: Sequence[str] | None = None,
    ) -> None:
        self.log, self.environment, self.loaded = log, environment, loaded
        self.modules = MODULES if modules is None else modules
        self.wanted = sys.platform.startswith("linux") and runs >= FEWEST_RUNS
        self.ready, self.rest, self.orders = False, b"", 0
        self.server: processes.Process | None = None
        self.connection: socket.socket | None = None
        self.children: dict[int, Child] = {}

    def start(
        self, words: Sequence[str], log: Path, stdout: Path | None, environment: Mapping[str, str]
    ) -> processes.Process:
        """As :func:`treesyntax.jobs.processes.start`."""
        if list(words[:3]) == [sys.executable, "-P", "-m"] and words[3] in self.modules:
            if self.wanted and self.server is None:
                self._launch()
            self.read()
            if self.ready:
                child = self._order(words[3:], log, stdout, environment)
                if child is not None:
                    return child
        return processes.start(words, log, stdout, environment)

    def close(self) -> None:
        """End the server, and with it any child that still runs."""
        self._lose()
        if self.server is not None:
            processes.stop([self.server])

    def _launch(self) -> None:
        self.connection, other = socket.socketpair()
        words = [sys.executable, "-P", "-m", SERVER, str(other.fileno()), *self.loaded]
        with other:
            self.server = processes.start(
                words, self.log, None, self.environment, inherit=[other.fileno()]
            )

    def _order(
        self, words: Sequence[str], log: Path, stdout: Path | None, environment: Mapping[str, str]
    ) -> Child | None:
        """None if the server is gone, or what it has loaded was edited."""
        log.parent.mkdir(parents=True, exist_ok=True)
        self.orders += 1
        child, number = Child(self), self.orders
        self.children[number] = child
        order = {
            "number": number, "module": words[0], "arguments": [*words[1:]], "log": str(log),
            "stdout": str(stdout or ""), "environment": dict(environment),
        }  # fmt: skip
        assert self.connection is not None  # it is ready
        with suppress(OSError):  # reading finds the server gone
            self.connection.sendall(json.dumps(order).encode() + b"\n")
        while self.ready and not child.pid:
            self.read(PATIENCE)
        if not child.pid:
            self.children.pop(number, None)
            return None
        return child

    def read(self, seconds: float = 0.0) -> None:
        """Take in what the server has answered; waits so long for something."""
        while self.connection is not None:
            if not select.select([self.connection], [], [], seconds)[0]:
                return
            seconds = 0.0
            try:
                received = self.connection.recv(1 << 16)
            except OSError:
                received = b""
            *lines, self.rest = (self.rest + received).split(b"\n")
            for line in lines:
                self._note(json.loads(line))
            if not received:
                self._lose()

    def _note(self, answer: Mapping[str, int]) -> None:
        if answer == READY:
            self.ready = True
        elif answer == STALE:
            self.ready = False
        elif "pid" in answer:
            self.children[answer["number"]].pid = answer["pid"]
        else:
            child = self.children.pop(answer["number"])
            child.returncode, child.peak = answer["status"], answer["peak"]

    def _lose(self) -> None:
        """The server is gone, and the kernel kills its children."""
        if self.connection is not None:
            self.connection.close()
        self.connection, self.ready = None, False
        for child in self.children.values():
            child.returncode = -signal.SIGKILL
        self.children.clear()
