"""The recipes of the map: every row is the baseline plus one method, and has its control."""

from __future__ import annotations

from typing import Any

import pytest
from support import ROOT

from treesyntax.metrics import METRICS, plain_name
from treesyntax.model.composition import parse_spec
from treesyntax.study.recipe.fairness import check_fairness
from treesyntax.study.recipe.recipe import Method, Recipe, read_recipe
from treesyntax.study.run.plan import make_plan

FOLDER = ROOT / "recipes" / "map"
TASKS = sorted(file.stem for file in FOLDER.glob("*.yaml") if file.stem != "base")
SOURCE = {"stack_pe", "relation_mask", "depth", "linearized"}
TARGET = {"nary", "lcrs"}
CONTROLS = {"random": {"source-control": "random"}, "shuffled": {"target-control": "shuffled"}}
CONTROLS["control"] = CONTROLS["random"] | CONTROLS["shuffled"]
CONTROLLED = {**dict.fromkeys(SOURCE, "random"), "lcrs": "shuffled", "tree2tree": "control"}
OF_THE_METHOD = {
    "binarize": {"source-format", "source-view", "source-control", "target-format", "target-view",
                 "target-control"},
    "train": {"encoder-injection", "decoder-injection", "no-target-eos-loss"},
    "generate": set[str](),
}  # fmt: skip


def read(name: str, *overrides: str) -> Recipe:
    return read_recipe(FOLDER / f"{name}.yaml", overrides)


def rows(recipe: Recipe) -> dict[str, Method]:
    """The rows by name, on an axis those of its first point."""
    found: dict[str, Method] = {}
    for method in recipe.methods:
        found.setdefault(method.base, method)
    return found


def flags(recipe: Recipe, method: Method) -> dict[str, dict[str, Any]]:
    return {section: dict(recipe.flags(method, section)) for section in OF_THE_METHOD}


def test_there_are_tasks_for_both_blocks():
    blocks = {name: rows(read(name)).keys() for name in TASKS}
    assert sum(names >= SOURCE for names in blocks.values()) >= 4
    assert sum(names >= TARGET for names in blocks.values()) >= 6


@pytest.mark.parametrize("name", TASKS)
def test_every_row_is_the_baseline_plus_its_method(name: str):
    recipe = read(name)
    check_fairness(recipe)
    assert not recipe.differences
    found = rows(recipe)
    assert recipe.baseline == "sequence"
    assert next(iter(found)) == "sequence"
    plain = flags(recipe, found["sequence"])
    assert plain["train"]["embedding-scaling"] == "down"
    for method in found.values():
        own = flags(recipe, method)
        assert method.arch == found["sequence"].arch
        for side in ("encoder", "decoder"):
            spec = own["train"][f"{side}-injection"]
            assert parse_spec(spec)
            assert spec.split("+")[0] == plain["train"][f"{side}-injection"] == "relative_position"
        for section, names in OF_THE_METHOD.items():
            kept = {flag: value for flag, value in own[section].items() if flag not in names}
            assert kept == {
                flag: value for flag, value in plain[section].items() if flag not in names
            }


@pytest.mark.parametrize("name", TASKS)
def test_every_method_has_its_control(name: str):
    recipe = read(name)
    found = rows(recipe)
    made_by_the_tool = any("/" in row for row in found)
    mark = "/" if made_by_the_tool else "_"
    pairs = {row: f"{row}{mark}{CONTROLLED[row]}" for row in found if row in CONTROLLED}
    assert pairs
    assert found.keys() == {"sequence", "nary", *pairs, *pairs.values()} & found.keys()
    assert found.keys() >= {*pairs.values()}
    for row, control in pairs.items():
        own, other = (flags(recipe, found[name]) for name in (row, control))
        assert other["binarize"] == own["binarize"] | CONTROLS[CONTROLLED[row]]
        assert other["train"] == own["train"]
        assert found[row].source == found[control].source
        assert found[row].target == found[control].target


@pytest.mark.parametrize("name", TASKS)
def test_trainings_rest_and_are_chosen_on_what_is_not_tested(name: str):
    recipe = read(name)
    make_plan(recipe)  # refuses to average more checkpoints than a training that rests leaves
    assert len(recipe.seeds) >= 5
    (primary,) = recipe.primary
    assert plain_name(primary) in ("exact", "first_word", "main_verb", "bleu")
    if "both" in recipe.target.test:  # out of distribution, and beside it in distribution
        assert primary.endswith("@gen")
        assert primary.replace("@gen", "@test") in recipe.score
    assert all(plain_name(metric) in METRICS for metric in recipe.score)
    for method in recipe.methods:
        train = recipe.flags(method, "train")
        assert 0 < train["patience"] < train["max-update"] / train["validate-interval-updates"]
        assert train["validate-interval-updates"] == train["save-interval-updates"]
        assert train["report-accuracy"]
        assert train["best-checkpoint-metric"] == "accuracy"
        assert "valid" in method.source.valid
        assert method.source.valid != method.source.test


@pytest.mark.parametrize("name", ["for2lam_pairs", "listops_pairs"])
def test_training_sets_of_a_curve_are_nested_and_tested_on_one_set(name: str):
    recipe = read(name)
    (command,) = recipe.prepare
    words = command.split()
    sizes = {dict(method.point)["pairs"] for method in recipe.methods}
    assert sizes <= set(words[words.index("--small-train") + 1 :])
    assert words[words.index("--train") + 1] == max(sizes, key=int)
    for side in ("source", "target"):
        data = [getattr(method, side) for method in recipe.methods]
        assert len({(files.valid, files.test) for files in data}) == 1
        assert len({files.train for files in data}) == len(sizes) >= 4
