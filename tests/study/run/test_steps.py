"""Which steps of a study are done again, and how the failure of one is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.fake_programs import programs
from support.study_helpers import write_recipe
from support.study_runs import commands_in

from treesyntax.errors import InputError, OptionError
from treesyntax.jobs.processes import ending
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.run.executor import ExecutionOptions, Executor
from treesyntax.study.run.failures import Failure, failure_of, read_failures
from treesyntax.study.run.ledger import Ledger
from treesyntax.study.run.plan import Plan, make_plan

pytestmark = pytest.mark.usefixtures("quick")


class Silent:
    def started(self, step: object) -> None: ...
    def finished(self, step: object, seconds: float) -> None: ...
    def retried(self, step: object, failure: Failure) -> None: ...
    def failed(self, step: object, failure: Failure) -> None: ...
    def tick(self, running: object, queued: object) -> None: ...


def execute(folder: Path, plan: Plan, **changes: tuple[str, ...]) -> Executor:
    known = {**programs(folder / "journal"), **changes}
    ledger = Ledger(plan, folder / "out", {})
    executor = Executor(
        ledger, ExecutionOptions(4, 1, "plugins", known), lambda step: None, ledger.plan
    )
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
    # The score and the facts, and the figures of the whole study, which read both.
    assert sorted(text.split("\x1f")[1] for text in again) == ["analyse", "analyse", "score"]


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


def test_a_training_is_tracked_in_a_folder_and_by_a_name_of_its_own(path: Path, tmp_path: Path):
    plan = make_plan(read_recipe(path, ["seeds=[1]", "train.tensorboard-logdir='{run}/events'"]))
    said = "import os, sys; sys.exit(os.environ['WANDB_NAME'] + ' ' + ' '.join(sys.argv[1:]))"
    executor = execute(tmp_path, plan, **{"fairseq-train": (sys.executable, "-c", said)})
    for run in plan.runs:
        message = executor.failures[run.step("train")].message
        assert f": {run.name} " in message
        assert f"--tensorboard-logdir {tmp_path}/out/runs/{run.name}/events " in message


@pytest.mark.parametrize("flag", ["tensorboard-logdir", "log_file"])
def test_what_is_written_of_all_runs_in_a_single_place_is_refused(flag: str, tmp_path: Path):
    """TensorBoard takes what lies in a folder for one run."""
    recipe = read_recipe(write_recipe(tmp_path), [f"train.{flag}=logs/events"])
    with pytest.raises(
        OptionError, match=f"train.{flag} is logs/events, where .* write {{run}}/events"
    ):
        make_plan(recipe)


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
    with pytest.raises(InputError, match=r"is damaged \(.*\); remove it"):
        read_failures(tmp_path)


def test_copied_names_come_back_in_the_hypotheses(path: Path):
    plain, numbered = (
        make_plan(read_recipe(path, ["seeds=[1]", *changes]))
        for changes in ([], ["binarize.copy-unknown=5"])
    )
    commands = [
        next(step.command for step in plan.steps if step.name == "sequence-1/hypotheses")
        for plan in (plain, numbered)
    ]
    assert "--unknown" not in commands[0]
    file = commands[1][commands[1].index("--unknown") + 1]
    binarized = next(step for step in numbered.steps if step.name == "binarize/sequence")
    assert file.startswith(f"{{out}}/{binarized.outputs[0]}/test.")
    assert file.endswith(".unknown")
