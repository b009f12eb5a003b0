"""Mixed precision on a CPU, which fairseq knows on CUDA alone."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fairseq.optim import AMPOptimizer
from plugins.test_launch import config
from plugins.test_plugin import data, train  # noqa: F401, a fixture

from fairseq_plugins.training import launch, mixed
from fairseq_plugins.training.mixed import has_bfloat16, in_mixed_precision

METHODS = "stack_pe+relation_mask+relative_depth+tree_rotary+distance_head"


def test_only_what_asked_for_it_has_products_in_bfloat16():
    model = torch.nn.Linear(3, 3)

    def criterion(model, sample):
        return model(sample), 1, {}

    assert in_mixed_precision(criterion, SimpleNamespace()) is criterion
    asked = in_mixed_precision(criterion, object.__new__(AMPOptimizer))
    assert asked(model, torch.randn(2, 3))[0].dtype == torch.bfloat16
    assert model(torch.randn(2, 3)).dtype == torch.float32


def losses(log: str) -> list[float]:
    found = [
        json.loads(line[line.index("{") :]) for line in log.splitlines() if "train_inner" in line
    ]
    return [float(entry["loss"]) for entry in found]


def test_it_trains_all_kinds_of_methods_nearly_as_single_precision_does(data: Path, tmp_path: Path):  # noqa: F811
    """And goes on from its checkpoints; losses after some updates differ, but by little."""
    found = {}
    for name, extra, ends in (("single", [], "6"), ("mixed", ["--amp"], "36")):
        logs = ""
        for updates in ends:
            done = train(
                data / "bin", tmp_path / name, *extra, "--max-update", updates, "--log-format", "json",
                "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1",
                "--encoder-injection", METHODS, "--dropout", "0.1", "--attention-dropout", "0.1",
                "--log-interval", "1", "--report-accuracy", arch="tree_sequence_tiny",
            )  # fmt: skip
            logs += done.stdout + done.stderr
            assert done.returncode == 0, logs
        found[name] = losses(logs)
    assert len(found["single"]) == 6
    assert found["mixed"] == pytest.approx(found["single"], rel=0.02)
    assert found["mixed"] != found["single"]


@pytest.mark.parametrize(
    ("known", "fast"),
    [
        ({"architecture": "x86_64", "avx512_bf16": True}, True),
        ({"architecture": "x86_64", "avx512_bf16": False, "amx_bf16": True}, True),
        ({"architecture": "x86_64", "avx2": True}, False),
        ({"architecture": "aarch64"}, True),
    ],
)
def test_a_processor_without_such_products_is_told(known, fast, monkeypatch, caplog):
    monkeypatch.setattr(mixed.torch.cpu, "get_capabilities", lambda: known)
    assert has_bfloat16() is fast
    with caplog.at_level(logging.WARNING, launch.__name__):
        launch.check_launch(config(amp=True), {}, 0)
    assert ("no products in bfloat16" in caplog.text) is not fast
