"""Execution, resume, locking and failures, over stand-ins for the real programs."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_programs import THIS, UPDATES, programs
from study_helpers import recipe_content, write_recipe

from treesyntax.cluster import Cluster, Job
from treesyntax.errors import InputError, OptionError
from treesyntax.study.devices import Devices, read_slots
from treesyntax.study.failures import Failure, failure_of, read_failures
from treesyntax.study.identity import read_identity
from treesyntax.study.lock import locked
from treesyntax.study.plan import Plan, make_plan
from treesyntax.study.process import ending, resolve
from treesyntax.study.recipe import read_recipe
from treesyntax.study.results import read_results
from treesyntax.study.run import Executor
from treesyntax.study.settings import Settings

ROOT = Path(__file__).parents[1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_recipe(tmp_path)


# Execution


def study(folder: Path, *arguments: str, wait: bool = True) -> subprocess.Popen:
    """``treesyntax study`` over the stand-ins, in a process of its own."""
    words = [sys.executable, THIS, "study", str(folder / "journal"), str(folder / "recipe.yaml")]
    words += ["--out", str(folder / "out"), *arguments]
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        # Shells have background jobs ignore interrupts, and that would be inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    if wait:
        process.wait(timeout=60)
    return process


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
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z")


def all_steps(folder: Path) -> set[str]:
    return {step.name for step in make_plan(read_recipe(folder / "recipe.yaml")).steps}


def check_complete(folder: Path) -> None:
    assert done_steps(folder) == all_steps(folder)
    found = read_results(folder / "out" / "results.jsonl")
    recipe = read_recipe(folder / "recipe.yaml")
    size = len(recipe.methods) * len(recipe.seeds) * len(recipe.score)
    assert len(found) == len({item.key for item in found}) == size
    assert (folder / "out" / "results.jsonl").read_text().count("\n") == size
    assert {item.hash for item in found} == {read_identity(folder / "out").hash}
    for run in ("sequence-1", "stack_pe-1"):
        assert (folder / "out" / "runs" / run / "hypotheses.txt").read_text() == "\nb c\n"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recipe and its finished study; tests leave it as it is."""
    folder = tmp_path_factory.mktemp("finished")
    write_recipe(folder)
    process = study(folder)
    (folder / "output").write_text(process.stdout.read())
    assert process.returncode == 0
    return folder


def test_a_study_runs_every_step_once(finished: Path):
    check_complete(finished)
    starts = commands_in(finished, "start")
    assert len(starts) == len(set(starts)) == len(all_steps(finished))
    output = (finished / "output").read_text()
    assert "6 runs, 0 done before" in output
    assert "2 of 2" in output
    assert (finished / "out" / "report.html").exists()


def test_a_finished_study_does_nothing_more(finished: Path):
    starts = commands_in(finished, "start")
    before = (finished / "out" / "results.jsonl").read_bytes()
    again = study(finished)
    assert again.returncode == 0
    assert "6 runs, 6 done before" in again.stdout.read()
    assert commands_in(finished, "start") == starts
    assert (finished / "out" / "results.jsonl").read_bytes() == before


def test_results_carry_where_they_come_from(finished: Path):
    first = read_results(finished / "out" / "results.jsonl")[0]
    assert first.tokens_per_second == 100 * (UPDATES + 1) / 2
    assert (first.parameters, first.updates, first.valid_loss) == (1234, UPDATES, 2.5)
    assert {"treesyntax", "torch", "fairseq", "sacrebleu", "python"} == set(first.versions)
    assert first.commands[0].startswith("fairseq-train '{out}/binarized/")
    assert str(finished) not in json.dumps(first.commands)
    assert len(first.data_sha256) == 64
    assert first.device


def test_a_changed_recipe_is_refused_in_the_same_folder(finished: Path):
    starts = commands_in(finished, "start")
    changed = study(finished, "--set", "train.lr=0.1")
    assert changed.returncode == 2
    assert "choose another --out" in changed.stdout.read()
    assert commands_in(finished, "start") == starts


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="children are tied on Linux only")
def test_kill_9_anywhere_loses_nothing_and_repeats_nothing(tmp_path: Path):
    write_recipe(tmp_path, seeds=[1])
    choose = random.Random(7)
    for kill in range(8):
        process = study(tmp_path, "--jobs", "2", wait=False)
        wait_for_events(tmp_path, len(journal(tmp_path)) + choose.randint(1, 9), process)
        time.sleep(choose.uniform(0, 0.05))
        process.kill()
        process.wait()
        process.stdout.close()
        time.sleep(0.05)
        running = [words for words in journal(tmp_path) if alive(int(words[-1]))]
        assert not running, "children outlive a killed study"
        noted = [len(commands_in(tmp_path, "start")), sorted(done_steps(tmp_path))]
        (tmp_path / f"kill-{kill}").write_text(json.dumps(noted))
    last = study(tmp_path)
    assert last.returncode == 0, last.stdout.read()
    check_complete(tmp_path)
    check_no_repeats(tmp_path)


def wait_for_events(folder: Path, count: int, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 30
    while len(journal(folder)) < count and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)


def check_no_repeats(folder: Path) -> None:
    starts = commands_in(folder, "start")
    plan = make_plan(read_recipe(folder / "recipe.yaml"))
    replace = {"{out}": str(folder / "out"), "{plugins}": str(ROOT / "fairseq_plugins")}
    label = {
        step.name: " ".join(resolve(step.command, {}, replace)).replace(" ", "\x1f")
        for step in plan.steps
    }
    assert set(label.values()) == set(starts)
    for file in folder.glob("kill-*"):  # a step that was noted as done is never started again
        count, done = json.loads(file.read_text())
        assert not {label[name] for name in done} & set(starts[count:])
    # Training goes on from its last checkpoint: an update is made anew at most once for each kill.
    kills = len(list(folder.glob("kill-*")))
    updates = [tuple(words[1:3]) for words in journal(folder) if words[0] == "update"]
    assert len(set(updates)) == 3 * UPDATES
    assert len(updates) <= 3 * UPDATES + 2 * kills


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_children_and_the_study_goes_on_later(
    tmp_path: Path, number: signal.Signals
):
    write_recipe(tmp_path, seeds=[1])
    process = study(tmp_path, wait=False)
    wait_for_events(tmp_path, 9, process)
    process.send_signal(number)
    assert process.wait(timeout=20) == 130
    process.stdout.close()
    assert not [words for words in journal(tmp_path) if alive(int(words[-1]))]
    assert study(tmp_path).returncode == 0
    check_complete(tmp_path)


def test_a_failing_run_stops_no_other(tmp_path: Path):
    methods = recipe_content()["methods"]
    methods["relation_mask"]["train"] = {"broken": True}
    write_recipe(tmp_path, methods=methods, differences={"train.broken": "to see it fail"})
    process = study(tmp_path)
    output = process.stdout.read()
    assert process.returncode == 1
    message = "relation_mask-1 failed: exit status 1: RuntimeError: the loss exploded"
    assert message in output
    assert "0 of 2, 2 failed" in output
    found = {item.key for item in read_results(tmp_path / "out" / "results.jsonl")}
    assert {method for method, _, _ in found} == {"sequence", "stack_pe"}
    assert len(found) == 8
    assert message in (tmp_path / "out" / "report.md").read_text()
    # The failed runs are tried again, the others are not.
    starts = len(commands_in(tmp_path, "start"))
    assert study(tmp_path).returncode == 1
    retried = commands_in(tmp_path, "start")[starts:]
    assert len(retried) == 2
    assert all("relation_mask" in text for text in retried)


def test_a_failed_command_is_started_again_as_often_as_asked(tmp_path: Path):
    methods = recipe_content()["methods"]
    methods["relation_mask"]["train"] = {"broken-once": True}
    methods["stack_pe"]["train"] = {"broken": True}
    why = {"train.broken": "to see it fail", "train.broken-once": "to see it fail once"}
    write_recipe(tmp_path, methods=methods, differences=why, seeds=[1])
    process = study(tmp_path, "--retries", "2")
    output = process.stdout.read()
    assert process.returncode == 1
    assert output.count("retry  relation_mask-1/train: exit status 1: RuntimeError: no luck") == 1
    assert output.count("retry  stack_pe-1/train: exit status 1") == 2
    assert output.count("FAILED") == 1
    starts = commands_in(tmp_path, "start")
    assert sum("runs/stack_pe-1/checkpoints" in text for text in starts) == 3
    found = {item.method for item in read_results(tmp_path / "out" / "results.jsonl")}
    assert found == {"sequence", "relation_mask"}


def test_methods_that_differ_without_a_reason_are_refused(tmp_path: Path):
    methods = recipe_content()["methods"]
    methods["relation_mask"]["train"] = {"lr": 3}
    write_recipe(tmp_path, methods=methods)
    process = study(tmp_path)
    assert process.returncode == 2
    assert "methods differ in train.lr (optimiser): sequence has 0.001" in process.stdout.read()
    assert not (tmp_path / "out").exists()


# GPUs


def gpus_seen(folder: Path) -> dict[str, set[str]]:
    """CUDA_VISIBLE_DEVICES of each stand-in, by program."""
    seen: dict[str, set[str]] = {}
    for words in journal(folder):
        if words[0] == "gpus":
            seen.setdefault(words[1], set()).add(words[2])
    return seen


def test_commands_share_out_the_gpus(tmp_path: Path):
    write_recipe(tmp_path, seeds=[1])
    process = study(tmp_path, "--gpus", "4,5", "6,7")
    assert process.returncode == 0
    assert "2 at once" in process.stdout.read()
    seen = gpus_seen(tmp_path)
    assert seen["fairseq-train"] == {"4,5", "6,7"}
    assert seen["fairseq-generate"] <= {"4", "6"}
    assert "treesyntax" not in seen


def test_a_gpu_goes_to_whom_has_fewest_users():
    devices = Devices(["0", "1"])
    assert [devices.take("fairseq-train") for _ in range(3)] == ["0", "1", "0"]
    devices.give("1")
    assert devices.take("fairseq-generate") == "1"
    assert devices.take("python") == ""
    assert Devices([]).take("fairseq-train") == ""
    assert devices.environment("fairseq-train", "") == {}


def test_gpus_are_read():
    assert read_slots(None, {}) == ()
    assert read_slots(None, {"CUDA_VISIBLE_DEVICES": "3"}) == ()
    assert read_slots(None, {"CUDA_VISIBLE_DEVICES": "3,1"}) == ("3", "1")
    assert read_slots(["0", "1"], {"CUDA_VISIBLE_DEVICES": "3,1"}) == ("0", "1")
    for gpus in (["0", "0"], ["0,1", "1,2"], ["0,"]):
        with pytest.raises(OptionError, match=f"--gpus {' '.join(gpus)}: name each GPU once"):
            read_slots(gpus, {})
    with pytest.raises(OptionError, match="give each run as many GPUs, since batches grow"):
        read_slots(["0,1", "2"], {})


def test_a_program_that_is_not_there_is_a_failure(tmp_path: Path):
    write_recipe(tmp_path, prepare=["no-such-program-here x"])
    process = study(tmp_path)
    output = process.stdout.read()
    assert process.returncode == 1
    assert "no-such-program-here cannot be started (No such file or directory)" in output
    assert output.count("Traceback") == 0
    assert "sequence-1 failed" in output


class Silent:
    def started(self, step: object) -> None: ...
    def finished(self, step: object, seconds: float) -> None: ...
    def retried(self, step: object, failure: Failure) -> None: ...
    def failed(self, step: object, failure: Failure) -> None: ...
    def tick(self, running: object) -> None: ...


def execute(folder: Path, plan: Plan, **changes: tuple[str, ...]) -> Executor:
    known = {**programs(folder / "journal"), **changes}
    executor = Executor(plan, folder / "out", Settings(4, 1, "plugins", known), lambda step: None)
    executor.execute(Silent())
    return executor


def test_steps_without_their_outputs_and_outputs_without_marker_are_done_again(
    path: Path, tmp_path: Path
):
    plan = make_plan(read_recipe(path, ["seeds=[1]"]))
    execute(tmp_path, plan)
    starts = len(commands_in(tmp_path, "start"))
    (tmp_path / "out" / "runs" / "sequence-1" / "scores.json").unlink()
    (tmp_path / "out" / "done" / "stack_pe-1" / "facts.json").write_text("{")
    executor = execute(tmp_path, plan)
    assert not executor.failures
    again = commands_in(tmp_path, "start")[starts:]
    assert sorted(text.split("\x1f")[1] for text in again) == ["-m", "score"]


def test_a_command_that_leaves_no_output_fails(path: Path, tmp_path: Path):
    plan = make_plan(read_recipe(path, ["seeds=[1]"]))
    executor = execute(tmp_path, plan, **{"fairseq-train": ("true",)})
    assert len(executor.failures) == 3
    assert all("ended well but left no" in why.message for why in executor.failures.values())
    assert failure_of("sequence-1/score", plan, executor.failures) is not None
    assert failure_of("binarize/sequence", plan, executor.failures) is None
    assert read_failures(tmp_path / "out") == executor.failures


def test_a_killed_child_is_named(path: Path, tmp_path: Path):
    plan = make_plan(read_recipe(path, ["seeds=[1]"]))
    killer = (sys.executable, "-c", "import os; print('x', flush=True); os.kill(os.getpid(), 9)")
    executor = execute(tmp_path, plan, **{"fairseq-train": killer})
    assert executor.failures["sequence-1/train"].message == "killed by SIGKILL (out of memory?): x"
    assert ending(3) == "exit status 3"


def test_a_training_that_ended_unnoticed_is_not_run_again(path: Path, tmp_path: Path):
    plan = make_plan(read_recipe(path, ["seeds=[1]"]))
    execute(tmp_path, plan)
    for marker in (tmp_path / "out" / "done").glob("*/train.json"):
        marker.unlink()
    starts = len(commands_in(tmp_path, "start"))
    execute(tmp_path, plan)
    assert commands_in(tmp_path, "start")[starts:] == []


def test_damaged_failures_are_reported(tmp_path: Path):
    (tmp_path / "failures.json").write_text("{")
    with pytest.raises(InputError, match="is damaged; remove it"):
        read_failures(tmp_path)


# The command


def test_a_folder_serves_one_process(path: Path, tmp_path: Path):
    with locked(tmp_path / "out"):
        process = study(tmp_path)
    assert process.returncode == 2
    output = process.stdout.read()
    assert f"is in use by another treesyntax study (process {os.getpid()})" in output
    assert output.count("\n") == 1
    with locked(tmp_path / "out"):
        pass


def test_a_folder_that_cannot_be_made_is_refused(path: Path):
    with pytest.raises(OptionError, match="cannot be written"), locked(path / "x"):
        pass


def test_a_dry_run_prints_commands_and_creates_nothing(path: Path, tmp_path: Path):
    process = study(tmp_path, "--dry-run")
    lines = process.stdout.read().splitlines()
    assert process.returncode == 0
    assert len(lines) == len(all_steps(tmp_path))
    assert lines[0] == f"treesyntax generate for2lam --out {tmp_path}/out/data/p --size 8"
    assert {file.name for file in tmp_path.iterdir()} == {"recipe.yaml"}


def test_retries_are_checked(path: Path, tmp_path: Path):
    process = study(tmp_path, "--retries", "-1")
    assert process.returncode == 2
    assert "--retries must be 0 or more" in process.stdout.read()


@pytest.mark.parametrize("option", [("--jobs", "0"), ("--threads", "0")])
def test_numbers_of_jobs_and_threads_are_checked(path: Path, tmp_path: Path, option: tuple):
    process = study(tmp_path, *option)
    assert process.returncode == 2
    assert "--jobs and --threads must be 1 or more" in process.stdout.read()
    assert not (tmp_path / "out").exists()


# Clusters


def test_a_study_on_a_cluster(tmp_path: Path):
    pytest.importorskip("submitit")
    write_recipe(tmp_path, seeds=[1])
    process = study(tmp_path, "--cluster", "local", "--cluster-set", "timeout_min=5")
    output = process.stdout.read()
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
    output = process.stdout.read()
    assert process.returncode == 1
    assert "relation_mask-1 failed: exit status 1: RuntimeError: the loss exploded" in output
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
    process = study(tmp_path, *options)
    output = process.stdout.read()
    assert process.returncode == 2, output
    assert message in output
    assert output.count("\n") == 1
