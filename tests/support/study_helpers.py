"""A small recipe and results for the tests of studies."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import yaml

from support import ROOT
from support.fake_programs import UPDATES
from treesyntax.metrics import METRICS
from treesyntax.study.recipe.identity import Identity, write_identity
from treesyntax.study.recipe.recipe import Recipe, read_recipe
from treesyntax.study.results.comparisons import Comparison, Conclusion
from treesyntax.study.results.first_plan import note_plan
from treesyntax.study.results.results import Result, write_results
from treesyntax.study.run.plan import Plan, make_plan

RECIPES = sorted((ROOT / "recipes").rglob("*.yaml"))


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
            **{
                name: {"arch": f"tree_{name}_mini", "binarize": {"source-format": "for"}}
                for name in ("relation_mask", "stack_pe")
            },
        },
    }


def write_recipe(folder: Path, **changes: object) -> Path:
    path = folder / "recipe.yaml"
    path.write_text(yaml.safe_dump({**recipe_content(), **changes}, sort_keys=False))
    return path


def result(
    method: str = "a",
    seed: int = 1,
    metric: str = "exact",
    value: float = 7.0,
    n: int = 2,
    used: str | None = None,
) -> Result:
    return Result(
        recipe="demo", hash="h", method=method, arch="tree_a", injection="a", seed=seed,
        metric=metric, value=value, signature="s|1", n=n, parameters=10, tokens_per_second=5.0,
        pairs_per_second=5.0, slow=4.0, fast=6.0,
        train_seconds=1.0, valid_loss=2.0, updates=5, best_update=4, versions={"python": "3"},
        commit="c", device="cpu", date="2026-01-01T00:00:00Z", data_sha256="d",
        commands=["fairseq-train \u2028 x"], used=used, ended="rested",
    )  # fmt: skip


ONE = Comparison(
    method="a", baseline="sequence", metric="exact", runs=(3, 3), seeds=3, items=9, lines=9,
    difference=2.0, low=1.0, high=3.0, p=0.01, holm_p=0.02, smallest=1.0, checkpoint_p=0.1,
    primary=True, same_as="", scores="s", error=0.4,
    conclusion=Conclusion("mechanism helps", "better than the baseline (+2.00)"),
)  # fmt: skip
"""A row that is shown to be better than its baseline."""


def recipe_with(folder: Path, *overrides: str, **changes: object) -> Recipe:
    return read_recipe(write_recipe(folder, **changes), overrides)


def plan_of(folder: Path, *overrides: str) -> Plan:
    return make_plan(recipe_with(folder, *overrides))


LINES = 40
REFERENCES = [f"the tree {number} has {number % 7} green leaves" for number in range(LINES)]
RATES = {"sequence": 0.5, "relation_mask": 0.05, "stack_pe": 0.5}


def outputs(method: str, seed: int) -> list[str]:
    choose = random.Random(f"{method}-{seed}")
    return [
        line.replace("tree", "dog") if choose.random() < RATES.get(method, 0.3) else line
        for line in REFERENCES
    ]


def score(method: str, seed: int, metric: str) -> float:
    return METRICS[metric](outputs(method, seed), REFERENCES)[0].value


def write_study(folder: Path, recipe: Recipe) -> None:
    """A study's folder of which the results of `result` are."""
    runs = {run.name: "" for run in make_plan(recipe).runs}
    write_identity(folder, recipe, Identity("h", "0", {}, runs))
    note_plan(folder, recipe)


def make_study(folder: Path, *overrides: str, **changes: object) -> Path:
    """A finished study whose outputs are as above."""
    changes = {"score": ["exact", "bleu"], "seeds": [1, 2, 3], **changes}
    recipe = read_recipe(write_recipe(folder, **changes), overrides)
    out = folder / "out"
    write_study(out, recipe)
    write(out / "data/p/test.tgt", REFERENCES)
    for run in make_plan(recipe).runs:
        write(out / run.folder / "hypotheses.txt", outputs(run.method.base, run.seed))
    write_results(out / "runs.jsonl", [
        result(run.method.name, run.seed, metric, score(run.method.base, run.seed, metric), len(REFERENCES))
        for run in make_plan(recipe).runs for metric in recipe.score if metric in METRICS
    ])  # fmt: skip
    return out


def make_two_test_sets(folder: Path, *overrides: str, **changes: object) -> Path:
    """The same on the test sets ``law`` and ``news``."""
    data = recipe_content()["data"]
    data["source"]["test"], data["target"]["test"] = "{data}/{d}.src", "{data}/{d}.tgt"
    axes = {"domain": {"vars.d": ["law", "news"]}}
    out = make_study(
        folder, *overrides, data=data, vars={"size": 8, "d": "law"}, axes=axes, **changes
    )
    for domain in ("law", "news"):
        write(out / f"data/{domain}.tgt", REFERENCES)
        write(out / f"data/{domain}.src", [f"{domain} {line}" for line in range(LINES)])
    return out


def keep_items(out: Path, folder: Path) -> Path:
    """The two files of a study that its tables are made of again, in another folder; returns items.jsonl."""
    folder.mkdir(exist_ok=True)
    for file in (out / "runs.jsonl", out / "tables/items.jsonl"):
        shutil.copy(file, folder)
    return folder / "items.jsonl"


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def two_methods() -> dict:
    """The methods of a recipe with two rows."""
    methods = recipe_content()["methods"]
    return {name: methods[name] for name in ("sequence", "relation_mask")}


def baselines(recipe: Recipe) -> dict[str, str | None]:
    """The row that each row is compared with, by name."""
    found = {method.name: recipe.baseline_of(method) for method in recipe.methods}
    return {name: baseline and baseline.name for name, baseline in found.items()}
