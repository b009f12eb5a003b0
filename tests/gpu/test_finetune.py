"""``treesyntax finetune`` and its studies on a GPU."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
import yaml
from finetune.conftest import pretrained  # noqa: F401, a fixture
from finetune.test_finetune import BY_TASK, words
from finetune.test_study import content
from gpu.conftest import DEVICE
from gpu.test_programs import run

pytest.importorskip("transformers")
pytest.importorskip("accelerate")

ON_GPU = DEVICE.type == "cuda"


def arguments(pretrained: Path, out: Path, task: str, *more: str) -> list[str]:  # noqa: F811
    found = words(pretrained, out, task, "--injection", "tree_distance+relative_depth", *more)
    if ON_GPU:
        place = found.index("use_cpu=true")
        del found[place - 1 : place + 1]
    return found


@pytest.mark.parametrize("task", BY_TASK)
@pytest.mark.parametrize("precision", [[], ["--set", "bf16=true"]], ids=["single", "bf16"])
def test_each_task_on_a_gpu(
    pretrained: Path,  # noqa: F811
    tmp_path: Path,
    task: str,
    precision: list[str],
):
    if not ON_GPU and precision:
        pytest.skip("needs a CUDA GPU")
    out = tmp_path / "out"
    done = run(
        "treesyntax",
        *arguments(
            pretrained, out, task, "--max-steps", "8", "--test", str(pretrained / "test.jsonl"),
            "--set", "eval_steps=4", "--set", "max_target_length=6", *precision,
        ),
    )  # fmt: skip
    assert len((out / "hypotheses.txt").read_text("utf-8").splitlines()) == 8
    if ON_GPU:
        assert re.search("gb_free", done.stdout + done.stderr)


def test_a_study_shares_a_gpu(pretrained: Path, tmp_path: Path):  # noqa: F811
    recipe = content(pretrained)
    if ON_GPU:
        del recipe["train"]["use_cpu"]
        recipe["train"]["bf16"] = True
    file = tmp_path / "furry.yaml"
    file.write_text(yaml.safe_dump(recipe, sort_keys=False), "utf-8")
    slots = ["--gpus", "0", "--jobs", "3"] if ON_GPU else ["--jobs", "2"]
    run("treesyntax", "study", file, "--out", tmp_path / "out", *slots)
    runs = [json.loads(line) for line in (tmp_path / "out/runs.jsonl").read_text().splitlines()]
    assert len(runs) == 6
    if ON_GPU:
        logs = "".join(path.read_text() for path in (tmp_path / "out").rglob("train.log"))
        assert torch.cuda.get_device_name(0) in logs
