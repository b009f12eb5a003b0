"""A study of a user's own method on a real Slurm, with the real programs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml
from reliability.cluster.slurm import started, why_not
from reliability.figures import SOAK
from support.tiny_studies import programs

from treesyntax.study.results.results import read_results

pytestmark = [
    pytest.mark.skipif(not SOAK, reason="Slurm is started by make soak"),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]
OWN = '''
import torch
from treesyntax.nn.coordinates import depth
from treesyntax.nn.injection import Injection, register


@register("own_depth")
class OwnDepth(Injection):
    """A learned vector for each depth."""

    paper = "mine"
    equation = "x + E[depth]"
    cost = "a row a token"

    def __init__(self, site, depths: int = 9):
        super().__init__(site)
        self.rows = torch.nn.Parameter(torch.randn(depths, site.d_model))

    def node_encoding(self, tree):
        at = tree.at_tokens(depth(tree), 0).clamp(max=len(self.rows) - 1)
        return self.rows[at]
'''


def write_study(folder: Path) -> None:
    content = programs(folder)
    method = content["methods"]["sequence"]
    content["methods"] = {"sequence": method, "mine": {**method, "arch": "tree_own_depth_tiny"}}
    (folder / "recipe.yaml").write_text(yaml.safe_dump({**content, "import": "own.py"}))
    (folder / "own.py").write_text(OWN)


def run_study(folder: Path, environment: dict[str, str], *options: str) -> None:
    words = [sys.executable, "-P", "-m", "treesyntax", "study", str(folder / "recipe.yaml")]
    done = subprocess.run(
        [*words, "--out", str(folder / "out"), *options],
        env=environment, cwd="/", capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def check_trained(folder: Path) -> None:
    """The method was in the model, learned, and was there again in the search."""
    found = {one.method: one for one in read_results(folder / "out/runs.jsonl")}
    assert found["mine"].parameters - found["sequence"].parameters == 9 * 32
    assert found["mine"].n == 24
    state = torch.load(
        folder / "out/runs/mine-1/checkpoints/checkpoint_last.pt", weights_only=False
    )
    assert state["model"]["encoder.injections.own_depth.rows"].shape == (9, 32)


def test_jobs_know_a_method_that_a_recipe_imports(tmp_path: Path):
    write_study(tmp_path)
    with started(tmp_path / "slurm") as slurm:
        run_study(
            tmp_path, slurm.environment, "--cluster", "slurm", "--cluster-all",
            "--cluster-set", "timeout_min=30",
        )  # fmt: skip
    check_trained(tmp_path)
    assert all(one.job for one in read_results(tmp_path / "out/runs.jsonl"))
