"""Studies over stand-ins for the real programs: execution, failures, options."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.fake_programs import UPDATES
from support.study_helpers import recipe_content, write_recipe
from support.study_runs import all_steps, check_complete, commands_in, refused, study

from treesyntax.errors import OptionError
from treesyntax.study.results.results import read_results
from treesyntax.study.run.folder import held_alone


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recipe and its finished study; tests leave it as it is."""
    folder = tmp_path_factory.mktemp("finished")
    write_recipe(folder)
    process = study(folder)
    (folder / "output").write_text(process.output())
    assert process.returncode == 0
    return folder


def test_a_study_runs_every_step_once(finished: Path):
    check_complete(finished)
    starts = commands_in(finished, "start")
    assert len(starts) == len(set(starts)) == len(all_steps(finished))
    output = (finished / "output").read_text()
    assert "6 runs, 0 done before" in output
    steps = "1 prepare, 2 binarize, 6 train, 6 generate, 6 hypotheses, 6 score, 6 facts, 7 analyses"
    assert f"; 40 of 40 steps left ({steps}); how long is told once a training" in output
    assert "2 of 2" in output
    assert (finished / "out" / "report.html").exists()


def test_a_finished_study_does_nothing_more(finished: Path):
    starts = commands_in(finished, "start")
    before = (finished / "out" / "runs.jsonl").read_bytes()
    again = study(finished)
    assert again.returncode == 0
    assert "6 runs, 6 done before, 2 at once; nothing left to do" in again.output()
    assert commands_in(finished, "start") == starts
    assert (finished / "out" / "runs.jsonl").read_bytes() == before


def test_results_carry_where_they_come_from(finished: Path):
    first = read_results(finished / "out" / "runs.jsonl")[0]
    assert first.tokens_per_second == 100 * (UPDATES + 1) / 2
    assert (first.parameters, first.updates, first.valid_loss) == (1234, UPDATES, 2.5)
    assert {"treesyntax", "torch", "fairseq", "sacrebleu", "python"} == set(first.versions)
    assert first.commands[0].startswith("fairseq-train '{out}/binarized/")
    assert str(finished) not in json.dumps(first.commands)
    assert len(first.data_sha256) == 64
    assert first.device


def test_a_failing_run_stops_no_other(tmp_path: Path):
    methods = recipe_content()["methods"]
    methods["relation_mask"]["train"] = {"broken": True}
    write_recipe(tmp_path, methods=methods, differences={"train.broken": "to see it fail"})
    process = study(tmp_path)
    output = process.output()
    assert process.returncode == 1
    message = "relation_mask-1 failed: exit status 1: training diverged (NaN or infinite gradients)"
    assert message in output
    assert "0 of 2, 2 failed" in output
    found = {item.key for item in read_results(tmp_path / "out" / "runs.jsonl")}
    assert {method for method, _, _ in found} == {"sequence", "stack_pe"}
    assert len(found) == 8
    assert message in (tmp_path / "out" / "report.md").read_text()
    # The failed runs are tried again, the others are not.
    starts = len(commands_in(tmp_path, "start"))
    assert study(tmp_path).returncode == 1
    retried = commands_in(tmp_path, "start")[starts:]
    assert len(retried) == 2
    assert all("relation_mask" in text for text in retried)
    # They stay failed when other rows are done.
    assert study(tmp_path, "--only", "sequence").returncode == 0
    assert message in (tmp_path / "out" / "report.md").read_text()


def test_a_failed_command_is_started_again_as_often_as_asked(tmp_path: Path):
    methods = recipe_content()["methods"]
    methods["relation_mask"]["train"] = {"broken-once": True}
    methods["stack_pe"]["train"] = {"broken": True}
    why = {"train.broken": "to see it fail", "train.broken-once": "to see it fail once"}
    write_recipe(tmp_path, methods=methods, differences=why, seeds=[1])
    process = study(tmp_path, "--retries", "2")
    output = process.output()
    assert process.returncode == 1
    assert output.count("retry  relation_mask-1/train: exit status 1: RuntimeError: no luck") == 1
    assert output.count("retry  stack_pe-1/train: exit status 1") == 2
    assert output.count("FAILED") == 1
    starts = commands_in(tmp_path, "start")
    assert sum("runs/stack_pe-1/checkpoints" in text for text in starts) == 3
    found = {item.method for item in read_results(tmp_path / "out" / "runs.jsonl")}
    assert found == {"sequence", "relation_mask"}


def test_with_only_other_rows_did_not_fail(tmp_path: Path):
    write_recipe(tmp_path, prepare=["no-such-program-here x"])
    output = study(tmp_path, "--only", "stack_pe").output()
    assert "stack_pe-1, stack_pe-2 failed: no-such-program-here cannot be started" in output
    assert "sequence-1" not in output
    again = study(tmp_path).output()
    assert "sequence-1, relation_mask-1, stack_pe-1 and 3 more runs failed" in again


def test_methods_that_differ_without_a_reason_are_refused(tmp_path: Path):
    write_recipe(tmp_path)
    said = refused(tmp_path, "--set", "methods.relation_mask.train.lr=3")
    assert "methods differ in train.lr (optimiser): sequence has 0.001" in said
    assert not (tmp_path / "out").exists()


def test_a_program_that_is_not_there_is_a_failure(tmp_path: Path):
    write_recipe(tmp_path, prepare=["no-such-program-here x"])
    process = study(tmp_path)
    output = process.output()
    assert process.returncode == 1
    assert "no-such-program-here cannot be started (No such file or directory)" in output
    assert output.count("Traceback") == 0
    assert (
        "sequence-1, relation_mask-1, stack_pe-1 and 3 more runs failed: no-such-program" in output
    )
    assert output.count("cannot be started") == 2  # when it happened, and in the report


def test_a_folder_serves_one_process(path: Path, tmp_path: Path):
    with held_alone(tmp_path / "out"):
        process = study(tmp_path)
    assert process.returncode == 2
    output = process.output()
    assert f"is in use by another treesyntax study (process {os.getpid()} on " in output
    assert output.count("\n") == 1
    with held_alone(tmp_path / "out"):
        pass


def test_a_folder_that_cannot_be_made_is_refused(path: Path):
    with pytest.raises(OptionError, match="cannot be written"), held_alone(path / "x"):
        pass


def test_a_dry_run_prints_commands_and_creates_nothing(path: Path, tmp_path: Path):
    process = study(tmp_path, "--dry-run")
    lines = process.output().splitlines()
    assert process.returncode == 0
    assert len(lines) == len(all_steps(tmp_path))
    assert lines[0] == f"treesyntax generate for2lam --out {tmp_path}/out/data/p --size 8"
    assert {file.name for file in tmp_path.iterdir()} == {"recipe.yaml"}


def test_rows_can_be_done_one_after_the_other(path: Path, tmp_path: Path):
    first = study(tmp_path, "--only", "relation_mask")
    assert first.returncode == 0
    assert "2 runs, 0 done before" in first.output()
    runs = tmp_path / "out" / "runs"
    assert {run.name for run in runs.iterdir()} == {"relation_mask-1", "relation_mask-2"}
    planned = study(tmp_path, "--plan").output()
    assert "6 runs, 2 done" in planned
    assert "  relation_mask  2 of 2 runs done\n  stack_pe       0 of 2 runs done" in planned
    assert "runs take" in planned
    assert "the 4 left" in planned
    numbers = json.loads(study(tmp_path, "--plan", "--json").output())
    assert numbers["rows"]["stack_pe"] == {"runs": 2, "done": 0, "about": ""}
    assert numbers["steps_left"]["train"] == 4
    assert numbers["bytes_left"] > 0
    assert numbers["seconds_left"] is not None
    whole = study(tmp_path)
    assert "6 runs, 2 done before" in whole.output()
    assert len([*runs.iterdir()]) == 6
    assert "no row is named 'relation_masks'; did you mean 'relation_mask'?" in refused(
        tmp_path, "--only", "relation_masks"
    )


def test_a_plan_creates_nothing(path: Path, tmp_path: Path):
    lines = study(tmp_path, "--plan").output().splitlines()
    assert lines[0].startswith("trainings end at a cap")
    assert lines[1].startswith("no control: ")
    assert lines[2] == f"study {tmp_path}/out: 6 runs, 0 done"
    assert lines[-2].endswith(
        "how long is told once a training runs; a first one: --set seeds=[1] --only sequence"
    )
    assert "what a run takes is told once one is done" in lines[-1]
    numbers = json.loads(study(tmp_path, "--plan", "--json").output())
    assert numbers["seconds_left"] is numbers["bytes_left"] is None
    assert sum(row["runs"] for row in numbers["rows"].values()) == 6
    assert {file.name for file in tmp_path.iterdir()} == {"recipe.yaml"}
    assert "--json goes with --plan" in refused(tmp_path, "--json")


@pytest.mark.parametrize("option", [("--jobs", "0"), ("--threads", "0"), ("--retries", "-1")])
def test_numbers_are_checked(path: Path, tmp_path: Path, option: tuple):
    assert f"must be {int(option[1] == '0')} or more" in refused(tmp_path, *option)
    assert not (tmp_path / "out").exists()


def test_an_answer_with_something_else_beside_it_fails_the_step_that_printed_it(tmp_path: Path):
    write_recipe(tmp_path, seeds=[1])
    run = tmp_path / "out/runs/stack_pe-1"
    (tmp_path / "chatty").touch()
    process = study(tmp_path)
    assert process.returncode == 1
    assert "FAILED stack_pe-1/score: printed more than its answer in JSON" in process.output()
    assert (run / "scores.json.part").read_text().startswith("careful")
    assert not (run / "scores.json").exists()
    (tmp_path / "chatty").unlink()
    assert study(tmp_path).returncode == 0
    assert (run / "scores.json").exists()
