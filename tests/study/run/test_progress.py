"""The progress of a study as the user sees it."""

from __future__ import annotations

import time
from argparse import Namespace
from pathlib import Path

import pytest
from rich.console import Console
from support.study_helpers import plan_of, recipe_content

from treesyntax.jobs.terminal import as_asked
from treesyntax.study.run.failures import Failure
from treesyntax.study.run.progress import (
    Estimate,
    PlainProgress,
    clock,
    outlook,
    state_of,
    summary,
    watch,
)


def test_the_share_of_a_study_that_is_done(tmp_path: Path):
    content = recipe_content()
    plan = plan_of(tmp_path, "train.max-update=100")
    assert content["seeds"] == [1, 2]
    done = {step.name for step in plan.steps if not step.name.endswith("-2/train")}
    done = {name for name in done if "-2/" not in name and "stack_pe-1" not in name}
    estimate = Estimate(plan, tmp_path, done | {"stack_pe-1/train"})
    assert estimate.runs_done == 2
    assert estimate.before == pytest.approx(2.9)
    assert estimate.left([]) is None
    log = tmp_path / "logs" / "sequence-2" / "train.log"
    log.parent.mkdir(parents=True)
    log.write_text(
        't | INFO | train_inner | {"epoch": 1, "update": 0.5, "loss": "2.5", "num_updates": "50"}\n'
    )
    running = [step for step in plan.steps if step.name == "sequence-2/train"]
    assert estimate.work_done(running) == pytest.approx(2.9 + 0.45)
    estimate.begun -= 45
    assert estimate.left(running) == pytest.approx(45 * (6 - 3.35) / 0.45, rel=0.01)
    assert state_of(running[0], estimate) == (
        "sequence-2/train  50%: epoch 0.5, update 50, loss 2.500"
    )
    assert summary(running, estimate).startswith("2 of 6 runs done, 0:45 elapsed, 4:2")
    estimate.seen["sequence-2/train"] = (time.monotonic() - 30, 0.2)
    assert state_of(running[0], estimate).endswith("loss 2.500, 0:50 left"), "30 % took 30 seconds"


def test_the_time_left_of_a_step_is_what_others_of_its_kind_took(tmp_path: Path):
    plan = plan_of(tmp_path)
    first, second = (
        step for step in plan.steps if step.name.startswith("sequence-") and step.kind == "generate"
    )
    estimate = Estimate(
        plan, tmp_path, set(), {"stack_pe-1/generate": 100.0, "stack_pe-1/score": 1.0}
    )
    estimate.note([first])
    assert state_of(first, estimate) == "sequence-1/generate, 1:40 left"
    estimate.seen[first.name] = (time.monotonic() - 70, 0.0)
    assert state_of(first, estimate) == "sequence-1/generate, 0:30 left"
    estimate.end(first, 200.0)
    assert state_of(second, estimate) == "sequence-2/generate, 2:30 left"
    estimate.seen[second.name] = (time.monotonic() - 1000, 0.0)
    assert state_of(second, estimate) == "sequence-2/generate, 0:00 left"
    assert state_of(second, Estimate(plan, tmp_path, set())) == "sequence-2/generate"


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ("", ["start", "done", "FAILED"]),
        ("quiet", ["FAILED"]),
        ("verbose", ["start", "start", "done", "FAILED"]),
    ],
)
def test_what_is_told_as_asked(tmp_path: Path, flag: str, told: list[str]):
    plan = plan_of(tmp_path)
    console = Console(
        width=200, record=True, force_terminal=bool(flag), file=(tmp_path / "out.txt").open("w")
    )
    steps = [
        next(one for one in plan.steps if one.name == f"sequence-1/{kind}")
        for kind in ("train", "score")
    ]
    with (
        as_asked(Namespace(**({flag: True} if flag else {}))),
        watch(Estimate(plan, tmp_path, set()), console) as progress,
    ):
        for step in steps:
            progress.started(step)
        progress.finished(steps[0], 1)
        progress.failed(steps[1], Failure("no memory", "logs/x"))
    lines = console.export_text().splitlines()
    assert [line.split()[1] for line in lines] == told
    assert (
        f"sequence-1/score (log: {tmp_path / steps[1].log})" in "".join(lines) or flag != "verbose"
    )


def test_plain_progress_prints_a_line_an_event(tmp_path: Path):
    plan = plan_of(tmp_path)
    console = Console(width=100, record=True, file=(tmp_path / "out.txt").open("w"))
    progress = PlainProgress(Estimate(plan, tmp_path, set()), console)
    train = next(step for step in plan.steps if step.name == "sequence-1/train")
    progress.started(train)
    progress.failed(train, Failure("[red]", "logs/x"))
    progress.finished(train, 65)
    progress.next_line = 0
    progress.tick([train], {})
    lines = [line.split(" ", 1)[1] for line in console.export_text().splitlines()]
    assert lines[:3] == [
        "start  sequence-1/train",
        "FAILED sequence-1/train: [red] (see logs/x)",
        "done   sequence-1/train (1:05)",
    ]
    assert lines[3].startswith("0 of 6 runs done, 1 failed, 0:00 elapsed")


@pytest.mark.parametrize(("seconds", "text"), [(None, "?"), (5, "0:05"), (3725.4, "1:02:05")])
def test_clock(seconds: float | None, text: str):
    assert clock(seconds) == text


def test_time_in_a_queue_says_nothing_about_the_pace(tmp_path: Path):
    plan = plan_of(tmp_path)
    console = Console(width=200, record=True, file=(tmp_path / "out.txt").open("w"))
    estimate = Estimate(plan, tmp_path, set())
    progress = PlainProgress(estimate, console)
    train = plan.steps[2]
    progress.submitted(train, "12_3")
    progress.next_line = 0
    estimate.begun -= 100
    estimate.noted -= 100
    progress.tick([], {f"{name}-1/train": "Resources" for name in "abcdef"})
    said = console.export_text()
    assert "job 12_3" in said
    assert "a-1/train waits (Resources); " in said
    assert "; 2 more jobs wait" in said
    assert estimate.elapsed - estimate.idle < 5


def test_what_is_left_is_told_with_the_time_that_such_steps_took(tmp_path: Path):
    plan = plan_of(tmp_path)
    done = {step.name for step in plan.steps if not step.name.startswith("stack_pe-2/")}
    took = {name: {"train": 600.0, "generate": 60.0}.get(name.split("/")[-1], 1.0) for name in done}
    left = outlook(plan, done, took, at_once=2)
    assert left == (
        "6 of 40 steps left (1 train, 1 generate, 1 hypotheses, 1 score, 1 facts, 1 analyses), about "
        "5:32 as the steps done so far took"
    )
    assert outlook(plan, {*took} - {"stack_pe-1/train"}, {}, 1).endswith(
        "once a training has begun"
    )


def test_one_fault_of_several_steps_is_told_once(tmp_path: Path):
    plan = plan_of(tmp_path)
    console = Console(width=100, record=True, file=(tmp_path / "out.txt").open("w"))
    progress = PlainProgress(Estimate(plan, tmp_path, set()), console)
    for step in (step for step in plan.steps if step.kind == "binarize"):
        progress.failed(step, Failure("train.tgt:3: is no tree", step.log))
    first, second = (line.split(" ", 1)[1] for line in console.export_text().splitlines())
    assert first.startswith("FAILED binarize/sequence: train.tgt:3: is no tree (see logs/")
    assert second.startswith("FAILED binarize/relation_mask+stack_pe: as binarize/sequence (see")
