"""How long a study still takes, from what ended and from the logs of what runs."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.study_helpers import plan_of

from treesyntax.study.estimate import Estimate, clock, outlook
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.progress import state_of, summary
from treesyntax.study.run.steps import Step

LATER = "2026-01-03T00:00:00Z"
"""A beginning that the clocks of two machines may show: nothing is known of the start."""


def write_log(folder: Path, run: str, *intervals: tuple[str, int], begun: str = LATER) -> None:
    """A training's log: its beginning, and time of day and update of each log interval."""
    log = folder / f"logs/{run}/train.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as stream:
        stream.write(f"# {begun} fairseq-train\n")
        for moment, update in intervals:
            stream.write(
                f"2026-01-01 {moment} | INFO | train_inner | "
                f'{{"epoch": 1, "update": {update / 100}, "loss": "2.5", "num_updates": "{update}"}}\n'
            )


def training(plan: Plan, run: str) -> Step:
    return next(step for step in plan.steps if step.name == f"{run}/train")


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Three rows, two seeds, 100 updates."""
    return plan_of(tmp_path, "train.max-update=100")


def test_time_before_the_first_update_is_not_the_pace(tmp_path: Path, plan: Plan):
    """Ten updates took 5 seconds; the 90 seconds before the first ones are left out."""
    running, estimate = [training(plan, "sequence-1")], Estimate(plan, tmp_path, set())
    assert state_of(running[0], estimate).endswith("update 0, estimating")
    write_log(tmp_path, "sequence-1", ("10:01:30", 10))
    assert summary(running, estimate).endswith("0:00 elapsed, estimating the time left")
    write_log(tmp_path, "sequence-1", ("10:01:30", 10), ("10:01:35", 20))
    assert state_of(running[0], estimate).endswith("update 20, loss 2.500, 0:40 left")
    # Each of six runs trains for 50 seconds, of which 20 % of one is done, and training is 90 % of a run.
    assert estimate.left(running) == pytest.approx(6 * 50 / 0.9 - 10)
    assert summary(running, estimate).endswith("about 5:23 left")


@pytest.mark.parametrize(
    ("second", "update", "known"),
    [("10:00:59", 14, False), ("10:01:00", 14, True), ("10:00:01", 15, True)],
)
def test_a_pace_is_told_after_a_minute_or_a_twentieth(
    tmp_path: Path, plan: Plan, second: str, update: int, known: bool
):
    write_log(tmp_path, "sequence-1", ("10:00:00", 10), (second, update))
    left = Estimate(plan, tmp_path, set()).left_of(training(plan, "sequence-1"))
    assert (left is not None) is known


def test_what_starts_up_once_more_in_every_run_is_told_of_those_to_come(tmp_path: Path, plan: Plan):
    """A minute to the first interval of 10 updates, of which they took 5 seconds; then 10 more."""
    began = datetime(2026, 1, 1, 10, 0, 30).astimezone(UTC)
    moments = [("10:01:30", 10), ("10:01:35", 20)]
    write_log(tmp_path, "sequence-1", *moments, begun=f"{began:%Y-%m-%dT%H:%M:%SZ}")
    estimate, running = Estimate(plan, tmp_path, set()), [training(plan, "sequence-1")]
    assert estimate.left_of(running[0]) == pytest.approx(40)
    assert estimate.left(running) == pytest.approx(40 + 5 * (50 + 55) + 6 * (50 + 55) / 9)


def test_an_earlier_session_says_nothing_about_the_pace(tmp_path: Path, plan: Plan):
    write_log(tmp_path, "sequence-1", ("10:00:00", 10), ("10:50:00", 50))
    write_log(tmp_path, "sequence-1", ("23:00:00", 60), ("23:00:20", 80))
    left = Estimate(plan, tmp_path, set()).left_of(training(plan, "sequence-1"))
    assert left == pytest.approx(20)


def test_rows_that_have_ended_tell_their_own_time(tmp_path: Path, plan: Plan):
    """Two at once: a row takes as long as its run that has ended."""
    done = {step.name for step in plan.steps if "-2/" not in step.name}
    took = {"sequence-1/train": 100.0, "stack_pe-1/train": 100.0, "relation_mask-1/train": 150.0}
    took |= {f"{run}-1/score": 10.0 for run in ("sequence", "stack_pe", "relation_mask")}
    estimate = Estimate(plan, tmp_path, done, took, at_once=2)
    others = 4 * (100 + 100 + 150) / 0.9 * 0.1 / 5  # generate, hypotheses, facts, analyses
    assert estimate.left([]) == pytest.approx((350 + 3 * 10 + others) / 2)
    assert estimate.runs_done == 3
    estimate.failed.add("relation_mask-2/train")
    assert estimate.left([]) == pytest.approx((200 + 2 * 10 + others * 200 / 350) / 2)


def test_a_training_that_was_resumed_tells_the_time_of_all_sessions(tmp_path: Path, plan: Plan):
    """The second session has half of the updates and took 20 seconds, so all took 40."""
    write_log(tmp_path, "sequence-1", ("10:00:00", 10), ("10:00:16", 50))
    with (tmp_path / "logs/sequence-1/train.log").open("a") as stream:
        stream.write("| Loaded checkpoint checkpoint_last.pt (epoch 1 @ 50 updates)\n")
    write_log(tmp_path, "sequence-1", ("23:00:00", 60), ("23:00:16", 100))
    done = {step.name for step in plan.steps if step.name != "sequence-2/train"}
    estimate = Estimate(plan, tmp_path, done)
    estimate.end(training(plan, "sequence-1"), 20.0)
    assert estimate.left([]) == pytest.approx(40.0)
    estimate.end(training(plan, "sequence-1"), 45.0)  # with what a start takes
    assert estimate.left([]) == pytest.approx(45.0)


def test_jobs_that_wait_in_a_queue_are_not_at_work(tmp_path: Path, plan: Plan):
    estimate = Estimate(plan, tmp_path, set(), {"sequence-1/train": 90.0}, at_once=6)
    assert estimate.left([]) == pytest.approx(100)
    estimate.note(plan.steps[:2])
    estimate.note([])
    assert estimate.left([]) == pytest.approx(300)


def test_the_last_run_is_not_shared_out(tmp_path: Path, plan: Plan):
    left = {"stack_pe-2/train", "stack_pe-2/generate"}
    done = {step.name for step in plan.steps} - left
    took = {"stack_pe-1/train": 90.0, "stack_pe-1/generate": 10.0}
    assert Estimate(plan, tmp_path, done, took, at_once=4).left([]) == pytest.approx(100)


def test_the_time_left_of_a_step_is_what_others_of_its_kind_took(tmp_path: Path, plan: Plan):
    first, second = (
        step for step in plan.steps if step.name.startswith("sequence-") and step.kind == "generate"
    )
    estimate = Estimate(
        plan, tmp_path, set(), {"stack_pe-1/generate": 100.0, "stack_pe-1/score": 1.0}
    )
    estimate.note([first])
    assert state_of(first, estimate) == "sequence-1/generate, 1:40 left"
    estimate.started[first.name] = time.monotonic() - 70
    assert state_of(first, estimate) == "sequence-1/generate, 0:30 left"
    estimate.end(first, 200.0)
    assert state_of(second, estimate) == "sequence-2/generate, 2:30 left"
    estimate.started[second.name] = time.monotonic() - 1000
    assert state_of(second, estimate) == "sequence-2/generate, 0:00 left"
    assert state_of(second, Estimate(plan, tmp_path, set())) == "sequence-2/generate"


def test_what_is_left_is_told_with_the_time_that_such_steps_took(tmp_path: Path, plan: Plan):
    done = {step.name for step in plan.steps if not step.name.startswith("stack_pe-2/")}
    took = {name: {"train": 600.0, "generate": 60.0}.get(name.split("/")[-1], 1.0) for name in done}
    assert outlook(Estimate(plan, tmp_path, done, took, at_once=2)) == (
        "6 of 40 steps left (1 train, 1 generate, 1 hypotheses, 1 score, 1 facts, 1 analyses), about "
        "11:04 as fast as it went so far"
    )
    everything = {step.name for step in plan.steps}
    assert outlook(Estimate(plan, tmp_path, everything)) == "nothing left to do"


def test_what_is_left_while_another_process_trains(tmp_path: Path, plan: Plan):
    estimate = Estimate(plan, tmp_path, set())
    assert "mini" in plan.runs[0].method.arch
    assert "--set seeds=[1] --only sequence" in outlook(estimate)  # nothing is known of batches
    write_log(tmp_path, "sequence-1")
    assert outlook(estimate).endswith(
        "no training has ended yet, and too little is seen of sequence-1 to tell the time left"
    )
    write_log(tmp_path, "sequence-1", ("10:00:00", 10), ("10:00:45", 100))
    assert outlook(estimate).endswith("about 4:43 as fast as it went so far")


@pytest.mark.parametrize(("seconds", "text"), [(None, "?"), (5, "0:05"), (3725.4, "1:02:05")])
def test_clock(seconds: float | None, text: str):
    assert clock(seconds) == text
