"""The same seed on the same machine gives the same numbers, whatever interrupts a training."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from reliability.fairseq_jobs import (
    SOAK,
    environment,
    flags_of,
    losses,
    parameters,
    start,
    train,
    training_words,
)
from support.forked_programs import Fork

from treesyntax.methods import METHODS

UPDATES = 50 if SOAK else 8  # more than the 7 of an epoch
LINEARIZATIONS = ("nary_dfs", "nary_bfs", "lcrs_bfs")
SPECS = ["everything", *(METHODS if SOAK else [])]
CASES = [(spec, LINEARIZATIONS[number % len(LINEARIZATIONS)]) for number, spec in enumerate(SPECS)]
NOISY = [
    "--dropout", 0.2, "--attention-dropout", 0.1, "--optimizer", "adam", "--lr", 0.003,
    "--batch-size", 5, "--update-epoch-batch-itr", "True",
]  # fmt: skip


def assert_same(first: Fork, second: Fork) -> None:
    one, other = parameters(first), parameters(second)
    assert list(one) == list(other)
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


@pytest.fixture(scope="module")
def usual(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Fork:
    """A training with every method, which others must equal."""
    flags = [*NOISY, *flags_of("everything"), "--max-update", UPDATES]
    return train(data / LINEARIZATIONS[0], tmp_path_factory.mktemp("usual"), *flags)


@pytest.mark.parametrize(("spec", "linearization"), CASES)
def test_the_same_seed_gives_the_same_parameters_and_losses(
    spec, linearization, usual: Fork, data: Path, tmp_path: Path
):
    flags = [*NOISY, *flags_of(spec), "--max-update", UPDATES]
    folder, whole = data / linearization, spec == "everything"
    first = train(folder, tmp_path / "a", *flags)
    second = usual if whole else train(folder, tmp_path / "b", *flags)
    assert len(losses(first)) == UPDATES
    assert losses(first) == losses(second)
    assert_same(first, second)
    if whole:
        other = train(folder, tmp_path / "b", *flags, "--seed", 8, "--max-update", 2)
        assert losses(other) != losses(first)[:2]


@pytest.mark.parametrize("workers", [1, 2] if SOAK else [2])
def test_the_number_of_workers_changes_nothing(
    workers: int, usual: Fork, data: Path, tmp_path: Path
):
    flags = [*NOISY, *flags_of("everything"), "--max-update", UPDATES, "--num-workers", workers]
    job = train(data / LINEARIZATIONS[0], tmp_path, *flags)
    assert losses(job) == losses(usual)
    assert_same(job, usual)


def kill_after(updates: int, data: Path, save: Path, *flags: object) -> None:
    """A training that is killed in mid-epoch, after the given number of updates."""

    def patch() -> None:
        from fairseq.trainer import Trainer

        step = Trainer.train_step

        def killing(self: Trainer, *given: object, **options: object) -> object:
            if self.get_num_updates() == updates:
                os.kill(os.getpid(), signal.SIGKILL)
            return step(self, *given, **options)

        Trainer.train_step = killing

    job = start(data, save, *flags, first=patch)
    assert job.wait() == -signal.SIGKILL, job.output()[-3000:]


KILLED = ["everything", *METHODS] if SOAK else ["everything"]


@pytest.mark.parametrize("spec", KILLED)
def test_a_killed_and_resumed_training_equals_an_undisturbed_one(spec, usual, data, tmp_path):
    """32 formulas in batches of 5 are 7 updates an epoch; saves are 3 updates apart."""
    updates = 125 if SOAK else UPDATES
    flags = [*NOISY, *flags_of(spec), "--max-update", updates, "--save-interval-updates", 3,
             "--keep-interval-updates", 1]  # fmt: skip
    whole = train(data / "nary_dfs", tmp_path / "whole", *flags) if SOAK else usual
    halves = tmp_path / "halves"
    kills = (updates // 5, updates // 2) if SOAK else (updates // 2,)
    for after in kills:
        kill_after(after, data / "nary_dfs", halves, *flags)
    job = train(data / "nary_dfs", halves, *flags)
    resumed = re.findall(r"Loaded checkpoint .*\(epoch (\d+) @ (\d+) updates\)", job.output())
    assert len(resumed) == len(kills)
    assert any(int(update) % 7 for _, update in resumed)
    assert all(0 < int(update) < updates for _, update in resumed)
    assert_same(job, whole)


@pytest.mark.parametrize("stopped", [2, 4] if SOAK else [4])
def test_a_resumed_training_is_as_patient_as_an_undisturbed_one(stopped, data, tmp_path):
    """Without a step no validation is better than the first one, so the third after it is the last."""
    flags = [
        "--lr",
        1e-30,
        "--patience",
        3,
        "--save-interval-updates",
        2,
        "--validate-interval-updates",
        2,
    ]
    whole = train(data / "nary_dfs", tmp_path / "whole", *flags, "--max-update", 100)
    train(data / "nary_dfs", tmp_path / "halves", *flags, "--max-update", stopped)
    halves = train(data / "nary_dfs", tmp_path / "halves", *flags, "--max-update", 100)
    assert len(losses(whole)) == len(losses(halves)) == 8  # of both sessions
    for job in (whole, halves):
        assert "hasn't improved for last 3 runs" in job.output()


@pytest.mark.parametrize("stopped", [1, 2, 3] if SOAK else [2])
def test_a_resumed_training_lowers_its_rate_where_an_undisturbed_one_does(stopped, data, tmp_path):
    """No validation is so much better than the first one, so that every second after it halves the rate."""
    flags = [
        "--lr-scheduler", "reduce_lr_on_plateau", "--lr-patience", 1, "--lr-shrink", 0.5,
        "--lr-threshold", 0.9, "--patience", 99, "--save-interval", 1,
    ]  # fmt: skip
    whole = train(data / "nary_dfs", tmp_path / "whole", *flags, "--max-epoch", 5)
    train(data / "nary_dfs", tmp_path / "halves", *flags, "--max-epoch", stopped)
    halves = train(data / "nary_dfs", tmp_path / "halves", *flags, "--max-epoch", 5)
    rates = [re.findall(r'"train_lr": "([^"]+)"', job.output()) for job in (whole, halves)]
    assert len({*rates[0]}) == 2
    assert rates[0] == rates[1]


@pytest.mark.skipif(not SOAK, reason="loads fairseq once more; runs with make soak")
def test_a_command_of_its_own_gives_the_same_checkpoint(data: Path, tmp_path: Path):
    """Nothing between the command line and fairseq, and other addresses in memory."""
    flags = [*NOISY, *flags_of("everything"), "--max-update", 10]
    job = train(data / "nary_dfs", tmp_path / "job", *flags)
    words = training_words(data / "nary_dfs", tmp_path / "command", *flags)
    done = subprocess.run(
        [sys.executable, "-m", "fairseq_cli.train", *words],
        capture_output=True, text=True, env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert_same(job, Fork(0, tmp_path / "command/log"))
