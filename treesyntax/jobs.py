"""Work beside this process: jobs of a cluster, worker processes, and how many cores there are.

Commands run as jobs of a cluster through submitit. The nodes must see the folder of the study or
parse. Interrupting the study or parse cancels its jobs. If it is killed, the jobs go on, and the next
call finds them instead of starting them twice.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from treesyntax.errors import InputError, OptionError
from treesyntax.files import read_json, write_json

KINDS = ("slurm", "local")
FOLDER = "cluster"
POLL = 1.0
"""Seconds between two looks at a job, which may lie on a slow shared disk."""
LOST = 1


def add_arguments(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare ``--cluster`` and ``--cluster-set``.

    Args:
        parser: of the command.
        what: what is submitted, for the help.
    """
    parser.add_argument(
        "--cluster",
        choices=KINDS,
        help=f"submit {what} as jobs, by submitit; local tries it on this machine",
    )
    parser.add_argument(
        "--cluster-set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="setting of submitit, such as slurm_partition=gpu, gpus_per_node=1, timeout_min=600",
    )


class Job:
    """A submitted job, with the methods of a process that a study uses.

    Attributes:
        returncode: that of the command; `LOST` if the job ended without one; None while it runs.
    """

    def __init__(self, job: Any, log: Path) -> None:
        self.job, self.log = job, log
        self.returncode: int | None = None
        self.next_look = 0.0

    def poll(self) -> int | None:
        """The return code; None while the job runs."""
        if self.returncode is None and time.monotonic() >= self.next_look:
            self.next_look = time.monotonic() + POLL
            if self.job.done():
                self.returncode = self._outcome()
        return self.returncode

    def _outcome(self) -> int:
        try:
            return int(self.job.result())
        except Exception as error:  # whatever a node, a time limit or a full disk may raise
            with self.log.open("a", encoding="utf-8") as stream:
                stream.write(f"job {self.job.job_id} was lost: {str(error).splitlines()[0]}\n")
            return LOST

    def stop(self) -> None:
        """Cancel the job."""
        self.job.cancel(check=False)


class Cluster:
    """Submits commands as jobs.

    Args:
        kind: one of `KINDS`; "local" runs jobs on this machine, to try things out.
        folder: of the study or parse.
        parameters: of submitit's executor, such as ``slurm_partition`` or ``timeout_min``.

    Raises:
        OptionError: if submitit is not installed, or does not take the parameters.
    """

    def __init__(self, kind: str, folder: Path, parameters: Mapping[str, Any]) -> None:
        try:
            import submitit
        except ImportError:
            raise OptionError(
                "--cluster needs submitit: pip install 'treesyntax[cluster]'"
            ) from None
        self.folder = folder.resolve() / FOLDER
        try:
            # -P: a job must not import files of the working folder in place of modules.
            python = {f"{kind}_python": f"{shlex.quote(sys.executable)} -P"}
            self.executor = submitit.AutoExecutor(folder=self.folder, cluster=kind, **python)
            self.executor.update_parameters(**parameters)
        except (RuntimeError, NameError, ValueError, TypeError, OSError) as error:
            raise OptionError(f"--cluster {kind}: {str(error).splitlines()[0]}") from None

    def start(
        self, name: str, key: str, words: Sequence[str], log: Path, environment: Mapping[str, str]
    ) -> Job:
        """Submit a command, or find it submitted by a call that was killed.

        Args:
            name: of the job, unique in the folder.
            key: identifies the command; a job of the same name with another key is not reused.
            words: the command.
            log: file to append its output to.
            environment: variables to set beside those of the node.

        Raises:
            OSError: if it cannot be submitted.
        """
        ticket = self.folder / "tickets" / f"{name}.json"
        job = self._submitted(ticket, key)
        if job is None:
            try:
                job = self.executor.submit(
                    run_command, list(words), str(log.resolve()), dict(environment)
                )
            except Exception as error:  # submitit has errors of its own for sbatch
                raise OSError(0, str(error).splitlines()[0]) from None
            write_json(ticket, {"job": job.job_id, "key": key})
        return Job(job, log)

    def _submitted(self, ticket: Path, key: str) -> Any:
        """The job of an earlier call, if it still waits or runs."""
        try:
            content = read_json(ticket)
            if content["key"] != key:
                return None
            job = self.executor.job_class(self.folder, content["job"])
        except (InputError, KeyError, TypeError):
            return None
        return None if job.done(force_check=True) else job


def run_command(words: list[str], log: str, environment: dict[str, str]) -> int:
    """Run a command as a job: append its output to a log and return its exit status."""
    with open(log, "ab") as stream:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            env={**os.environ, **environment},
            check=False,
        )
    return done.returncode


def read_parameters(args: argparse.Namespace) -> dict[str, Any]:
    """The settings of ``--cluster-set``, such as ``timeout_min=60``, by name; values are YAML."""
    import yaml

    if args.cluster_set and not args.cluster:
        raise OptionError("--cluster-set needs --cluster")
    parameters = {}
    for setting in args.cluster_set:
        name, equals, text = setting.partition("=")
        try:
            parameters[name] = yaml.safe_load(text)
        except yaml.YAMLError:
            equals = ""
        if not name or not equals:
            raise OptionError(f"--cluster-set {setting}: write it as name=value")
    return parameters


def load_per_core(threads: int) -> float:
    """Busy threads for each core: those of this command, or the load of the last minutes if higher."""
    return round(max(threads, os.getloadavg()[1]) / cores(), 2)


def cores() -> int:
    """How many processor cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def begin_worker() -> None:
    """Prepare a worker process: it ignores interrupts, and ends when the main process is gone.

    The main process handles interrupts and ends its workers. The workers of a process that was
    killed would otherwise wait for work for ever.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
