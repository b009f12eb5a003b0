"""Studies on a cluster, over submitit's local executor and stand-ins for its jobs."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.study_helpers import recipe_content, write_recipe
from support.study_runs import check_complete, refused, study

from treesyntax.jobs import Cluster, Job


def test_a_study_on_a_cluster(tmp_path: Path):
    pytest.importorskip("submitit")
    write_recipe(tmp_path, seeds=[1])
    process = study(tmp_path, "--cluster", "local", "--cluster-set", "timeout_min=5")
    output = process.output()
    assert process.returncode == 0, output
    check_complete(tmp_path)
    tickets = tmp_path / "out" / "cluster" / "tickets"
    submitted = sorted(str(file.relative_to(tickets)) for file in tickets.rglob("[!.]*.json"))
    assert submitted == sorted(
        f"{method}-1/{kind}.json"
        for method in recipe_content()["methods"]
        for kind in ("train", "generate")
    )
    assert "done training" in (tmp_path / "out/logs/sequence-1/train.log").read_text()


def test_a_job_that_fails_is_a_failure_of_its_run_only(tmp_path: Path):
    pytest.importorskip("submitit")
    methods = {name: recipe_content()["methods"][name] for name in ("sequence", "relation_mask")}
    methods["relation_mask"]["train"] = {"broken": True}
    why = {"train.broken": "to see it fail"}
    write_recipe(tmp_path, methods=methods, differences=why, seeds=[1])
    process = study(tmp_path, "--cluster", "local", "--retries", "1")
    output = process.output()
    assert process.returncode == 1
    assert (
        "relation_mask-1 failed: exit status 1: training diverged (NaN or infinite gradients)"
        in output
    )
    assert "retry  relation_mask-1/train" in output
    assert "1 of 1, " not in output


class FakeJob:
    """A job as submitit has it, whose end is told by a file."""

    def __init__(self, folder: Path, job_id: str) -> None:
        self.folder, self.job_id, self.cancelled = folder, job_id, False

    def done(self, force_check: bool = False) -> bool:
        return (self.folder / f"{self.job_id}.end").exists()

    def result(self) -> int:
        text = (self.folder / f"{self.job_id}.end").read_text()
        if text == "lost":
            raise RuntimeError("node failure\nand more")
        return int(text)

    def cancel(self, check: bool) -> None:
        self.cancelled = True


class FakeExecutor:
    job_class = FakeJob
    submitted = 0

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def submit(self, *_: object) -> FakeJob:
        FakeExecutor.submitted += 1
        return FakeJob(self.folder, str(FakeExecutor.submitted))


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    pytest.importorskip("submitit")
    monkeypatch.setattr(FakeExecutor, "submitted", 0)
    made = Cluster("local", tmp_path, {})
    made.executor = FakeExecutor(made.folder)
    return made


def test_a_job_that_outlives_its_study_is_taken_up_again(cluster: Cluster, tmp_path: Path):
    def start(key: str) -> Job:
        return cluster.start("a/train", key, ["x"], tmp_path / "log", {})

    first, again = start("k"), start("k")
    assert first.job.job_id == again.job.job_id == "1"
    assert again.poll() is None
    (cluster.folder / "1.end").write_text("0")
    again.next_look = 0
    assert again.poll() == 0
    assert start("k").job.job_id == "2"
    assert start("other").job.job_id == "3"
    (cluster.folder / "3.end").write_text("lost")
    lost = Job(FakeJob(cluster.folder, "3"), tmp_path / "log")
    assert lost.poll() == 1
    assert (tmp_path / "log").read_text() == "job 3 was lost: node failure\n"
    lost.stop()
    assert lost.job.cancelled


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--cluster-set", "a=1"], "--cluster-set needs --cluster"),
        (["--cluster", "local", "--gpus", "0"], "--gpus is for this machine"),
        (["--cluster", "local", "--cluster-set", "a"], "--cluster-set a: write it as name=value"),
        (["--cluster", "local", "--cluster-set", "b=[1"], "write it as name=value"),
        (["--cluster", "local", "--cluster-set", "no_such=1"], "--cluster local: "),
    ],
)
def test_options_of_clusters_are_checked(tmp_path: Path, options: list[str], message: str):
    pytest.importorskip("submitit")
    write_recipe(tmp_path)
    output = refused(tmp_path, *options)
    assert message in output
    assert output.count("\n") == 1
