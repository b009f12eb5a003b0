"""Processes of a study: how they start and end, and the GPUs that they see."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from treesyntax.errors import OptionError

VISIBLE = "CUDA_VISIBLE_DEVICES"
TRAIN = "fairseq-train"
USERS = (TRAIN, "fairseq-generate")
"""The programs that get GPUs of their own; the others see those of the study."""


def read_slots(gpus: Sequence[str] | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The GPUs of each command that runs at a time, such as ``("0", "1")`` or ``("0,1", "2,3")``.

    Args:
        gpus: as given; by default each GPU of CUDA_VISIBLE_DEVICES, if that names several.
        environment: the environment variables.
    """
    if gpus is None:
        visible = environment.get(VISIBLE, "").split(",")
        return tuple(visible) if len(visible) > 1 else ()
    names = [name for slot in gpus for name in slot.split(",")]
    if len(set(names)) < len(names) or not all(names):
        raise OptionError(f"--gpus {' '.join(gpus)}: name each GPU once")
    if len({slot.count(",") for slot in gpus}) > 1:
        raise OptionError(
            f"--gpus {' '.join(gpus)}: give each run as many GPUs, since batches grow with them"
        )
    return tuple(gpus)


class Devices:
    """Hands out slots, the one with the fewest users first.

    Args:
        slots: as of `read_slots`; without any, commands see all GPUs.
    """

    def __init__(self, slots: Sequence[str]) -> None:
        self.users = dict.fromkeys(slots, 0)

    def take(self, program: str) -> str:
        """A slot for a command of that program, "" for none; return it with `give`."""
        if program not in USERS or not self.users:
            return ""
        slot = min(self.users, key=lambda name: self.users[name])
        self.users[slot] += 1
        return slot

    def give(self, slot: str) -> None:
        """Return a slot."""
        if slot:
            self.users[slot] -= 1

    @staticmethod
    def environment(program: str, slot: str) -> dict[str, str]:
        """The variables for a command with that slot; generation takes one GPU only."""
        if not slot:
            return {}
        return {VISIBLE: slot if program == TRAIN else slot.split(",")[0]}


SAFE = "-P"
"""Python's option that keeps the working folder off the import path. Without it, a file random.py or
treesyntax.py beside the recipe would take the place of the module of that name."""
PROGRAMS: dict[str, tuple[str, ...]] = {
    "treesyntax": (sys.executable, SAFE, "-m", "treesyntax.cli"),
    "fairseq-train": (sys.executable, SAFE, "-m", "fairseq_cli.train"),
    "fairseq-generate": (sys.executable, SAFE, "-m", "fairseq_cli.generate"),
    "python": (sys.executable,),
}
"""The words that each program name in a plan stands for. Any other first word is run as it is. Tests
pass a mapping of their own."""

PR_SET_PDEATHSIG = 1
KIBIBYTE = 1024
GRACE = 3.0
"""Seconds that children have to end by themselves when asked to."""


def resolve(
    command: Sequence[str], programs: Mapping[str, Sequence[str]], replace: Mapping[str, str]
) -> list[str]:
    """A symbolic command as the words to execute."""
    words = [*programs.get(command[0], command[:1]), *command[1:]]
    for placeholder, value in replace.items():
        words = [word.replace(placeholder, value) for word in words]
    return words


def safe_environment(words: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that keep the working folder off the import path of a command's own children.

    Args:
        words: a command of `resolve`; one without `SAFE` is the user's own and gets none.
        environment: the environment of the study.
    """
    if SAFE not in words[:2]:
        return {}
    variables = {"PYTHONSAFEPATH": "1"}
    if path := environment.get("PYTHONPATH"):
        kept = filter(os.path.isabs, path.split(os.pathsep))  # others are of the working folder
        variables["PYTHONPATH"] = os.pathsep.join(kept)
    return variables


def start(
    words: Sequence[str], log: Path, stdout: Path | None, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a command in a process group of its own, its output appended to ``log``.

    On Linux the kernel kills it as soon as this process is gone, however that happens.

    Args:
        words: the command.
        log: file for standard error, and for standard output unless ``stdout`` is given.
        stdout: file for the standard output, made anew.
        environment: variables to set beside the inherited ones.
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
                preexec_fn=_tie_to_parent(),
            )
        finally:
            out_stream.close()


def _tie_to_parent() -> Callable[[], None] | None:
    if not sys.platform.startswith("linux"):
        return None
    # Everything is looked up before the fork: after it, only plain calls are safe.
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def tie() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)

    return tie


def poll(child: subprocess.Popen[bytes]) -> tuple[int | None, int]:
    """The exit status of a child, None while it runs, and its peak memory.

    Returns:
        The status, and the largest resident size of the child or one of its own children in
        bytes; 0 where that is not known.
    """
    if child.returncode is None and sys.platform.startswith("linux"):
        try:
            ended, status, usage = os.wait4(child.pid, os.WNOHANG)
        except ChildProcessError:
            return child.poll(), 0
        if ended:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode, usage.ru_maxrss * KIBIBYTE
    return child.poll(), 0


def stop(processes: Iterable[subprocess.Popen[bytes]]) -> None:
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


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
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
