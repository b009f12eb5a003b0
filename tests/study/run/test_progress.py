"""The progress of a study as the user sees it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest
from rich.console import Console
from support.study_helpers import plan_of

from treesyntax.files import write_json
from treesyntax.jobs.terminal import as_asked
from treesyntax.study.estimate import Estimate
from treesyntax.study.run.failures import Failure
from treesyntax.study.run.progress import LiveProgress, PlainProgress, watch


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


def test_jobs_that_wait_are_named(tmp_path: Path):
    plan = plan_of(tmp_path)
    console = Console(width=200, record=True, file=(tmp_path / "out.txt").open("w"))
    progress = PlainProgress(Estimate(plan, tmp_path, set()), console)
    progress.submitted(plan.steps[2], "12_3")
    progress.next_line = 0
    progress.tick([], {f"{name}-1/train": "Resources" for name in "abcdef"})
    said = console.export_text()
    assert "job 12_3" in said
    assert "a-1/train waits (Resources); " in said
    assert "; 2 more jobs wait" in said


@pytest.mark.parametrize(("term", "view"), [("xterm", LiveProgress), ("dumb", PlainProgress)])
def test_a_terminal_that_redraws_nothing_has_plain_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, term: str, view: type
):
    """rich shows no live view on it: a study said nothing for hours."""
    monkeypatch.setenv("TERM", term)
    console = Console(force_terminal=True, file=(tmp_path / "out.txt").open("w"))
    with watch(Estimate(plan_of(tmp_path), tmp_path, set()), console) as progress:
        assert type(progress) is view


@pytest.mark.parametrize("terminal", [False, True])
def test_a_run_that_is_scored_says_its_primary_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
):
    monkeypatch.setenv("TERM", "xterm")
    plan = plan_of(tmp_path, "primary=tree:lambda")
    console = Console(
        width=200, record=True, force_terminal=terminal, file=(tmp_path / "out.txt").open("w")
    )
    steps = [step for step in plan.steps if step.kind == "score" and step.name.endswith("-2/score")]
    values = iter((71.2, 8.0))
    for step in steps[:2]:
        scores = [{"metric": "exact", "value": 1}, {"metric": "tree:lambda", "value": next(values)}]
        write_json(tmp_path / step.stdout, scores)
    with watch(Estimate(plan, tmp_path, set()), console) as progress:
        for step in steps:
            progress.finished(step, 1)
    said = filter(None, console.export_text().splitlines())
    lines = [line.split(" ", 1)[1].strip() for line in said]
    time = "" if terminal else " (0:01)"
    assert lines[:3] == [
        f"done   sequence-2: tree:lambda 71.20{time}",
        f"the table so far, at any time: treesyntax report {tmp_path}",
        f"done   relation_mask-2: tree:lambda 8.00{time}",
    ]
    # What cannot be read is told by the step that needs it.
    assert lines[3:] == ([] if terminal else ["done   stack_pe-2/score (0:01)"])


def test_one_fault_of_several_steps_is_told_once(tmp_path: Path):
    plan = plan_of(tmp_path)
    console = Console(width=100, record=True, file=(tmp_path / "out.txt").open("w"))
    progress = PlainProgress(Estimate(plan, tmp_path, set()), console)
    for step in (step for step in plan.steps if step.kind == "binarize"):
        progress.failed(step, Failure("train.tgt:3: is no tree", step.log))
    first, second = (line.split(" ", 1)[1] for line in console.export_text().splitlines())
    assert first.startswith("FAILED binarize/sequence: train.tgt:3: is no tree (see logs/")
    assert second.startswith("FAILED binarize/relation_mask+stack_pe: as binarize/sequence (see")
