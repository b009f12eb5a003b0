"""``treesyntax``, fairseq and the steps of studies as forks of the process of the tests.

The same modules with the same words, output and environment as the commands, but torch and fairseq
are loaded once a process of tests instead of once a command. That each program of a study also works
as a process of its own is tested by `tests/study/test_end_to_end.py`.
"""

from __future__ import annotations

import copy
import functools
import gc
import importlib
import io
import logging
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from support import PLUGINS
from treesyntax import __main__ as cli
from treesyntax.commands import finetune as by_hand
from treesyntax.jobs import preloaded, processes
from treesyntax.jobs.postponed import postponed
from treesyntax.methods import METHODS
from treesyntax.study.run import code, early
from treesyntax.study.run.fairseq import Fairseq
from treesyntax.study.run.huggingface import HuggingFace
from treesyntax.study.run.process import SAFE

LOADED = (
    "fairseq_cli.train", "fairseq_cli.generate", "torch._dynamo", "sacrebleu", "matplotlib.pyplot",
    "treesyntax.analysis.run", "treesyntax.model.decoder",
)  # fmt: skip


class Fork:
    """What a study asks of a child process, and tests of a study."""

    def __init__(self, pid: int, stdout: Path) -> None:
        self.pid, self.returncode, self.stdout = pid, None, stdout

    def poll(self) -> int | None:
        return self._wait(os.WNOHANG)

    def wait(self) -> int | None:
        return self._wait(0)

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def output(self) -> str:
        """What it has printed."""
        return self.stdout.read_text()

    def _wait(self, how: int) -> int | None:
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, how)
            self.returncode = os.waitstatus_to_exitcode(status) if ended else None
        return self.returncode


def start(
    words: Sequence[str],
    log: Path,
    stdout: Path | None,
    environment: Mapping[str, str],
    inherit: Sequence[int] = (),
) -> Fork:
    """As ``treesyntax.jobs.processes.start``; a fork inherits all files."""
    assert words[:3] == [sys.executable, SAFE, "-m"], words
    return fork(lambda: _run_module(words[3], words[4:]), log, stdout, environment)


def check_flags(
    words: Sequence[str], env: Mapping[str, str], **given: Any
) -> subprocess.CompletedProcess[str]:
    """As ``subprocess.run`` of a program that checks the flags of a study."""
    if words not in (Fairseq.checker, HuggingFace.checker):
        return subprocess.run(words, env=env, **given)

    def run() -> int:
        sys.stdin = io.StringIO(given["input"])
        METHODS.import_all()  # what a fresh process does as it loads the methods
        return _run_module(words[3], [])

    with tempfile.TemporaryDirectory() as place:
        out, log = Path(place, "out"), Path(place, "log")
        code = fork(run, log, out, env).wait()
        return subprocess.CompletedProcess(words, code, out.read_text(), log.read_text())


def run_step(
    words: Sequence[str], stdout: int | None, check: bool
) -> subprocess.CompletedProcess[bytes]:
    """As ``subprocess.run`` of a step of a run by hand."""
    with tempfile.TemporaryDirectory() as place:
        out, log = Path(place, "out"), Path(place, "log")
        code = start(words, log, out, {}).wait()
        return subprocess.CompletedProcess(words, code, out.read_bytes())


def treesyntax(
    folder: Path,
    *arguments: str | Path,
    start: Callable[..., Any] = start,
    status: int = 0,
    preload: bool = False,
) -> str:
    """Run ``treesyntax`` in a folder; what it prints, errors last.

    Args:
        folder: the working folder.
        arguments: of the command.
        start: starts its commands.
        status: how it is seen to end.
        preload: whether a study may start its commands from a server of its own.
    """
    load(*LOADED)
    load_study()
    words = [str(argument) for argument in arguments]

    def run() -> int:
        os.chdir(folder)
        processes.start = start
        preloaded.MODULES = preloaded.MODULES if preload else ()
        early.subprocess = SimpleNamespace(run=check_flags)
        by_hand.subprocess = SimpleNamespace(run=run_step, PIPE=subprocess.PIPE)
        gc.freeze()
        return cli.main(words)

    with tempfile.TemporaryDirectory() as place:
        out, log = Path(place, "out"), Path(place, "log")
        code = fork(run, log, out).wait()
        assert code == status, out.read_text() + log.read_text()
        return out.read_text() + log.read_text() * bool(status)


def own_tests(folder: Path, name: str) -> str:
    """What pytest prints in a folder of a reader's, over a file of tests there."""

    def run() -> int:
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        return pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", name])

    with tempfile.TemporaryDirectory() as place:
        tests = fork(run, Path(place, "log"))
        tests.wait()
        return tests.output()


def fork(
    run: Callable[[], int],
    log: Path,
    stdout: Path | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> Fork:
    """Run a function in a child process; what it returns is the exit status.

    Args:
        run: the function.
        log: the file that the standard error is appended to.
        stdout: the file of the standard output, by default the same.
        environment: variables to add.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return Fork(pid, stdout or log)
    code = 1
    try:
        os.setsid()
        with log.open("ab") as log_stream, (stdout or log).open("wb" if stdout else "ab") as out:
            os.dup2(out.fileno(), 1)
            os.dup2(log_stream.fileno(), 2)
        os.environ.update(environment)
        _renew_streams()
        code = run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _renew_streams() -> None:
    """Fresh streams and logging: those of the parent may belong to pytest, or to a test before."""
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    for logger in (logging.root, *logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            logger.handlers.clear()
            logger.disabled, logger.propagate = False, True
            logger.setLevel(logging.NOTSET)
    logging.root.setLevel(logging.WARNING)
    logging.disable(logging.NOTSET)


def _run_module(module: str, arguments: Sequence[str]) -> int:
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
    return 0


@functools.cache
def load_study() -> None:
    """Load once what each study would: its pictures, and the source files that its steps depend on."""
    for module in (
        "matplotlib.backends.backend_svg",
        "matplotlib.figure",
        "treesyntax.study.session",
    ):
        importlib.import_module(module)
    code.look_again()
    for kind in code.ENTRIES:
        code.code_of(kind)


@functools.cache
def parse_options_once() -> None:
    """Have fairseq's options parsed once a process.

    fairseq hands each of its 276 options as text to hydra, whose parser takes longer over them than
    most models here take to build. Each time hydra also copies all that it knows, lest a search path changes it.
    """
    from hydra._internal import config_repository
    from hydra.core.override_parser.overrides_parser import OverridesParser

    config_repository.copy = SimpleNamespace(deepcopy=lambda known: known)

    parse = functools.cache(OverridesParser.create().parse_rule)
    OverridesParser.parse_rule = lambda _, text, rule: copy.copy(parse(text, rule))


@functools.cache
def load(*modules: str) -> None:
    """What the programs load and parse, once here, so that no fork need do it."""
    with postponed():
        for module in modules:
            importlib.import_module(module)
    parse_options_once()
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    plugin = ["data", "--user-dir", str(PLUGINS), "--task", "tree_translation"]
    for parser, words in (
        (options.get_training_parser(), [*plugin, "--arch", "tree_sequence_tiny"]),
        (options.get_generation_parser(), [*plugin, "--path", "model.pt"]),
    ):
        convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, words))
    gc.collect()
    gc.freeze()  # else the collector of each fork writes to all pages of these modules
