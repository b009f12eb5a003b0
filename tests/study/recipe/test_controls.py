"""Controls: rows over trees without syntax that a method asks for in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from support.study_helpers import baselines, recipe_content, recipe_with

from treesyntax.errors import OptionError
from treesyntax.made.digests import Digests
from treesyntax.study.recipe.controls import uncontrolled
from treesyntax.study.recipe.fairness import check_fairness
from treesyntax.study.recipe.recipe import Method, Recipe, read_recipe
from treesyntax.study.recipe.rows import row_of_run, run_name
from treesyntax.study.run.keys import Keys
from treesyntax.study.run.plan import make_plan
from treesyntax.study.run.steps import Run

READ = {"source-format": "for", "source-view": "preorder"}
GROWN = {"target-format": "lambda", "target-view": "nary_dfs"}


def methods(binarize: dict, controls: list[str], **others: dict) -> dict[str, Any]:
    row = {"arch": "tree_stack_pe_mini", "binarize": binarize, "controls": controls}
    return {"sequence": {"arch": "tree_sequence_mini"}, "tree": row, **others}


def read(folder: Path, binarize: dict, controls: list[str], **changes: Any) -> Recipe:
    return recipe_with(folder, methods=methods(binarize, controls), **changes)


def row(recipe: Recipe, name: str) -> Method:
    return next(method for method in recipe.methods if method.name == name)


@pytest.mark.parametrize(
    ("binarize", "kind", "flags"),
    [
        (READ, "random", {"source-control": "random"}),
        (READ, "flat", {"source-control": "flat"}),
        (READ, "right_branching", {"source-control": "right_branching"}),
        (GROWN, "random", {"target-control": "shuffled"}),
        (GROWN, "shuffled", {"target-control": "shuffled"}),
        ({**READ, **GROWN}, "random", {"source-control": "random", "target-control": "shuffled"}),
        ({**READ, **GROWN}, "flat", {"source-control": "flat"}),
    ],
)
def test_one_line_makes_the_row(binarize: dict, kind: str, flags: dict, tmp_path: Path):
    recipe = read(tmp_path, binarize, [kind])
    name = f"tree/{kind}"
    assert [method.name for method in recipe.methods] == ["sequence", "tree", name]
    control, tree = row(recipe, name), row(recipe, "tree")
    assert control.binarize == {**tree.binarize, **flags}
    assert (control.arch, control.train, control.generate) == (tree.arch, tree.train, tree.generate)
    assert (tree.controls, tree.control_of) == ((name,), "")
    assert (control.controls, control.control_of) == ((), "tree")
    assert baselines(recipe)[name] == "sequence"
    assert "its control" in control.about
    check_fairness(recipe)


@pytest.mark.parametrize(
    ("binarize", "controls", "message"),
    [
        ({}, ["random"], "has random, but tree neither reads nor grows trees"),
        ({"source-format": "ptb", "source-view": "words"}, ["flat"], None),  # stack_pe needs them
        (GROWN, ["flat"], "has flat, but tree reads no trees of its source"),
        (READ, ["shuffled"], "has shuffled, but tree grows no trees"),
        (
            {**READ, "source-control": "flat"},
            ["random"],
            "tree has source-control and is a control itself",
        ),
        (
            READ,
            ["randm"],
            "names 'randm'; name one of random, right_branching, flat, shuffled, sequence",
        ),
        (READ, ["tree"], "names 'tree'"),
        (READ, "random", "is 'random'; it must be a list of names"),
        (READ, ["random", "random"], "each may occur only once"),
        (
            READ,
            ["sequence"],
            "names sequence, which differs from tree in arch; a control differs in its trees",
        ),
    ],
)
def test_what_is_no_control_is_refused(
    binarize: dict, controls: Any, message: str | None, tmp_path: Path
):
    if message is None:
        assert len(read(tmp_path, binarize, controls).methods) == 3
        return
    with pytest.raises(OptionError) as error:
        read(tmp_path, binarize, controls)
    assert "methods.tree.controls" in str(error.value)
    assert message in str(error.value)


def test_a_plain_row_over_words_of_trees_has_no_control(tmp_path: Path):
    plain = {
        "arch": "tree_sequence_mini",
        "binarize": {"source-format": "ptb", "source-view": "words"},
    }
    rows = {"sequence": {"arch": "tree_sequence_mini"}, "tree": {**plain, "controls": ["random"]}}
    with pytest.raises(OptionError, match="neither reads nor grows trees"):
        recipe_with(tmp_path, methods=rows)


def test_the_baseline_has_no_control(tmp_path: Path):
    with pytest.raises(OptionError, match="is of the baseline, which has no method to control"):
        read(tmp_path, READ, ["random"], baseline="tree")


def test_a_report_may_compare_with_a_row_that_has_controls(tmp_path: Path):
    """They are rows like others then, and no row is lost."""
    read(tmp_path, READ, ["random"])
    recipe = read_recipe(tmp_path / "recipe.yaml", baseline="tree")
    assert baselines(recipe) == {"sequence": "tree", "tree": None, "tree/random": "tree"}
    assert (row(recipe, "tree").controls, row(recipe, "tree/random").control_of) == ((), "")


def test_a_row_that_is_spelled_out_is_named_and_keeps_its_keys(tmp_path: Path):
    content = recipe_content()["methods"]["stack_pe"]
    own = {**content, "binarize": {**content["binarize"], "source-control": "random"}}
    rows = {"sequence": {"arch": "tree_sequence_mini"}, "stack_pe": content, "own": own}
    before = recipe_with(tmp_path, methods=rows)
    named = recipe_with(tmp_path, methods={**rows, "stack_pe": {**content, "controls": ["own"]}})
    made = recipe_with(tmp_path, methods={**rows, "stack_pe": {**content, "controls": ["random"]}})

    def keys(recipe: Recipe) -> dict[str, str]:
        return Keys(make_plan(recipe), Digests(tmp_path), {}).of

    assert row(named, "stack_pe").controls == ("own",)
    assert row(named, "own").control_of == "stack_pe"
    assert row(before, "own").control_of == ""
    assert keys(before) == keys(named)
    train = keys(made)["stack_pe.random-1/train"]
    assert train == keys(before)["own-1/train"]  # so the run is found again under its new name


def test_controls_stand_where_their_rows_stand(tmp_path: Path):
    axes = {
        "clip": {
            "methods.tree.train.encoder-injection": {
                "a": "stack_pe(depth=9)",
                "b": "stack_pe(depth=8)",
            }
        },
        "rate": {"train.lr": [1, 0.5]},
    }
    recipe = read(tmp_path, READ, ["random"], axes=axes)
    pairs = {method.name: method.controls for method in recipe.methods if method.base == "tree"}
    assert len(pairs) == 4
    assert pairs["tree-clip=a-rate=0.5"] == ("tree/random-clip=a-rate=0.5",)
    for name, controls in pairs.items():
        assert row(recipe, controls[0]).train == row(recipe, name).train
    run = Run(row(recipe, "tree/random-clip=a-rate=0.5"), 3)
    assert run.folder == "runs/tree.random-clip=a-rate=0.5-3"
    assert row_of_run(run.name) == ("tree/random-clip=a-rate=0.5", "3")
    assert row_of_run(run_name("tree-rate=0.5", 1)) == ("tree-rate=0.5", "1")


def test_folders_of_controls_hold_no_slash(tmp_path: Path):
    plan = make_plan(read(tmp_path, READ, ["random"]))
    names = {
        step.name.count("/") for step in plan.steps if step.name.startswith(("tree", "binarize"))
    }
    assert names == {1}
    assert plan.of_rows(["tree/random"]).runs


def test_settings_that_a_search_found_for_a_control_are_laid_over_it(tmp_path: Path):
    found = methods(READ, ["random"], **{"tree/random": {"train": {"lr": 5}}})
    with pytest.raises(
        OptionError, match=r"names tree/random, which differs from tree in train.lr"
    ):
        recipe_with(tmp_path, methods=found)
    recipe = recipe_with(tmp_path, methods=found, differences={"train.lr": "found by search"})
    assert row(recipe, "tree/random").train == {"lr": 5}
    assert row(recipe, "tree").train == {}
    with pytest.raises(
        OptionError, match=r"methods.tree/flat is no row; write controls: \[flat\] in tree"
    ):
        recipe_with(tmp_path, methods={**found, "tree/flat": {"train": {}}})


def test_every_row_of_the_map_names_its_control():
    recipe = read_recipe(ROOT / "recipes/map/listops.yaml")
    named = {method.name: method.controls for method in recipe.methods if method.controls}
    assert named == {
        name: (f"{name}_random",) for name in ("stack_pe", "relation_mask", "depth", "linearized")
    }


@pytest.mark.parametrize(
    ("binarize", "controls", "named"),
    [(READ, [], True), (GROWN, [], True), (READ, ["random"], False), ({}, [], False)],
)
def test_rows_of_trees_without_a_control_are_named(binarize, controls, named, tmp_path: Path):
    recipe = read(tmp_path, binarize, controls)
    rows = [
        (row, recipe.flags(row, "binarize"), recipe.flags(row, "train"))
        for row in recipe.methods
        if not row.control_of
    ]
    assert ("no control: tree; " in uncontrolled(rows)) == named
    assert bool(uncontrolled(rows)) == named
