"""What a Slurm of the tests started ends with them."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from reliability.cluster.guard import end_all, guard, started_by
from reliability.cluster.slurm import REAL, writers
from support import wait_until
from support.forked_programs import fork

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs Linux")


def start_job(folder: Path) -> int:
    """A job in a session of its own, as slurmstepd starts it."""
    environment = {**os.environ, "SLURM_CONF": f"{folder}/slurm.conf"}
    return subprocess.Popen(["sleep", "99"], start_new_session=True, env=environment).pid


def test_jobs_end_where_the_tests_are_killed(tmp_path: Path):
    def tests() -> int:
        guard(tmp_path)
        start_job(tmp_path)
        (tmp_path / "begun").touch()
        signal.pause()
        return 0

    killed = fork(tests, tmp_path / "log")
    wait_until((tmp_path / "begun").exists, 30)
    wait_until(lambda: len(started_by(tmp_path)) == 1, 30)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    wait_until(lambda: not started_by(tmp_path), 30)


def test_the_processes_of_another_folder_stay(tmp_path: Path):
    mine, other = start_job(tmp_path / "mine"), start_job(tmp_path / "other")
    wait_until(lambda: started_by(tmp_path / "mine") == [mine], 30)
    try:
        end_all(tmp_path / "mine")
        assert started_by(tmp_path / "other") == [other]
    finally:
        end_all(tmp_path / "other")
    os.waitpid(mine, 0)
    os.waitpid(other, 0)


@pytest.mark.parametrize("program", REAL, ids=lambda program: program[-1])
def test_real_trainings_count_as_writers(program: tuple[str, ...], tmp_path: Path):
    sleep = [program[0], "-c", "import time; time.sleep(99)"]
    with subprocess.Popen([*sleep, *program[1:], f"{tmp_path}/out"]) as job:
        wait_until(lambda: writers(tmp_path) == [str(job.pid)], 30)
        job.kill()
    assert not writers(tmp_path)
