"""Studies on a cluster, over submitit's local executor and stand-ins for its jobs."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from socket import gethostname
from types import SimpleNamespace

import pytest
from study.run import growing_studies
from support import wait_until
from support.forked_programs import Fork, fork
from support.study_helpers import recipe_content, two_methods, write_recipe
from support.study_runs import alive, check_complete, refused, start_forked, study

from treesyntax.files import write_json
from treesyntax.jobs import node
from treesyntax.jobs.cluster import Cluster, Job
from treesyntax.jobs.node import Order, carry_out, result_of
from treesyntax.jobs.queues import GONE, Entry, SlurmQueue
from treesyntax.made.lock import locked
from treesyntax.study.results.results import read_results
from treesyntax.study.run.logs import read_log


def test_a_study_on_a_cluster(tmp_path: Path):
    pytest.importorskip("submitit")
    write_recipe(tmp_path, seeds=[1], methods=two_methods())
    process = study(
        tmp_path, "--cluster", "local", "--cluster-set", "timeout_min=5", start=start_forked
    )
    output = process.output()
    assert process.returncode == 0, output
    check_complete(tmp_path)
    for method in two_methods():
        assert f"start  {method}-1/train" in output
        for kind in ("train", "generate", "score"):
            log = (tmp_path / f"out/logs/{method}-1/{kind}.log").read_text()
            assert ("\n# job " in log) == (kind != "score")
    assert "done training" in (tmp_path / "out/logs/sequence-1/train.log").read_text()
    for one in read_results(tmp_path / "out/runs.jsonl"):
        assert one.node == gethostname()
        assert one.job
        assert one.peak_memory
        assert one.queue_seconds is not None


def test_a_job_that_fails_is_a_failure_of_its_run_only(tmp_path: Path):
    pytest.importorskip("submitit")
    methods = {name: recipe_content()["methods"][name] for name in ("sequence", "relation_mask")}
    methods["relation_mask"]["train"] = {"broken": True}
    why = {"train.broken": "to see it fail"}
    write_recipe(tmp_path, methods=methods, differences=why, seeds=[1])
    process = study(tmp_path, "--cluster", "local", "--retries", "1", start=start_forked)
    output = process.output()
    assert process.returncode == 1
    assert (
        "relation_mask-1 failed: exit status 1: training diverged (NaN or infinite gradients)"
        in output
    )
    assert "retry  relation_mask-1/train" in output
    assert "1 of 1, " not in output


class FakeQueue:
    """Jobs in the states that a test gives them; None is a cluster that does not answer."""

    def __init__(self) -> None:
        self.states: dict[str, Entry | None] = {}
        self.cancelled: list[str] = []
        self.count = 0

    def entry(self, job: str, since: float) -> Entry | None:
        return self.states.get(job, GONE)

    def cancel(self, jobs: Iterable[str]) -> None:
        for job in jobs:
            self.cancelled.append(job)
            self.states[job] = Entry("CANCELLED")


class FakeExecutor:
    """Submits nothing; ids are 1, 2, … and of arrays 3_0, 3_1, …"""

    def __init__(self, queue: FakeQueue) -> None:
        self.queue, self.names = queue, []

    def update_parameters(self, name: str) -> None:
        self.names.append(name)

    def _job(self, job_id: str) -> SimpleNamespace:
        self.queue.states[job_id] = Entry("PENDING", "Resources")
        return SimpleNamespace(job_id=job_id)

    def submit(self, *_: object) -> SimpleNamespace:
        self.queue.count += 1
        return self._job(str(self.queue.count))

    def map_array(self, _: object, orders: list[Order]) -> list[SimpleNamespace]:
        self.queue.count += 1
        return [self._job(f"{self.queue.count}_{index}") for index in range(len(orders))]


@pytest.fixture
def queue() -> FakeQueue:
    return FakeQueue()


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, queue: FakeQueue) -> Cluster:
    pytest.importorskip("submitit")
    monkeypatch.setattr("treesyntax.jobs.cluster.POLL", 0)
    monkeypatch.setattr("treesyntax.jobs.cluster.RESULT_WAIT", 0)
    return made(tmp_path, queue)


def made(folder: Path, queue: FakeQueue) -> Cluster:
    """A cluster as a new session has it."""
    cluster = Cluster("local", folder, {})
    cluster.queue, cluster.executor = queue, FakeExecutor(queue)
    return cluster


def order(cluster: Cluster, name: str = "a/train", *words: str) -> Order:
    return Order(cluster.folder, name, words or ("true",), cluster.folder / f"{name}.log", {})


def end(job: Job, status: int) -> None:
    write_json(result_of(job.order.folder, job.id), {"returncode": status, "seconds": 3.0})


def test_a_job_that_outlives_its_study_is_taken_up_again(
    cluster: Cluster, queue: FakeQueue, tmp_path: Path
):
    def start(key: str) -> Job:
        return made(tmp_path, queue).start([(key, order(cluster))])[0]

    first, again = start("k"), start("k")
    assert first.id == again.id == "1"
    assert again.poll() is None
    assert again.waits
    queue.states["1"] = Entry("RUNNING")
    assert (again.poll(), again.waits) == (None, False)
    end(again, 0)
    assert (again.poll(), again.seconds) == (0, 3.0)
    assert start("k").poll() == 0  # it ended while no study looked
    again.forget()
    assert start("k").id == "2"  # the work is wanted once more
    assert start("edited").id == "3"


@pytest.mark.parametrize("state", ["CANCELLED", "NODE_FAIL", "TIMEOUT", "gone"])
def test_a_job_that_leaves_no_result_is_noticed(
    state: str, cluster: Cluster, queue: FakeQueue, tmp_path: Path
):
    (job,) = cluster.start([("k", order(cluster))])
    for other in ("RUNNING", "", "REQUEUED", "PENDING", "COMPLETING"):
        queue.states[job.id] = Entry(other) if other else None
        assert job.poll() is None
    queue.states[job.id] = GONE if state == "gone" else Entry(state)
    (cluster.folder / "1_0_log.err").write_text("Traceback\nslurmstepd: error: the reason\n\n")
    assert job.poll() is None  # its result may be on the way
    queue.states[job.id] = GONE  # clusters forget what has ended
    assert job.poll() == 1
    assert f"job 1 ended without a result: {state.upper()}" in job.reason
    assert ": slurmstepd: error: the reason" in job.reason
    assert ("timeout_min" in job.reason) == (state == "TIMEOUT")
    assert queue.cancelled == ["1"]  # a retry would work beside it, were it to begin once more
    assert made(tmp_path, queue).start([("k", order(cluster))])[0].id == "2"


def test_jobs_of_a_moment_are_an_array(cluster: Cluster):
    orders = [("k", order(cluster, name)) for name in ("a/train", "b/train")]
    assert [job.id for job in cluster.start(orders)] == ["1_0", "1_1"]
    assert [job.id for job in cluster.start([*orders, ("k", order(cluster, "c/train"))])] == [
        "1_0", "1_1", "2",
    ]  # fmt: skip
    assert cluster.executor.names == ["a/train+1", "c/train"]


def test_jobs_that_a_later_study_does_not_want_are_ended_first(
    cluster: Cluster, queue: FakeQueue, tmp_path: Path
):
    names = ("a/train", "b/train", "c/train", "d/train")
    jobs = cluster.start([("k", order(cluster, name)) for name in names])
    cluster.stop(jobs[:1])
    assert queue.cancelled == ["1_0"]
    queue.states["1_0"] = Entry("RUNNING")  # it was requeued
    later = made(tmp_path, queue)
    keys = {"a/train": "k", "b/train": "edited", "d/train": "k"}
    assert list(later.end_others(keys)) == ["1_0", "1_1", "1_2"]
    assert queue.cancelled == ["1_0", "1_0", "1_1", "1_2"]
    found = [later.is_at_work("k", name) for name in names]
    assert found == [False, False, False, True]


def test_a_reason_of_sbatch_is_its_last_line(cluster: Cluster, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise RuntimeError("sbatch: error: invalid partition: cpu\nsbatch: error: Batch job failed")

    monkeypatch.setattr(cluster.executor, "submit", refuse)
    with pytest.raises(OSError, match="Batch job failed") as caught:
        cluster.start([("k", order(cluster))])
    assert caught.value.strerror == "sbatch: error: Batch job failed"


@pytest.mark.parametrize("in_job", [True, False])
def test_jobs_inherit_nothing_of_the_job_that_submits_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_job: bool
):
    """Their srun would take it for options; what the user set stays, and finds the cluster."""
    pytest.importorskip("submitit")
    for name, does in (("srun", ""), ("sbatch", "env > $0.env; echo Submitted batch job 5")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    of_user = {"SLURM_CONF": "/etc/slurm.conf", "SBATCH_ACCOUNT": "us"}
    of_job = {"SLURM_MEM_PER_CPU": "100", "SLURM_CPU_BIND": "quiet", "SLURM_JOB_ID": "7"}
    before = {**of_user, **(of_job if in_job else {"SLURM_CPU_BIND": "none"})}
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    for name, value in before.items():
        monkeypatch.setenv(name, value)
    cluster = Cluster("slurm", tmp_path, {"timeout_min": 5})
    (job,) = cluster.start([("k", order(cluster))])
    assert job.id == "5"
    lines = (tmp_path / "sbatch.env").read_text().splitlines()
    variables = dict(line.partition("=")[::2] for line in lines)
    inherited = {name: text for name, text in variables.items() if name in before | of_job}
    assert inherited == (of_user if in_job else before)
    assert before.items() <= os.environ.items()


AWAY = (
    "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
    "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
)


def test_what_is_submitted_while_the_controller_is_away_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As running jobs do; a step that the cluster refuses fails."""
    submitit = pytest.importorskip("submitit")
    monkeypatch.setattr("treesyntax.study.run.submission.TRY_EVERY", 0.01)
    tries, real = tmp_path / "tries", submitit.AutoExecutor.submit

    def submit(self: object, *words: object) -> object:
        with tries.open("a") as stream:
            stream.write("x")
        if tries.stat().st_size <= 2 * len(AWAY):
            raise RuntimeError(AWAY[tries.stat().st_size % len(AWAY)])
        return real(self, *words)

    monkeypatch.setattr(submitit.AutoExecutor, "submit", submit)
    methods = {"sequence": recipe_content()["methods"]["sequence"]}
    write_recipe(tmp_path, methods=methods, seeds=[1])
    process = study(
        tmp_path, "--cluster", "local", "--cluster-set", "timeout_min=5", start=start_forked
    )
    assert process.returncode == 0, process.output()
    assert "FAILED" not in process.output()
    assert tries.stat().st_size > 2 * len(AWAY)


def test_slurm_is_asked_once_for_all_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A controller that does not answer says nothing; one that forgot a job says that it is gone."""
    squeue = tmp_path / "squeue"
    squeue.write_text("#!/bin/sh\necho asked >> $0.log; cat $0.says\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    queue, begun = SlurmQueue(), time.monotonic()

    def entry(job: str, since: float = begun) -> Entry | None:
        queue.asked_at = 0.0
        return queue.entry(job, since)

    assert entry("1") is None
    (tmp_path / "squeue.says").write_text("1|PENDING|(Resources)\n3_1|RUNNING|None\n")
    assert entry("1") == ("PENDING", "(Resources)")
    assert entry("2", time.monotonic() + 9) is None  # submitted after the answer
    assert entry("2") == GONE
    (tmp_path / "squeue.says").unlink()
    assert entry("3_1") == ("RUNNING", "None")
    asked = (tmp_path / "squeue.log").read_text()
    queue.entry("1", begun)
    assert (tmp_path / "squeue.log").read_text() == asked


def carried_out(order: Order, job: str, prints: Path) -> Fork:
    def run() -> int:
        os.environ["SUBMITIT_LOCAL_JOB_ID"] = job
        os.environ["SLURM_JOB_ID"] = "7"  # of an interactive job in which a study is tried
        node.TICKET_WAIT, node.LOCK_WAIT = 0, 0.3
        carry_out(order)
        return 0

    return fork(run, prints)


def test_a_node_works_only_if_it_is_called(cluster: Cluster, tmp_path: Path):
    text, out = "echo work >> journal; sleep 0.3; echo done", tmp_path / "said"
    script = f"cd {tmp_path}; {text}"
    asked = order(cluster, "a/train", "sh", "-c", script)
    (job,) = cluster.start([("k", asked)])
    assert carried_out(asked, "other", out).wait() == 0
    assert not (tmp_path / "journal").exists()
    with locked(cluster.folder / "locks/a/train.lock", "held"):
        assert carried_out(asked, job.id, out).wait() != 0
    assert not (tmp_path / "journal").exists()
    assert carried_out(asked, job.id, out).wait() == 0
    assert carried_out(asked, job.id, out).wait() == 0  # a requeue of a job that is done
    assert (tmp_path / "journal").read_text() == "work\n"
    assert job.poll() == 0
    log = asked.log.read_text()
    assert re.match(
        r"# job 1 on \S+ after \d+ s, .+\ndone\n# peak resident memory: \d+ bytes\n$", log
    )
    read = read_log(asked.log)
    assert (list(read.waited), read.node, bool(read.processor)) == (["1"], gethostname(), True)
    assert read.resident > 0


def test_a_node_that_is_told_to_end_leaves_no_result_and_no_orphan(
    cluster: Cluster, tmp_path: Path
):
    script = (
        f"cd {tmp_path}; trap 'echo warned >> told' USR2; echo $$ >> pid; sleep 60 & wait; wait"
    )
    asked = order(cluster, "a/train", "bash", "-c", script)
    (job,) = cluster.start([("k", asked)])
    process = carried_out(asked, job.id, tmp_path / "said")
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), 20)
    os.kill(process.pid, signal.SIGUSR2)
    # The shell ignored it from its start, and so does what it starts.
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait() == node.STOPPED
    assert not alive(int((tmp_path / "pid").read_text()))
    assert not result_of(cluster.folder, job.id).exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cluster-set", "a=1"], "--cluster-set needs --cluster"),
        (["--cluster-all", "--plan"], "--cluster-all needs --cluster"),
        (["--cluster", "local", "--gpus", "0"], "--gpus is for this machine"),
        (["--cluster", "local", "--cluster-set", "a"], "--cluster-set a: write it as name=value"),
        (["--cluster", "local", "--cluster-set", "b=[1"], "write it as name=value"),
        (["--cluster", "local", "--cluster-set", "no_such=1"], "--cluster local: "),
        (["--cluster", "local", "--cluster-set", "nodes=2"], "a job is one process on one node"),
        (["--cluster", "slurm"], "--cluster-set timeout_min=600"),
    ],
)
def test_options_of_clusters_are_checked(tmp_path: Path, options: list[str], message: str):
    pytest.importorskip("submitit")
    write_recipe(tmp_path)
    output = refused(tmp_path, *options)
    assert message in output
    assert message in output.splitlines()[-1]  # after the note that trainings end at a cap


@pytest.mark.usefixtures("quick")
def test_jobs_that_nobody_here_knows_of_are_named(tmp_path: Path, monkeypatch, capsys):
    """A study that was copied, or is on a disk that a cluster shares, trained beside its waiting jobs without a word."""
    monkeypatch.setenv("PATH", str(tmp_path))
    names = ("waits", "ended", "cancelled")
    folder = tmp_path / "out/cluster"
    growing_studies.run(tmp_path, seeds=[1])
    for name in names:
        ticket = {"job": name, "key": "", "cluster": "slurm", "cancelled": name == "cancelled"}
        write_json(node.ticket_of(folder, f"sequence-1/{name}"), ticket)
    write_json(result_of(folder, "ended"), {"returncode": 0})
    capsys.readouterr()
    growing_studies.run(tmp_path, seeds=[1])
    said = " ".join(capsys.readouterr().out.split())
    assert "squeue does not say here whether jobs of this study are at work: waits; end" in said


def test_slurm_that_is_not_there_leaves_no_folder(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    write_recipe(tmp_path)
    output = refused(tmp_path, "--cluster", "slurm", "--cluster-set", "timeout_min=60")
    assert "run it on the login node of a Slurm cluster, or try --cluster local" in output
    assert not (tmp_path / "out").exists()
