"""A small recipe and results for the tests of studies."""

from __future__ import annotations

from pathlib import Path

import yaml
from support.fake_programs import UPDATES

from treesyntax.study.results.results import Result


def recipe_content() -> dict:
    def side(lang: str, suffix: str) -> dict:
        files = {split: f"{{data}}/p/{split}.{suffix}" for split in ("train", "valid", "test")}
        return {"lang": lang, **files}

    return {
        "name": "demo",
        "title": "A demo",
        "vars": {"size": 8},
        "prepare": ["treesyntax generate for2lam --out {data}/p --size {size}"],
        "data": {"source": side("for", "src"), "target": side("lambda", "tgt")},
        "binarize": {"workers": 1},
        "train": {"max-update": UPDATES, "lr": 0.001},
        "generate": {"beam": 5},
        "score": ["exact", "tree:lambda"],
        "seeds": [1, 2],
        "methods": {
            "sequence": {"arch": "tree_sequence_mini"},
            "relation_mask": {
                "arch": "tree_relation_mask_mini",
                "binarize": {"source-format": "for"},
            },
            "stack_pe": {"arch": "tree_stack_pe_mini", "binarize": {"source-format": "for"}},
        },
    }


def write_recipe(folder: Path, **changes: object) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump({**recipe_content(), **changes}, sort_keys=False))
    return path


def result(method: str = "a", seed: int = 1, metric: str = "exact", value: float = 1.0) -> Result:
    return Result(
        recipe="demo", hash="h", method=method, arch="tree_a", injection="a", seed=seed,
        metric=metric, value=value, signature="s|1", n=2, parameters=10, tokens_per_second=5.0,
        train_seconds=1.0, valid_loss=2.0, updates=5, best_update=4, versions={"python": "3"},
        commit="c", device="cpu", date="2026-01-01T00:00:00Z", data_sha256="d",
        commands=["fairseq-train \u2028 x"],
    )  # fmt: skip
