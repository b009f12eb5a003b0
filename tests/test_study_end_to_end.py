"""One study with the real programs: generate, binarize, train, generate, score, report.

The slowest test of studies (about 20 seconds): fairseq is loaded twice, torch four times.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import yaml
from study_helpers import recipe_content

from treesyntax.study.results import read_results


def small_recipe() -> dict:
    def side(lang: str) -> dict:
        return {
            "lang": lang,
            **{split: f"{{data}}/p/{split}.{lang}" for split in ("train", "valid", "test")},
        }

    sizes = "--train 60 --valid 10 --test 7 --size 6 --seed 1"
    return {
        **recipe_content(),
        "prepare": [f"treesyntax generate for2lam --out {{data}}/p {sizes}"],
        "data": {"source": side("for"), "target": side("lambda")},
        "train": {
            "max-update": 12, "batch-size": 20, "lr": 0.003, "optimizer": "adam",
            "criterion": "label_smoothed_cross_entropy", "num-workers": 0, "log-interval": 2,
        },
        "generate": {"beam": 2, "max-len-b": 20, "num-workers": 0},
        "seeds": [1],
        "methods": {
            "relation_mask": {
                "arch": "tree_relation_mask_tiny",
                "binarize": {"source-format": "for", "source-view": "preorder"},
            }
        },
    }  # fmt: skip


def test_a_study_with_the_real_programs(tmp_path: Path):
    path, out = tmp_path / "recipe.yaml", tmp_path / "out"
    path.write_text(yaml.safe_dump(small_recipe(), sort_keys=False))
    words = [sys.executable, "-m", "treesyntax.cli", "study", str(path), "--out", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    results = read_results(out / "results.jsonl")
    assert [result.key for result in results] == [
        ("relation_mask", 1, "exact"),
        ("relation_mask", 1, "tree:lambda"),
    ]
    first = results[0]
    assert (first.n, first.updates, first.injection) == (7, 12, "relation_mask")
    assert first.parameters > 1000
    assert first.tokens_per_second > 0
    assert 0 < first.valid_loss < 20
    masks = json.loads(
        (out / "runs/relation_mask-1/mask_strengths/mask_strengths.json").read_text()
    )
    assert len(masks["strengths"]) == 2
    assert "Mask strengths" in (out / "report.html").read_text()
    assert "Learning curves" in (out / "report.html").read_text()
