"""The commands on a GPU, each in a process of its own: training in each precision, outputs, translation, a study."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from gpu.conftest import DEVICE
from plugins.test_plugin import FOR, LAMBDA
from support import PLUGINS, ROOT, binarize
from support.tiny_studies import programs

CPU = [] if DEVICE.type == "cuda" else ["--cpu"]
INJECTIONS = [
    "--encoder-injection", "relative_position+stack_pe+relation_mask+relative_depth+tree_rotary",
    "--decoder-injection", "relative_position+stack_pe(tree='nary')+pushdown",
]  # fmt: skip


def run(*words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command in the repository's environment; fails with its log."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run(
        [sys.executable, "-P", "-m", *map(str, words)],
        env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


@pytest.fixture(scope="session")
def data(once) -> Path:
    """FOR and LAMBDA programs as trees on both sides."""

    def make(folder: Path) -> None:
        for name, lines in (("for", FOR), ("lambda", LAMBDA)):
            (folder / f"text.{name}").write_text("".join(f"{line}\n" for line in lines))
        binarize(
            folder / "bin", folder / "text.for", folder / "text.lambda",
            "--source-format", "for", "--source-linearization", "preorder",
            "--target-format", "lambda", "--target-linearization", "nary_dfs",
        )  # fmt: skip

    return once("gpu-data", make)


def train(data: Path, save: Path, *extra: str | Path) -> str:
    done = run(
        "fairseq_cli.train", data / "bin", "--user-dir", PLUGINS, "--task", "tree_translation",
        "--arch", "tree_sequence_tiny", "--max-update", "30", "--max-tokens", "400", "--optimizer", "adam",
        "--lr", "0.005", "--save-dir", save, "--no-epoch-checkpoints", "--no-progress-bar",
        "--log-format", "json", "--log-interval", "10", "--num-workers", "0", "--copy-source", *INJECTIONS,
        "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", "0.1", *CPU, *extra,
    )  # fmt: skip
    return done.stdout + done.stderr


def losses(log: str) -> list[float]:
    lines = (line for line in log.splitlines() if "train_inner" in line)
    return [float(json.loads(line[line.index("{") :])["loss"]) for line in lines]


@pytest.fixture(scope="session")
def checkpoint(data: Path, once) -> Path:
    return once("gpu-single", lambda folder: train(data, folder)) / "checkpoint_last.pt"


@pytest.mark.parametrize(
    "precision",
    [[], ["--amp"], ["--fp16"], ["--fp16", "--memory-efficient-fp16"]],
    ids=["single", "amp", "fp16", "fp16-memory"],
)
def test_it_learns_in_each_precision_and_goes_on(data: Path, tmp_path: Path, precision: list[str]):
    if DEVICE.type == "cpu" and precision and precision != ["--amp"]:
        pytest.skip("needs a CUDA GPU")
    log = train(data, tmp_path, *precision)
    found = losses(log)
    assert found[-1] < found[0] - 0.5, log[-3000:]
    again = train(data, tmp_path, *precision, "--max-update", "40")
    assert re.search(r"Loaded checkpoint .* @ 30 updates", again)
    assert losses(again)[-1] < found[0] - 0.5
    run(
        "fairseq_cli.validate", data / "bin", "--user-dir", PLUGINS, "--task", "tree_translation",
        "--path", tmp_path / "checkpoint_last.pt", "--batch-size", "8", *CPU, *precision[:1],
    )  # fmt: skip


def hypotheses(text: str) -> dict[int, tuple[float, str]]:
    lines = re.findall(r"^D-(\d+)\t(\S+)\t(.*)$", text, re.M)
    return {int(number): (float(score), line) for number, score, line in lines}


@pytest.mark.parametrize("precision", [[], ["--fp16"]], ids=["single", "fp16"])
def test_outputs_are_those_of_the_cpu(data: Path, checkpoint: Path, precision: list[str]):
    found = [
        hypotheses(
            run(
                "fairseq_cli.generate", data / "bin", "--user-dir", PLUGINS, "--task", "tree_translation",
                "--path", checkpoint, "--beam", "3", "--batch-size", "5", "--max-len-b", "30",
                "--max-len-a", "0", *where,
            ).stdout
        )
        for where in (["--cpu"], CPU or precision)
    ]  # fmt: skip
    assert sorted(found[1]) == [*range(len(FOR))]
    score = 1e-3 if not precision else 0.05
    equal = [
        found[0][row][1] == found[1][row][1]
        and found[0][row][0] == pytest.approx(found[1][row][0], abs=score)
        for row in found[0]
    ]
    assert sum(equal) >= len(equal) * (1 if not precision else 0.9)


def test_translate_is_generate(data: Path, checkpoint: Path, tmp_path: Path):
    given = tmp_path / "input.for"
    given.write_text("".join(f"{line}\n" for line in FOR[:8]))
    texts = []
    for device in ("cpu", "cuda" if DEVICE.type == "cuda" else "cpu"):
        out = tmp_path / device
        run(
            "treesyntax", "translate", data / "bin", "--path", checkpoint, "--input", given, "--output", out,
            "--device", device, "--beam", "3", "--max-len-b", "30", "--max-len-a", "0",
        )  # fmt: skip
        texts.append(out.read_text().splitlines())
    assert len(texts[0]) == 8
    assert texts[0] == texts[-1]


def test_a_study_shares_a_gpu_among_its_trainings(tmp_path: Path):
    """Three jobs on one GPU, and a record of the GPU's memory for each run."""
    folder = tmp_path / "data"
    folder.mkdir()
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(yaml.safe_dump(programs(folder), sort_keys=False))
    slots = ["--gpus", "0", "--jobs", "3"] if DEVICE.type == "cuda" else ["--jobs", "2"]
    out = tmp_path / "out"
    run("treesyntax", "study", recipe, "--out", out, *slots)
    results = [json.loads(line) for line in (out / "runs.jsonl").read_text().splitlines()]
    assert len(results) == 2
    assert (out / "report.html").exists()
    if DEVICE.type == "cuda":
        logs = "".join(path.read_text() for path in out.rglob("train.log"))
        assert torch.cuda.get_device_name(0) in logs
