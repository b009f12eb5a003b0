"""A training killed while a checkpoint is copied to its other names equals an undisturbed one."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from fairseq.file_io import PathManager
from reliability.fairseq_jobs import SOAK, flags_of, losses, start, train

from treesyntax.model.checkpoint import load_checkpoint
from treesyntax.study.run.checkpoints import is_trained, repair_checkpoints, updates_of
from treesyntax.study.run.logs import read_log

UPDATES, EVERY = 9, 3
FLAGS = [
    "--patience", 99, "--dropout", 0.2, "--optimizer", "adam", "--lr", 0.003, "--batch-size", 5,
    "--update-epoch-batch-itr", "True", "--save-interval-updates", EVERY, "--keep-interval-updates", 1,
    "--max-update", UPDATES, *flags_of("relation_mask"),
]  # fmt: skip
"""32 formulas in batches of 5 are 7 updates an epoch, so each checkpoint is copied inside an epoch."""
FILES = [f"checkpoint_2_{UPDATES}.pt", "checkpoint_best.pt", "checkpoint_last.pt"]
MOMENTS = ("before", "half", "whole")


def copies(job: Path) -> int:
    """Copies that a whole training makes: each save has a last one, and a best one where it is better."""
    return len(list(job.glob("copied-*")))


def watch(folder: Path, number: int, moment: str) -> Callable[[], None]:
    """What kills a training at its n-th copy: before it, when half of it is written, or when it is whole.

    fairseq logs "Saved checkpoint" after the last copy.
    """
    count = itertools.count(1)
    copy = PathManager.copy

    def killing(source: str, target: str, overwrite: bool = False) -> bool:
        now = next(count)
        (folder / f"copied-{now}-{Path(target).name}").touch()
        if now == number and moment != "whole":
            content = Path(source).read_bytes()
            if moment == "half":
                Path(target).write_bytes(content[: len(content) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        done = copy(source, target, overwrite=overwrite)
        if now == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    def patch() -> None:
        PathManager.copy = killing

    return patch


@pytest.fixture(scope="module")
def whole(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed training."""
    folder = tmp_path_factory.mktemp("whole")
    job = start(data / "nary_dfs", folder, *FLAGS, first=watch(folder, 0, ""))
    assert job.wait() == 0, job.output()[-3000:]
    assert len(losses(job)) == UPDATES
    assert all((folder / name).is_file() for name in FILES)
    return folder


def same(one: Path, other: Path) -> bool:
    first, second = (load_checkpoint(path)["model"] for path in (one, other))
    return all(torch.equal(value, second[name]) for name, value in first.items())


def killed(data: Path, folder: Path, number: int, moment: str) -> None:
    job = start(data / "nary_dfs", folder, *FLAGS, first=watch(folder, number, moment))
    assert job.wait() == -signal.SIGKILL, job.output()[-3000:]


LATE = [(-1, moment) for moment in MOMENTS]
"""At the last copy of all, after which fairseq only logs it."""
ALL = [(number, moment) for number in range(6) for moment in MOMENTS]


@pytest.mark.parametrize(("number", "moment"), ALL if SOAK else LATE)
def test_a_training_killed_at_a_copy_is_repaired_to_the_same_checkpoints(
    number: int, moment: str, whole: Path, data: Path, tmp_path: Path
):
    """As a study goes on: the checkpoints are mended, and the training is begun again if it is not over."""
    total = copies(whole)
    if number >= total:
        pytest.skip(f"there are {total} copies")
    killed(data, tmp_path, number % total + 1, moment)
    repair_checkpoints(tmp_path)
    over = is_trained(tmp_path, read_log(tmp_path / "log-0.txt"), UPDATES)
    # The last copy is that of checkpoint_last.pt; before it is begun, that file is of an earlier update.
    assert over == (number in (-1, total - 1) and moment != "before")
    if not over:
        train(data / "nary_dfs", tmp_path, *FLAGS)
    for name in FILES:
        assert updates_of(tmp_path / name) == updates_of(whole / name), name
        assert same(tmp_path / name, whole / name), name


def test_a_training_that_is_over_trains_nothing_when_it_is_started_again(
    whole: Path, data: Path, tmp_path: Path
):
    """As where a cluster starts a job once more."""
    killed(data, tmp_path, copies(whole), "whole")
    job = train(data / "nary_dfs", tmp_path, *FLAGS)
    assert len(losses(job)) == UPDATES  # those before the kill
    assert "is of a training that is over" in job.output()
    assert read_log(job.stdout).finished
    assert all(same(tmp_path / name, whole / name) for name in FILES)


def test_a_training_out_of_patience_trains_nothing_when_it_is_started_again(
    data: Path, tmp_path: Path
):
    """Without a step no validation is better than the first, so the third after it is the last."""
    flags = [*FLAGS, "--lr", 1e-30, "--patience", 3, "--max-update", 40]
    job = train(data / "nary_dfs", tmp_path, *flags)
    assert "hasn't improved for last 3 runs" in job.output()
    found = updates_of(tmp_path / "checkpoint_last.pt")
    again = train(data / "nary_dfs", tmp_path, *flags)
    assert len(losses(again)) == found < 40
    assert updates_of(tmp_path / "checkpoint_last.pt") == found


@pytest.mark.parametrize(
    ("shorter", "longer"),
    [
        (["--max-update", 6], ["--max-update", UPDATES]),
        (["--lr", 1e-30, "--patience", 1], ["--lr", 1e-30, "--patience", 2]),
    ],
    ids=["more updates", "more patience"],
)
def test_a_training_that_goes_on_to_a_later_end_equals_one_that_had_it_from_the_beginning(
    shorter: list, longer: list, whole: Path, data: Path, tmp_path: Path
):
    """As a study extends a run, see `treesyntax.study.run.extension`."""
    undisturbed = whole
    if "--patience" in longer:
        undisturbed = tmp_path / "undisturbed"
        train(data / "nary_dfs", undisturbed, *FLAGS, *longer)
    first = train(data / "nary_dfs", tmp_path / "run", *FLAGS, *shorter)
    assert read_log(first.stdout).rested == ("--patience" in shorter)
    ended = updates_of(tmp_path / "run/checkpoint_last.pt")
    again = train(data / "nary_dfs", tmp_path / "run", *FLAGS, *longer)
    assert ended < updates_of(tmp_path / "run/checkpoint_last.pt")
    assert read_log(again.stdout).rested == ("--patience" in longer)
    for name in ("checkpoint_best.pt", "checkpoint_last.pt"):
        assert updates_of(tmp_path / "run" / name) == updates_of(undisturbed / name), name
        assert same(tmp_path / "run" / name, undisturbed / name), name
