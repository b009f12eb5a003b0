"""How fairseq-train may be launched, and that one training at a time writes in a folder."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from reliability.fairseq_jobs import SOAK, binarize, parameters, start, train
from support import wait_until
from support.forked_programs import Fork, fork

from fairseq_plugins.training.launch import (
    RESETS,
    check_complete,
    check_launch,
    checked_main,
    hold_folder,
)
from treesyntax.errors import OptionError
from treesyntax.jobs.node import SAVED
from treesyntax.made import lock


def config(folder: Path = Path("save"), **changes: object) -> SimpleNamespace:
    """fairseq's settings, as far as a launch has to do with them."""
    common = {
        "cpu": False, "fp16": False, "bf16": False, "amp": False, "fp16_no_flatten_grads": False,
        "seed": 1,
    }  # fmt: skip
    distributed = {
        "distributed_world_size": 1, "distributed_rank": 0, "distributed_port": -1,
        "distributed_init_method": None,
    }  # fmt: skip
    restored = {
        "restore_file": "checkpoint_last.pt", "finetune_from_model": None, "continue_once": None,
        "no_save": False, **dict.fromkeys(RESETS, False),
    }  # fmt: skip
    assert changes.keys() <= common.keys() | distributed.keys() | restored.keys()
    checkpoint = {name: changes.get(name, restored[name]) for name in restored}
    return SimpleNamespace(
        common=SimpleNamespace(**{name: changes.get(name, common[name]) for name in common}),
        distributed_training=SimpleNamespace(
            **{name: changes.get(name, distributed[name]) for name in distributed}
        ),
        checkpoint=SimpleNamespace(save_dir=str(folder), **checkpoint),
    )


@pytest.mark.parametrize(
    ("changes", "environment", "gpus", "message"),
    [
        ({"fp16": True}, {}, 0, "--fp16 is for GPUs; on a CPU use --amp"),
        ({"fp16": True, "cpu": True}, {}, 1, "--fp16 is for GPUs; on a CPU use --amp"),
        ({"seed": -1}, {}, 0, "--seed -1: a seed is from 0 to 4294967295"),
        ({"seed": 2**32}, {}, 0, "--seed 4294967296: a seed is from 0"),
        ({"bf16": True}, {}, 0, "--bf16 is for TPUs .*; use --amp"),
        ({"bf16": True}, {}, 1, "--bf16 is for TPUs .*; use --fp16"),
        ({"cpu": True, "distributed_world_size": 2}, {}, 0, "--cpu --distributed-world-size 2: st"),
        ({"distributed_world_size": 4}, {}, 2, "-world-size 4, but there are 2 GPUs"),
        ({"cpu": True}, {"WORLD_SIZE": "2"}, 0, "2 processes were started .* write to save; start"),
        ({"cpu": True, "distributed_world_size": 2}, {"WORLD_SIZE": "2"}, 2, "train alone"),
        ({}, {"SLURM_STEP_NUM_TASKS": "3"}, 1, "3 processes were started .* let each see all GPUs"),
    ],
)
def test_launches_that_cannot_work_are_refused(changes, environment, gpus, message):
    with pytest.raises(OptionError, match=message) as refused:
        check_launch(config(**changes), environment, gpus)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "environment", "gpus"),
    [
        ({"cpu": True}, {}, 0),
        ({}, {"WORLD_SIZE": "1", "SLURM_STEP_NUM_TASKS": "1"}, 0),
        ({"distributed_world_size": 8}, {}, 8),
        ({"distributed_world_size": 8}, {"WORLD_SIZE": "16"}, 8),  # torchrun on two machines
        ({"distributed_world_size": 16, "distributed_port": 9}, {}, 8),  # srun on two machines
        ({"cpu": True, "distributed_world_size": 2, "distributed_init_method": "x"}, {}, 0),
        ({"cpu": True, "fp16": True, "fp16_no_flatten_grads": True}, {}, 0),
    ],
)
def test_launches_that_work_are_not(changes, environment, gpus):
    check_launch(config(**changes), environment, gpus)


@pytest.mark.parametrize("option", ["restore_file", "finetune_from_model", "continue_once"])
def test_a_checkpoint_to_begin_with_that_is_not_there_is_refused(option: str, tmp_path: Path):
    """fairseq would train from random numbers. A name without a folder is no name in --save-dir."""
    flag = f"--{option.replace('_', '-')}"
    with pytest.raises(OptionError, match=f"{flag} best.pt: no such file; give a checkpoint"):
        check_launch(config(tmp_path, **{option: "best.pt"}), {}, 0)
    (file := tmp_path / "best.pt").touch()
    with pytest.raises(OptionError, match=f"no such file; there is {file}; give"):
        check_launch(config(tmp_path, **{option: "best.pt"}), {}, 0)
    check_launch(config(tmp_path, **{option: str(file)}), {}, 0)
    (tmp_path / "checkpoint_last.pt").touch()
    check_launch(config(tmp_path, finetune_from_model="gone.pt"), {}, 0)
    check_launch(config(tmp_path, continue_once="gone.pt"), {}, 0)


def test_an_interrupted_training_does_not_begin_anew_from_another_folder(tmp_path: Path):
    """fairseq would, and write over what it had, where the same command is given once more."""
    save = tmp_path / "save"
    save.mkdir()
    for file in (other := tmp_path / "best.pt", save / "best.pt"):
        file.touch()
    changes = {"restore_file": str(other), "reset_optimizer": True, "reset_meters": True}
    check_launch(config(save, **changes), {}, 0)
    (save / "checkpoint_last.pt").touch()
    message = (
        "write over .*checkpoint_last.pt; leave it out and --reset-optimizer, --reset-meters to go"
    )
    with pytest.raises(OptionError, match=message):
        check_launch(config(save, **changes), {}, 0)
    check_launch(config(save, **changes, no_save=True), {}, 0)
    check_launch(config(save, restore_file=str(save / "best.pt")), {}, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reset_optimizer": True}, "by itself; leave out --reset-optimizer$"),
        ({"restore_file": "best.pt"}, "by itself; leave out --restore-file$"),
    ],
)
def test_what_a_finetuning_excludes_is_refused(changes, message, tmp_path, monkeypatch):
    """fairseq ends in tracebacks when it has built the model."""
    monkeypatch.chdir(tmp_path)
    Path("best.pt").touch()
    with pytest.raises(OptionError, match=f"^--finetune-from-model begins all else anew {message}"):
        check_launch(config(tmp_path, finetune_from_model="best.pt", **changes), {}, 0)


COMPLETE = {
    "max_tokens": None, "batch_size": 8, "path": "m.pt", "optimizer": "adam", "save_interval": 1,
    "validate_interval": 1, "log_interval": 100,
}  # fmt: skip


def complete(**changes: object) -> SimpleNamespace:
    values = SimpleNamespace(**{**COMPLETE, **changes})
    sections = dict.fromkeys(("dataset", "common_eval", "checkpoint", "common"), values)
    return SimpleNamespace(**sections, optimizer=values.optimizer)


@pytest.mark.parametrize(
    ("lacking", "validates", "message"),
    [
        ("batch_size", False, "^--batch-size is missing; fairseq-train needs it or --max-tokens$"),
        ("batch_size", True, "^--batch-size is missing; fairseq-validate needs it or --max-tok"),
        ("path", True, "^--path is missing; give a checkpoint, such as --path checkpoints/"),
        ("optimizer", False, "^--optimizer is missing; give one, such as adam$"),
    ],
)
def test_what_a_command_lacks_is_named(lacking: str, validates: bool, message: str):
    """fairseq ends in assertions, or in the middle of loading."""

    with pytest.raises(OptionError, match=message):
        check_complete(complete(**{lacking: None}), validates)
    check_complete(complete(max_tokens=9, batch_size=None), validates)


def test_programs_that_read_a_checkpoint_need_nothing_of_a_training(tmp_path: Path):
    """fairseq-eval-lm takes 36,000 tokens by itself, and fairseq-interactive one line at a time."""
    cfg = config(tmp_path)
    for name, value in vars(complete(batch_size=None, optimizer=None)).items():
        if not hasattr(cfg, name):
            setattr(cfg, name, value)
    launched = []
    checked_main(lambda *given: launched.append(given))(cfg, print)
    assert launched == [(cfg, print)]
    cfg.common_eval.path = None
    with pytest.raises(OptionError, match=r"^--batch-size is missing; fairseq-train needs it"):
        checked_main(print)(cfg, print)


@pytest.mark.parametrize("name", ["save_interval", "validate_interval", "log_interval"])
def test_an_interval_of_nothing_is_refused(name: str):
    flag = f"--{name.replace('_', '-')}"
    with pytest.raises(OptionError, match=f"^{flag} 0: at least 1 is needed; leave it out for"):
        check_complete(complete(**{name: 0}), False)


def test_a_second_training_in_a_folder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lock, "TRAINING_WAIT", 0.3)

    def hold() -> int:
        with lock.training_in(tmp_path / "save", "--save-dir"):
            (tmp_path / "held").touch()
            signal.pause()
        return 0

    other = fork(hold, tmp_path / "log")
    wait_until((tmp_path / "held").exists, 20)
    with pytest.raises(OptionError, match=f"another training writes here .process {other.pid} on"):
        hold_folder(config(tmp_path / "save"))
    hold_folder(config(tmp_path / "save", distributed_rank=1))  # which writes nothing
    other.send_signal(signal.SIGKILL)
    other.wait()
    hold_folder(config(tmp_path / "save"))


def updates(job: Fork) -> int:
    return len(re.findall(r"train_inner \| ", job.output()))


SOAKED = pytest.mark.skipif(not SOAK, reason="saves of its own beside those; runs with make soak")


@pytest.mark.parametrize("every", [0, pytest.param(2, marks=SOAKED)])
def test_a_training_that_is_warned_saves_and_goes_on_as_if_nothing_was(every, tmp_path: Path):
    data = binarize(tmp_path, "nary_dfs")
    flags = ["--max-update", 16, "--batch-size", 5, "--update-epoch-batch-itr", "True"]
    flags += ["--save-interval-updates", every, "--keep-interval-updates", 1]
    whole = train(data, tmp_path / "whole", *flags)
    job = start(data, tmp_path / "half", *flags)
    wait_until(lambda: updates(job) >= 2 or job.poll() is not None, 60)
    os.kill(job.pid, signal.SIGUSR2)
    assert job.wait() == SAVED, job.output()[-2000:]
    assert "saved at the warning signal" in job.output()
    done = int(re.findall(r"Saved checkpoint .* @ (\d+) updates", job.output())[-1])
    assert done < 16
    resumed = train(data, tmp_path / "half", *flags)
    assert f"@ {done} updates)" in resumed.output()
    one, other = parameters(whole), parameters(resumed)
    assert all(torch.equal(value, other[name]) for name, value in one.items())
