"""``treesyntax``, with the steps of a study as forks of one process that has loaded everything.

The same modules with the same words, output and environment as the commands of the plan, but torch
and fairseq are loaded once a study instead of three times a run. That each step also works as a
process of its own is tested by `tests/study/test_end_to_end.py`.
"""

from __future__ import annotations

import copy
import functools
import gc
import importlib
import logging
import os
import runpy
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path

from treesyntax import cli
from treesyntax.study.run import process
from treesyntax.study.run.process import SAFE

THIS = str(Path(__file__).resolve())
LOADED = (
    "fairseq_cli.train", "fairseq_cli.generate", "torch._dynamo", "sacrebleu", "matplotlib.pyplot",
    "treesyntax.analysis.run", "treesyntax.model.decoder",
)  # fmt: skip


class Fork:
    """What a study asks of a child process."""

    def __init__(self, pid: int) -> None:
        self.pid, self.returncode = pid, None

    def poll(self) -> int | None:
        return self._wait(os.WNOHANG)

    def wait(self) -> int | None:
        return self._wait(0)

    def _wait(self, how: int) -> int | None:
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, how)
            self.returncode = os.waitstatus_to_exitcode(status) if ended else None
        return self.returncode


def start(
    words: Sequence[str], log: Path, stdout: Path | None, environment: Mapping[str, str]
) -> Fork:
    """As ``treesyntax.study.run.process.start``."""
    assert words[:3] == [sys.executable, SAFE, "-m"], words
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return Fork(pid)
    code = 1
    try:
        os.setsid()
        with log.open("ab") as log_stream, (stdout or log).open("wb" if stdout else "ab") as out:
            os.dup2(out.fileno(), 1)
            os.dup2(log_stream.fileno(), 2)
        os.environ.update(environment)
        code = _run(words[3], words[4:])
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _run(module: str, arguments: Sequence[str]) -> int:
    # Fresh streams and logging: those of the parent may belong to pytest, or to a test before.
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    for logger in (logging.root, *logging.root.manager.loggerDict.values()):
        if isinstance(logger, logging.Logger):
            logger.handlers.clear()
            logger.disabled, logger.propagate = False, True
            logger.setLevel(logging.NOTSET)
    logging.root.setLevel(logging.WARNING)
    logging.disable(logging.NOTSET)
    sys.argv = [module, *arguments]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def parse_options_once() -> None:
    """Have fairseq's options parsed once a process.

    fairseq hands each of its 276 options as text to hydra, whose parser takes longer over them than
    most models here take to build.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser

    parse = functools.cache(OverridesParser.create().parse_rule)
    OverridesParser.parse_rule = lambda _, text, rule: copy.copy(parse(text, rule))


def _parse_options() -> None:
    """Once here, so that no fork need do it."""
    parse_options_once()
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    for parser, words in (
        (options.get_training_parser(), ["data", "--arch", "transformer_tiny"]),
        (options.get_generation_parser(), ["data", "--path", "model.pt"]),
    ):
        convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, words))


def main(arguments: list[str]) -> int:
    """Run ``treesyntax``; everything is loaded only for a study that does something."""
    if arguments[:1] == ["study"] and "--dry-run" not in arguments:
        for module in LOADED:
            importlib.import_module(module)
        _parse_options()
        process.start = start
        gc.freeze()
    return cli.main(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
