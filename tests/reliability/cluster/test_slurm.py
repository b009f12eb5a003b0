"""Studies over stand-ins for the programs, on a real Slurm that the test starts."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path

import pytest
import yaml
from reliability.cluster.slurm import NODE, Slurm, started, why_not, writers
from reliability.figures import SOAK
from support import wait_until
from support.forked_programs import Fork
from support.study_helpers import recipe_content
from support.study_runs import check_complete, commands_in, journal, start_forked, study

from treesyntax.study.results.results import read_results

pytestmark = [
    pytest.mark.skipif(not SOAK, reason="Slurm is started by make soak"),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]
OPTIONS = ("--cluster", "slurm", "--cluster-set", "timeout_min=30")
WAIT = 300
RUNS = ("relation_mask-1", "sequence-1", "stack_pe-1")


@pytest.fixture(scope="module", params=[False, True], ids=["alone", "slurmdbd"])
def slurm(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Slurm]:
    if request.param and (why := why_not(accounting=True)):
        pytest.skip(why)
    with started(tmp_path_factory.mktemp("slurm") / "s", accounting=request.param) as slurm:
        os.environ["SLURM_CONF"] = slurm.environment["SLURM_CONF"]
        yield slurm
        del os.environ["SLURM_CONF"]


@pytest.fixture
def begin(tmp_path: Path, slurm: Slurm) -> Iterator[Callable[..., Fork]]:
    """Starts a study whose trainings wait for the file ``go``, with options; ended after the test."""
    processes = []

    def start(*options: str, wait: bool = False) -> Fork:
        processes.append(study(tmp_path, *OPTIONS, *options, wait=wait, start=start_forked))
        return processes[-1]

    yield start
    for process in processes:
        process.send_signal(signal.SIGTERM)
        process.wait()
    wait_until(lambda: not slurm.jobs(), WAIT)


def recipe(folder: Path, *methods: str, **train: object) -> None:
    content = recipe_content()
    content["methods"] = {name: content["methods"][name] for name in methods or ("sequence",)}
    content["train"] |= train
    content["seeds"] = [1]
    (folder / "recipe.yaml").write_text(yaml.safe_dump(content, sort_keys=False))


def trainings(folder: Path) -> list[str]:
    return [words for words in commands_in(folder, "start") if words.startswith("fairseq-train")]


def running(slurm: Slurm, folder: Path, count: int = 1) -> list[str]:
    """The ids of so many jobs, once their trainings have begun."""
    wait_until(
        lambda: len(slurm.jobs("RUNNING")) == count and len(trainings(folder)) >= count, WAIT
    )
    return list(slurm.jobs("RUNNING"))


def no_orphan(slurm: Slurm, folder: Path) -> None:
    """No job is left, and no two trainings were ever at work in a folder at the same time."""
    wait_until(lambda: not slurm.jobs(), WAIT)
    wait_until(lambda: not writers(folder), 10)
    for run in RUNS:
        events = [words for words in journal(folder) if words[:2] == ["update", run]]
        turns = [process for process, _ in groupby(events, key=lambda words: words[-1])]
        assert len(turns) == len(set(turns)), "one training came between the updates of another"


def test_a_study_of_arrays(tmp_path: Path, slurm: Slurm, begin: Callable[..., Fork]):
    runs = RUNS[:1] + RUNS[2:]
    recipe(tmp_path, "relation_mask", "stack_pe", hold=True)  # they share their data
    process = begin("--cluster-all")
    jobs = running(slurm, tmp_path, 2)
    assert len({job.partition("_")[0] for job in jobs}) == 1
    wait_until(lambda: sorted(slurm.jobs().values()) == [f"{run}/train" for run in runs], WAIT)
    (tmp_path / "go").touch()
    assert process.wait() == 0, process.output()
    check_complete(tmp_path)
    output = process.output()
    for run in runs:
        assert f"submit {run}/train: job {jobs[0].partition('_')[0]}_" in output
        assert f"done   {run}: exact " in output
        assert "# job " in (tmp_path / f"out/logs/{run}/score.log").read_text()
    found = read_results(tmp_path / "out/runs.jsonl")
    assert {one.job for one in found} == set(jobs)
    assert all(one.node and one.peak_memory and one.queue_seconds is not None for one in found)
    no_orphan(slurm, tmp_path)


def test_kill_9_of_the_study_and_resume(tmp_path: Path, slurm: Slurm, begin: Callable[..., Fork]):
    recipe(tmp_path, "sequence", "stack_pe", hold=True)
    process = begin()
    jobs = running(slurm, tmp_path, 2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert list(slurm.jobs("RUNNING")) == jobs
    local = study(tmp_path)
    assert local.wait() == 2
    assert f"jobs of this study are at work: {jobs[0]}, " in local.output()
    process = begin()
    wait_until(lambda: "submit stack_pe-1/train" in process.output(), WAIT)
    (tmp_path / "go").touch()
    assert process.wait() == 0, process.output()
    assert len(trainings(tmp_path)) == 2
    check_complete(tmp_path)
    no_orphan(slurm, tmp_path)


def test_a_study_killed_and_another_one_wanted(
    tmp_path: Path, slurm: Slurm, begin: Callable[..., Fork]
):
    """The jobs of the former training end before anything writes in their folders."""
    recipe(tmp_path, hold=True)
    process = begin()
    (job,) = running(slurm, tmp_path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    recipe(tmp_path, lr=0.5)
    process = begin(wait=True)
    assert process.returncode == 0, process.output()
    assert f"job {job} of an earlier session is cancelled" in process.output()
    no_orphan(slurm, tmp_path)


@pytest.mark.parametrize("retries", [0, 1])
def test_scancel_of_a_running_job(
    retries: int, tmp_path: Path, slurm: Slurm, begin: Callable[..., Fork]
):
    recipe(tmp_path, hold=True)
    process = begin("--retries", str(retries))
    (job,) = running(slurm, tmp_path)
    slurm.ask("scancel", job)
    if retries:
        wait_until(lambda: len(trainings(tmp_path)) == 2, WAIT)
    (tmp_path / "go").touch()
    assert process.wait() == 1 - retries, process.output()
    assert f"job {job} ended without a result: CANCELLED" in process.output()
    no_orphan(slurm, tmp_path)


@pytest.mark.parametrize("retries", [0, 1])
def test_scancel_of_a_waiting_job(
    retries: int, tmp_path: Path, slurm: Slurm, begin: Callable[..., Fork]
):
    slurm.ask("scontrol", "update", f"nodename={NODE}", "state=drain", "reason=test")
    recipe(tmp_path)
    process = begin("--retries", str(retries))
    wait_until(lambda: len(slurm.jobs("PENDING")) == 1, WAIT)
    (job,) = slurm.jobs()
    assert slurm.jobs() == {job: "sequence-1/train"}
    slurm.ask("scancel", job)
    if retries:
        wait_until(lambda: slurm.jobs("PENDING") and job not in slurm.jobs(), WAIT)
    slurm.resume()
    assert process.wait() == 1 - retries, process.output()
    assert f"job {job} ended without a result: CANCELLED" in process.output()
    assert len(trainings(tmp_path)) == retries
    no_orphan(slurm, tmp_path)


def test_a_requeued_job_is_one_job(tmp_path: Path, slurm: Slurm, begin: Callable[..., Fork]):
    recipe(tmp_path, hold=True)
    process = begin("--retries", "1")
    (job,) = running(slurm, tmp_path)
    (first,) = writers(tmp_path)
    slurm.ask("scontrol", "requeue", job)
    wait_until(lambda: len(trainings(tmp_path)) == 2, WAIT)
    (second,) = writers(tmp_path)
    assert second != first
    assert slurm.jobs() == {job: "sequence-1/train"}
    (tmp_path / "go").touch()
    assert process.wait() == 0, process.output()
    assert "retry" not in process.output()
    no_orphan(slurm, tmp_path)


def test_a_study_that_is_stopped_leaves_no_job(
    tmp_path: Path, slurm: Slurm, begin: Callable[..., Fork]
):
    """Neither one that runs nor one that is requeued; and it goes on."""
    recipe(tmp_path, "sequence", "stack_pe", hold=True)
    process = begin()
    jobs = running(slurm, tmp_path, 2)
    slurm.ask("scontrol", "requeue", jobs[0])
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    no_orphan(slurm, tmp_path)
    (tmp_path / "go").touch()
    process = begin(wait=True)
    assert process.returncode == 0, process.output()
    check_complete(tmp_path)


def test_a_training_that_saves_at_the_warning_goes_on_in_another_job(
    tmp_path: Path, slurm: Slurm, begin: Callable[..., Fork]
):
    """A limit of one minute, of which Slurm warns at once."""
    recipe(tmp_path, hold=True, warned=True)
    process = begin("--cluster-set", "timeout_min=1", "--cluster-set", "slurm_signal_delay_s=50")
    running(slurm, tmp_path)
    wait_until(
        lambda: "again  sequence-1/train: its time was over, saved at" in process.output(), WAIT
    )
    (tmp_path / "go").touch()
    assert process.wait() == 0, process.output()
    no_orphan(slurm, tmp_path)


def test_a_time_limit(tmp_path: Path, slurm: Slurm, begin: Callable[..., Fork]):
    """Slurm ends a job at most a minute after its limit."""
    recipe(tmp_path, hold=True)
    process = begin("--cluster-set", "timeout_min=1")
    (job,) = running(slurm, tmp_path)
    assert process.wait() == 1
    assert f"job {job} ended without a result: TIMEOUT" in process.output(), process.output()
    assert "give it more time with --cluster-set timeout_min=N" in process.output()
    no_orphan(slurm, tmp_path)


def test_a_node_that_goes_down(tmp_path: Path, slurm: Slurm, begin: Callable[..., Fork]):
    """Slurm requeues its job, which waits until the node is back."""
    recipe(tmp_path, hold=True)
    process = begin()
    (job,) = running(slurm, tmp_path)
    slurm.ask("scontrol", "update", f"nodename={NODE}", "state=down", "reason=test")
    wait_until(lambda: list(slurm.jobs("PENDING")) == [job], WAIT)
    wait_until(lambda: not writers(tmp_path), WAIT)
    slurm.resume()
    (tmp_path / "go").touch()
    assert process.wait() == 0, process.output()
    assert len(trainings(tmp_path)) == 2
    no_orphan(slurm, tmp_path)


def test_a_controller_that_is_away_for_a_while(
    tmp_path: Path, slurm: Slurm, begin: Callable[..., Fork]
):
    """Its silence is no end of a job."""
    recipe(tmp_path, hold=True)
    process = begin()
    running(slurm, tmp_path)
    slurm.end("slurmctld")
    with pytest.raises(AssertionError):
        wait_until(lambda: process.poll() is not None, 25)
    slurm.start_controller()
    (tmp_path / "go").touch()
    assert process.wait() == 0, process.output()
    assert len(trainings(tmp_path)) == 1
    no_orphan(slurm, tmp_path)


def test_a_job_that_leaves_no_result(tmp_path: Path, slurm: Slurm, begin: Callable[..., Fork]):
    """What runs the command is killed, as by a node without memory; the command ends with it."""
    recipe(tmp_path, hold=True)
    process = begin()
    (job,) = running(slurm, tmp_path)
    (writer,) = writers(tmp_path)
    os.kill(
        int(Path(f"/proc/{writer}/stat").read_text().rsplit(")", 1)[1].split()[1]), signal.SIGKILL
    )
    assert process.wait() == 1
    assert f"job {job} ended without a result: FAILED (NonZeroExitCode)" in process.output()
    no_orphan(slurm, tmp_path)


def test_a_partition_that_is_not_there(tmp_path: Path, begin: Callable[..., Fork]):
    recipe(tmp_path)
    process = begin("--cluster-set", "slurm_partition=none", wait=True)
    assert process.returncode == 1
    assert (
        "the cluster took no job (sbatch: error: Batch job submission failed: Invalid partition"
        in (process.output())
    )
