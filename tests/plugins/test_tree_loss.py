"""Losses from trees in fairseq's training."""

from __future__ import annotations

import math
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fairseq.logging import metrics
from plugins.test_plugin import PLUGINS, data, fairseq, train  # noqa: F401, a fixture

from fairseq_plugins.training.tree_loss import TreeLossTask


def step(tree_loss, has_losses=True):
    """One training step with a criterion whose loss is 3, and what was derived backward."""
    encoder = SimpleNamespace(injections=SimpleNamespace(has_losses=has_losses), tree_loss=None)
    model = SimpleNamespace(
        encoder=encoder, train=lambda: None, set_num_updates=lambda updates: None
    )
    derived = []

    def criterion(model, sample):
        model.encoder.tree_loss = tree_loss
        return torch.tensor(3.0), 4, {"loss": torch.tensor(3.0), "sample_size": 4}

    optimizer = SimpleNamespace(backward=lambda loss: derived.append(float(loss)))
    task = object.__new__(TreeLossTask)
    task.cfg = SimpleNamespace(copy_dropout=0.0)
    found = task.train_step({}, model, criterion, optimizer, update_num=1)
    assert encoder.tree_loss is None
    return found, derived


def test_the_loss_is_added_and_logged_apart():
    (loss, size, log), derived = step(torch.tensor(2.0))
    assert (float(loss), size, derived) == (5.0, 4, [5.0])
    assert log == {"loss": torch.tensor(3.0), "sample_size": 4, "tree_loss": torch.tensor(2.0)}


def test_where_the_layer_was_left_out_the_log_has_the_same_entries():
    (loss, _, log), _ = step(None)
    assert (float(loss), log["tree_loss"]) == (3.0, 0.0)


def test_a_model_without_such_methods_trains_as_before():
    (loss, _, log), _ = step(None, has_losses=False)
    assert (float(loss), set(log)) == (3.0, {"loss", "sample_size"})


def test_the_logs_of_processes_are_summed_and_divided_by_the_sample_size():
    criterion = SimpleNamespace(reduce_metrics=lambda logs: None)
    logs = [{"tree_loss": 6.0, "sample_size": 3, "ntokens": 3, "nsentences": 1}] * 2
    task = object.__new__(TreeLossTask)
    task.cfg = SimpleNamespace(eval_bleu=False)
    with metrics.aggregate() as found:
        task.reduce_metrics(logs, type("Criterion", (), vars(criterion))())
    assert found["tree_loss"].avg == pytest.approx(12 / 6 / math.log(2), abs=1e-3)


def test_a_training_logs_it_and_the_model_generates_without_trees(data: Path, tmp_path: Path):  # noqa: F811
    done = train(
        data / "bin", tmp_path / "save", "--encoder-injection", "parent_head+distance_head(layer=2)",
        "--criterion", "label_smoothed_cross_entropy", "--log-interval", "1", "--update-freq", "2",
        "--encoder-layerdrop", "0.2", arch="tree_sequence_tiny",
    )  # fmt: skip
    log = done.stdout + done.stderr
    assert done.returncode == 0, log
    assert re.search(r"train .*tree_loss [1-9]", log) or re.search(r"tree_loss=[1-9]", log), log
    assert not re.search(r"valid on.*tree_loss", log)

    shutil.copytree(data / "bin", tmp_path / "bare")
    for trees in (tmp_path / "bare").glob("*.tree"):
        trees.unlink()
    done = fairseq(
        "generate", tmp_path / "bare", "--user-dir", PLUGINS, "--task", "tree_translation",
        "--path", tmp_path / "save" / "checkpoint_last.pt", "--beam", "1", "--max-len-b", "5",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^H-", done.stdout, re.M)) == 24
    # Training itself needs them.
    done = train(
        tmp_path / "bare", tmp_path / "other", "--encoder-injection", "parent_head",
        arch="tree_sequence_tiny",
    )  # fmt: skip
    assert done.returncode != 0
    assert "parent_head needs trees, but the data has none" in done.stderr
