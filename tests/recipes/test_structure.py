"""The recipes of the structural suite: what they compare, and that one recipe plans them all."""

from __future__ import annotations

import shlex

import pytest
from support import ROOT

from treesyntax.data.sets import SETS
from treesyntax.metrics import METRICS, plain_name
from treesyntax.model.composition import parse_spec
from treesyntax.study.recipe.backbone import positions_of
from treesyntax.study.recipe.fairness import check_fairness
from treesyntax.study.recipe.recipe import Method, Recipe, read_recipe
from treesyntax.study.run.plan import make_plan
from treesyntax.trees.formats import get_format

FOLDER = ROOT / "recipes" / "structure"
OTHERS = ("all", "base", "search", "slog_parsed")
TASKS = sorted(file.stem for file in FOLDER.glob("*.yaml") if file.stem not in OTHERS)
SEQUENCES = {"sequence", "sequence_shared"}
DECLARED = {"copy-words", "copy-unknown", "source-labels", "copy-source", "copy-dropout",
            "share-encoder-layers", "share-decoder-layers"}  # fmt: skip
SOURCE_TREES = {
    "linearized", "relation_mask", "stack_pe", "relative_depth", "tree_rotary", "labelled_relation",
}  # fmt: skip
TARGET_TREES = {"nary_dfs", "lcrs_dfs", "nary_rotary"}
CONTROLS = {
    f"{row}/{kind}"
    for row in ("relation_mask", "stack_pe")
    for kind in ("random", "right_branching")
}


def read(name: str, *overrides: str) -> Recipe:
    return read_recipe(FOLDER / f"{name}.yaml", overrides)


def rows(recipe: Recipe) -> dict[str, Method]:
    return {method.base: method for method in recipe.methods}


def test_every_data_set_has_a_recipe():
    of_the_map = {file.stem for file in (ROOT / "recipes" / "map").glob("*.yaml")}
    assert set(TASKS) <= set(SETS) <= {*TASKS, *of_the_map}


@pytest.mark.parametrize("name", TASKS)
def test_a_fair_comparison_with_controls(name: str):
    recipe = read(name)
    check_fairness(recipe)
    found = rows(recipe)
    assert found.keys() >= SEQUENCES
    assert (found.keys() >= SOURCE_TREES) == (found.keys() >= CONTROLS)
    assert (found.keys() & TARGET_TREES) in (set(), TARGET_TREES)
    assert ("lcrs_dfs" in found) == ("lcrs_dfs/random" in found)
    # Every row is the baseline, with its positions and its scale of embeddings, plus a method.
    assert {key.partition(".")[2] for key in recipe.differences} == DECLARED
    for side in ("encoder", "decoder"):
        positions = {positions_of(m.arch, recipe.flags(m, "train"), side) for m in recipe.methods}
        assert positions == {"relative_position"}
    assert {recipe.flags(m, "train")["embedding-scaling"] for m in recipe.methods} == {"down"}
    assert recipe.baseline == "sequence"
    assert len(recipe.seeds) >= 5
    for metric in recipe.score:
        assert plain_name(metric) in METRICS
    for method in recipe.methods:
        flags = recipe.flags(method, "binarize")
        for side in ("source", "target"):
            assert flags[f"{side}-format"] == "text" or get_format(flags[f"{side}-format"])
        for side in ("encoder", "decoder"):
            spec = recipe.flags(method, "train").get(f"{side}-injection")
            assert spec is None or parse_spec(spec)
        assert (
            "gen" not in method.source.valid
        )  # chosen on what is like training, never on the test


@pytest.mark.parametrize("name", TASKS)
def test_data_come_from_the_set_of_that_name(name: str):
    plan = make_plan(read(name, "data=some folder"))
    (command,) = plan.recipe.prepare
    words = shlex.split(command)
    assert words[:4] == ["treesyntax", "data", "get", name]
    assert words[words.index("--from") + 1] == "some folder"
    assert plan.recipe.source.train.startswith(words[4])


def test_one_recipe_plans_the_whole_map():
    recipe = read("all", "data=some folder")
    check_fairness(recipe)
    found: dict[str, dict[str, Method]] = {}
    for method in recipe.methods:
        found.setdefault(dict(method.point)["task"], {})[method.base] = method
        baseline = recipe.baseline_of(method)
        assert baseline is None or baseline.point == method.point
    assert found.keys() == set(TASKS)
    for name, own in found.items():
        single = read(name, "data=some folder")
        assert own.keys() == rows(single).keys()
        for base, method in rows(single).items():
            assert (method.source, method.target) == (own[base].source, own[base].target)
            of_all = {**recipe.flags(own[base], "binarize")}
            of_one = {"source-threshold": 0, **single.flags(method, "binarize")}
            assert of_all == of_one
            assert single.flags(method, "train") == recipe.flags(own[base], "train")
    assert len(recipe.methods) >= 60
    assert len(recipe.prepare) == len(TASKS)


def test_a_parsers_trees_stand_beside_those_of_the_grammar():
    recipe = read("slog_parsed", "model=M")
    check_fairness(recipe)
    found, commands = rows(recipe), [shlex.split(command) for command in recipe.prepare[1:]]
    parsed = [method for name, method in found.items() if name.endswith("_parsed")]
    assert len(parsed) == 3
    for own in parsed:
        gold = found[own.base.removesuffix("_parsed")]
        assert (own.arch, own.binarize, own.train) == (gold.arch, gold.binarize, gold.train)
        assert own.target == gold.target
        files = [getattr(own.source, split) for split in ("train", "valid", "test")]
        assert files == [f"{gold_file(gold, split)}.parsed" for split in ("train", "valid", "test")]
        assert files == [words[3] for words in commands]
        # The words of the text, as they are in the grammar's trees.
        assert [words[2] for words in commands] == [
            f"{gold_file(gold, split)}.src" for split in ("train", "valid", "test")
        ]
    assert all("--pretokenized" in words for words in commands)


def gold_file(method: Method, split: str) -> str:
    return str(getattr(method.source, split)).removesuffix(".ptb")
