"""The same seed on the same machine gives the same numbers, whatever interrupts a training."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from reliability.fairseq_jobs import (
    SOAK,
    Job,
    Server,
    environment,
    flags_of,
    losses,
    parameters,
    training_words,
)  # fmt: skip

from treesyntax.methods import METHODS

UPDATES = 50 if SOAK else 8  # more than the 7 of an epoch
LINEARIZATIONS = ("nary_dfs", "nary_bfs", "lcrs_bfs")
SPECS = ["everything", *(METHODS if SOAK else [])]
CASES = [(spec, LINEARIZATIONS[number % len(LINEARIZATIONS)]) for number, spec in enumerate(SPECS)]
NOISY = [
    "--dropout", 0.2, "--attention-dropout", 0.1, "--optimizer", "adam", "--lr", 0.003,
    "--batch-size", 5, "--update-epoch-batch-itr", "True",
]  # fmt: skip


def assert_same(first: Job, second: Job) -> None:
    one, other = parameters(first.save), parameters(second.save)
    assert list(one) == list(other)
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


@pytest.fixture(scope="module")
def usual(data: Path, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A training with every method, which others must equal."""
    flags = [*NOISY, *flags_of("everything"), "--max-update", UPDATES]
    return server.train(data / LINEARIZATIONS[0], tmp_path_factory.mktemp("usual"), *flags)


@pytest.mark.parametrize(("spec", "linearization"), CASES)
def test_the_same_seed_gives_the_same_parameters_and_losses(
    spec, linearization, usual: Job, data: Path, server: Server, tmp_path: Path
):
    flags = [*NOISY, *flags_of(spec), "--max-update", UPDATES]
    folder, whole = data / linearization, spec == "everything"
    first = server.train(folder, tmp_path / "a", *flags)
    second = usual if whole else server.train(folder, tmp_path / "b", *flags)
    assert len(losses(first)) == UPDATES
    assert losses(first) == losses(second)
    assert_same(first, second)
    if whole:
        other = server.train(folder, tmp_path / "b", *flags, "--seed", 8, "--max-update", 2)
        assert losses(other) != losses(first)[:2]


@pytest.mark.parametrize("workers", [1, 2] if SOAK else [2])
def test_the_number_of_workers_changes_nothing(
    workers: int, usual: Job, data: Path, server: Server, tmp_path: Path
):
    flags = [*NOISY, *flags_of("everything"), "--max-update", UPDATES, "--num-workers", workers]
    job = server.train(data / LINEARIZATIONS[0], tmp_path, *flags)
    assert losses(job) == losses(usual)
    assert_same(job, usual)


def killed(server: Server, data: Path, save: Path, flags: list[object], updates: int) -> Job:
    """A training that is killed in mid-epoch, some time after the given number of updates."""
    job = server.start(data, save, *flags)
    give_up = time.monotonic() + 60
    while len(losses(job)) < updates and time.monotonic() < give_up:
        time.sleep(0.001)
    os.kill(job.pid, signal.SIGKILL)
    assert server.wait(job) == -signal.SIGKILL
    return job


KILLED = ["everything", *METHODS] if SOAK else ["everything"]


@pytest.mark.parametrize("spec", KILLED)
def test_a_killed_and_resumed_training_equals_an_undisturbed_one(spec, data, server, tmp_path):
    """32 formulas in batches of 5 are 7 updates an epoch; saves are 3 updates apart."""
    updates = 125 if SOAK else 15
    flags = [*NOISY, *flags_of(spec), "--max-update", updates, "--save-interval-updates", 3,
             "--keep-interval-updates", 1]  # fmt: skip
    whole = server.train(data / "nary_dfs", tmp_path / "whole", *flags)
    halves = tmp_path / "halves"
    kills = (updates // 5, updates // 2) if SOAK else (updates // 2,)
    for after in kills:
        killed(server, data / "nary_dfs", halves, flags, after)
    job = server.train(data / "nary_dfs", halves, *flags)
    resumed = re.findall(r"Loaded checkpoint .*\(epoch (\d+) @ (\d+) updates\)", job.text())
    assert len(resumed) == len(kills)
    assert any(int(update) % 7 for _, update in resumed)
    assert all(0 < int(update) < updates for _, update in resumed)
    assert_same(job, whole)


@pytest.mark.skipif(not SOAK, reason="loads fairseq once more; runs with make soak")
def test_a_command_of_its_own_gives_the_same_checkpoint(data: Path, server: Server, tmp_path: Path):
    """Nothing between the command line and fairseq, and other addresses in memory."""
    flags = [*NOISY, *flags_of("everything"), "--max-update", 10]
    job = server.train(data / "nary_dfs", tmp_path / "job", *flags)
    words = training_words(data / "nary_dfs", tmp_path / "command", *flags)
    done = subprocess.run(
        [sys.executable, "-m", "fairseq_cli.train", *words],
        capture_output=True, text=True, env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert_same(job, Job(0, job.log, tmp_path / "command"))
