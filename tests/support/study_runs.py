"""``treesyntax study`` over stand-ins for the real programs, and what it leaves behind."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import support.fake_programs as fake_programs
from support import wait_until
from support.forked_programs import Fork, fork, load_study
from treesyntax.jobs import processes
from treesyntax.study import provenance
from treesyntax.study.recipe.identity import read_identity
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.results.results import read_results
from treesyntax.study.run import executor
from treesyntax.study.run.plan import make_plan

start_process = processes.start
_version = provenance._version
_installed_version = cache(_version)


def version_read_once(package: str) -> str:
    """The version of a package; those that numbers depend on stay as they are while the tests run."""
    known = package in provenance.PACKAGES.values()
    return _installed_version(package) if known else _version(package)


start_at_once = partial(fake_programs.start_here, start_process)
"""As ``treesyntax.jobs.processes.start``, but stand-ins act in the study's own process, one after the other."""


def start_forked(
    words: Sequence[str], log: Path, stdout: Path | None, environment: Mapping[str, str]
) -> Fork | subprocess.Popen[bytes]:
    """As ``treesyntax.jobs.processes.start``, but stand-ins are forks: Python need not start.

    They outlive a study that is killed.
    """
    if tuple(words[1:2]) != (fake_programs.THIS,):
        return start_process(words, log, stdout, environment)

    def run() -> int:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        try:
            return fake_programs.act_here(words[2], Path(words[3]), list(words[4:]))
        except SystemExit as end:
            if isinstance(end.code, str):
                print(end.code, file=sys.stderr)
                return 1
            raise

    return fork(run, log, stdout, environment)


def study(
    folder: Path, *arguments: str, wait: bool = True, start: Callable[..., Any] = start_at_once
) -> Fork:
    """``treesyntax study`` over the stand-ins, in a fork of this process, which has loaded it.

    Args:
        folder: of the recipe.
        arguments: more of its options.
        wait: until it ends.
        start: starts the stand-ins: see `start_at_once`, `start_forked`; or `start_process`, which makes them processes
            that end with the study.
    """
    load_study()
    words = [str(folder / "recipe.yaml"), "--out", str(folder / "out"), *arguments]

    def run() -> int:
        # Shells have background jobs ignore interrupts, and that would be inherited.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        processes.start = start
        if start is start_at_once:
            fake_programs.NAP, executor.POLL = 0, 0.001
        return fake_programs.study(folder / "journal", words)

    said = tempfile.NamedTemporaryFile()  # noqa: SIM115 - as long as the process is known
    process = fork(run, Path(said.name))
    process.said = said
    if wait:
        process.wait()
    return process


def refused(folder: Path, *arguments: str) -> str:
    """What ``treesyntax study`` says in this process as it refuses its options or its recipe."""
    words = [str(folder / "recipe.yaml"), "--out", str(folder / "out"), *arguments]
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        assert fake_programs.study(folder / "journal", words) == 2
    return said.getvalue()


def journal(folder: Path) -> list[list[str]]:
    file = folder / "journal"
    return [line.split(" ") for line in file.read_text().splitlines()] if file.exists() else []


def commands_in(folder: Path, event: str) -> list[str]:
    """Journal entries of an event, without the process number."""
    return [words[1] for words in journal(folder) if words[0] == event]


def done_steps(folder: Path) -> set[str]:
    markers = folder / "out" / "done"
    return {str(file.relative_to(markers))[:-5] for file in markers.rglob("[!.]*.json")}


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # it ended in between, or this is not Linux
        return not Path("/proc/self").exists()
    return state not in "ZX"


def all_steps(folder: Path) -> set[str]:
    return {step.name for step in make_plan(read_recipe(folder / "recipe.yaml")).steps}


def check_complete(folder: Path) -> None:
    assert done_steps(folder) == all_steps(folder)
    found = read_results(folder / "out" / "runs.jsonl")
    recipe = read_recipe(folder / "recipe.yaml")
    runs = len(recipe.methods) * len(recipe.seeds)
    assert len(found) == len({item.key for item in found}) == runs * len(recipe.score)
    assert (folder / "out" / "runs.jsonl").read_text().count("\n") == runs
    assert {item.hash for item in found} == {read_identity(folder / "out").hash}
    for run in make_plan(recipe).runs:
        assert (folder / "out" / run.folder / "hypotheses.txt").read_text() == "\nb c\n"


def wait_for_events(folder: Path, count: int, process: Fork) -> None:
    wait_until(lambda: len(journal(folder)) >= count or process.poll() is not None, 120)
