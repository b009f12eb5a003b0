"""Axes of studies: the rows that a grid makes, and their data."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from support.study_helpers import (
    baselines,
    recipe_content,
    recipe_with,
    two_methods,
    write_recipe,
)

from treesyntax.errors import OptionError
from treesyntax.made.digests import Digests
from treesyntax.study.recipe.fairness import check_fairness
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.run.keys import Keys
from treesyntax.study.run.plan import make_plan


def test_axes_make_a_grid_of_readable_names(tmp_path: Path):
    axes = {
        "control": {"methods.relation_mask.binarize.source-control": ["given", "random"]},
        "lr": {"train.lr": [0.1, 0.2]},
    }
    recipe = recipe_with(tmp_path, methods=two_methods(), axes=axes)
    assert [method.name for method in recipe.methods] == [
        "sequence-lr=0.1", "sequence-lr=0.2",
        "relation_mask-control=given-lr=0.1", "relation_mask-control=given-lr=0.2",
        "relation_mask-control=random-lr=0.1", "relation_mask-control=random-lr=0.2",
    ]  # fmt: skip
    last = recipe.methods[-1]
    assert (last.base, last.point) == ("relation_mask", (("control", "random"), ("lr", "0.2")))
    assert last.binarize == {"source-format": "for", "source-control": "random"}
    assert last.train == {"lr": 0.2}
    commands = {step.name: " ".join(step.command) for step in make_plan(recipe).steps}
    train = commands["relation_mask-control=random-lr=0.2-2/train"]
    assert "--lr 0.2" in train
    assert "--seed 2" in train
    assert "--source-control random" in next(
        command for name, command in commands.items() if name.startswith("binarize/relation_mask-control=random")
    )  # fmt: skip


def test_options_of_one_axis_vary_together(tmp_path: Path):
    axes = {"size": {
        "train.max-update": {"short": 10, "long": 20},
        "methods.relation_mask.arch": ["tree_relation_mask_tiny", "tree_relation_mask_mini"],
    }}  # fmt: skip
    recipe = recipe_with(tmp_path, methods=two_methods(), axes=axes)
    assert [(row.name, row.arch, row.train) for row in recipe.methods] == [
        ("sequence-size=short", "tree_sequence_mini", {"max-update": 10}),
        ("sequence-size=long", "tree_sequence_mini", {"max-update": 20}),
        ("relation_mask-size=short", "tree_relation_mask_tiny", {"max-update": 10}),
        ("relation_mask-size=long", "tree_relation_mask_mini", {"max-update": 20}),
    ]


def test_labels_of_one_axis_meet_by_name(tmp_path: Path):
    lr, updates = {"small": 0.1, "large": 0.2}, {"large": 9, "small": 3}
    recipe = recipe_with(tmp_path, axes={"size": {"train.lr": lr, "train.max-update": updates}})
    for row in recipe.methods:
        flags = recipe.flags(row, "train")
        label = "small" if row.name.endswith("small") else "large"
        assert (flags["lr"], flags["max-update"]) == (lr[label], updates[label])
    with pytest.raises(
        OptionError, match="has the values small, large for train.lr but small, big"
    ):
        axes = {"size": {"train.lr": lr, "train.max-update": {"small": 3, "big": 9}}}
        recipe_with(tmp_path, axes=axes)


def test_an_axis_over_a_variable_varies_the_training_data(tmp_path: Path):
    content = recipe_content()
    for side, suffix in (("source", "src"), ("target", "tgt")):
        content["data"][side]["train"] = f"{{data}}/p/train-{{pairs}}.{suffix}"
    recipe = recipe_with(
        tmp_path, data=content["data"], methods=two_methods(), vars={"size": 8, "pairs": 4},
        prepare=["make {data}/p --size {size}", "cut {data}/p {pairs}"],
        axes={"pairs": {"vars.pairs": [4, 8]}},
    )  # fmt: skip
    assert recipe.prepare == ("make {data}/p --size 8", "cut {data}/p 4", "cut {data}/p 8")
    assert [row.source.train for row in recipe.methods] == [
        "{data}/p/train-4.src", "{data}/p/train-8.src"
    ] * 2  # fmt: skip
    plan = make_plan(recipe)
    binarize = [step for step in plan.steps if step.name.startswith("binarize/")]
    assert len(binarize) == 4
    assert "{out}/data/p/train-8.tgt" in binarize[-1].command


def test_resolved_axes_are_a_fixed_point(tmp_path: Path):
    axes = {"size": {"vars.size": [8, 9]}, "lr": {"train.lr": {"low": 0.1, "high": 0.2}}}
    recipe = recipe_with(tmp_path, axes=axes, baseline="stack_pe")
    again = tmp_path / "again.yaml"
    again.write_text(yaml.safe_dump(recipe.content, sort_keys=False))
    assert read_recipe(again).methods == recipe.methods
    assert read_recipe(again).content == recipe.content


def test_what_a_recipe_does_not_use_is_not_in_its_hash(tmp_path: Path):
    assert not {"axes", "baseline", "differences"} & set(recipe_with(tmp_path).content)


def test_axes_can_be_set_from_the_command_line(tmp_path: Path):
    recipe = recipe_with(
        tmp_path, "axes.lr.train.lr=[0.1, 0.2]", "baseline=stack_pe", "differences.train.seed-x=why"
    )
    assert len(recipe.methods) == 6
    assert recipe.baseline == "stack_pe"
    assert recipe.differences == {"train.seed-x": "why"}
    whole = recipe_with(tmp_path, "axes.lr={train.lr: [0.1, 0.2]}")
    assert whole.methods == recipe.methods


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ([], "axes is []; it must be a mapping"),
        ({"a b": {"train.lr": [1]}}, "the axis name 'a b' is 'a b'; use letters"),
        ({"a": {}}, "axes.a is empty; name at least one option"),
        ({"a": {"lr": [1]}}, "axes.a varies 'lr'; an axis varies flags"),
        ({"seed": {"seeds": [1, 2]}}, "seeds are listed under seeds"),
        ({"a": {"data.source.train": ["x"]}}, "axes.a varies 'data.source.train'; an axis varies"),
        ({"a": {"vars.none": [1]}}, "axes.a varies vars.none, which is not a variable"),
        ({"a": {"methods.none.train.lr": [1]}}, "varies methods.none.train.lr; the methods are seq"),
        ({"a": {"methods.sequence.lr": [1]}}, "axes.a varies 'methods.sequence.lr'; an axis"),
        ({"a": {"train.lr": 3}}, "axes.a gives train.lr the values 3; write a list"),
        ({"a": {"train.lr": []}}, "axes.a gives train.lr the values []"),
        ({"a": {"train.lr": [1], "train.dropout": [1, 2]}}, "has 1 values for train.lr but 2 for"),
        ({"a": {"train.lr": [1]}, "b": {"train.lr": [2]}}, "axes.b varies train.lr, as axes.a does"),
        ({"a": {"train.lr": {"x/y": 1}}}, "axes.a.train.lr has the label 'x/y'; use letters"),
        ({"a": {"train.x": ["p(1)", "p[1]"]}}, "axes.a.train.x would be labelled p_1, p_1; name"),
        ({"a": {"train.x": ["y" * 41]}}, "name its values: {label: value, …}"),
        ({"a": {"train.seed": [1]}}, "methods.sequence-a=1.train.seed is set by the study"),
        ({"a": {"vars.size": [[1]]}}, "vars.size is [1]; it must be text or a number"),
    ],
)  # fmt: skip
def test_faulty_axes_are_refused(tmp_path: Path, axes: object, message: str):
    path = write_recipe(tmp_path, axes=axes)
    with pytest.raises(OptionError) as error:
        read_recipe(path)
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)


def test_two_rows_of_one_name_are_refused(tmp_path: Path):
    """They shared a folder, and each took the runs of the other for its own."""
    method = two_methods()["sequence"]
    axes = {"b-c": {"methods.a.train.lr": [1]}, "c": {"methods.a-b.train.lr": [1]}}
    path = write_recipe(tmp_path, axes=axes, methods={"a": method, "a-b": method})
    with pytest.raises(OptionError, match=r"methods.a-b has the row a-b-c=1, as a does; rename"):
        read_recipe(path)


def domains() -> dict:
    """A recipe with a folder of data for each domain, its variables made of others."""
    data = {
        role: {"lang": lang, **{split: f"{{folder}}/{split}.{suffix}" for split in ("train", "valid", "test")}}
        for role, lang, suffix in (("source", "for", "src"), ("target", "lambda", "tgt"))
    }  # fmt: skip
    return {
        "data": data, "methods": two_methods(), "prepare": ["make {folder} --size {size}"],
        "vars": {"root": "{data}/all", "domain": "law", "folder": "{root}/{domain}", "size": 8},
        "binarize": {"source-subwords": ["{folder}/train.bpe"]},
        "axes": {"domain": {"vars.domain": ["law", "news"]}},
    }  # fmt: skip


def test_an_axis_over_folders_gives_each_point_its_own_data_and_test_set(tmp_path: Path):
    recipe = recipe_with(tmp_path, **domains())
    assert [row.target.test for row in recipe.methods] == [
        "{data}/all/law/test.tgt", "{data}/all/news/test.tgt"
    ] * 2  # fmt: skip
    assert recipe.prepare == ("make {data}/all/law --size 8", "make {data}/all/news --size 8")
    assert baselines(recipe) == {
        "sequence-domain=law": None, "sequence-domain=news": None,
        "relation_mask-domain=law": "sequence-domain=law",
        "relation_mask-domain=news": "sequence-domain=news",
    }  # fmt: skip
    check_fairness(recipe)
    commands = {step.name: " ".join(step.command) for step in make_plan(recipe).steps}
    news = commands["binarize/relation_mask-domain=news"]
    assert "--source-subwords {out}/data/all/news/train.bpe" in news
    assert "--reference {out}/data/all/news/test.tgt" in commands["sequence-domain=news-1/score"]
    again = tmp_path / "again.yaml"
    again.write_text(yaml.safe_dump(recipe.content, sort_keys=False))
    assert read_recipe(again).methods == recipe.methods


def test_rows_with_different_test_sets_are_not_compared(tmp_path: Path):
    with pytest.raises(OptionError, match="baseline has another test set than sequence-domain=law"):
        recipe_with(tmp_path, **domains(), baseline="sequence-domain=news")
    one = {name: two_methods()[name] for name in ["sequence"]}
    assert set(baselines(recipe_with(tmp_path, **{**domains(), "methods": one})).values()) == {None}


def test_a_row_may_bring_its_own_trees_of_the_same_text(tmp_path: Path):
    trees = {split: f"{{data}}/p/{split}.ptb" for split in ("train", "valid", "test")}
    methods = {**two_methods(), "constituents": {
        "arch": "tree_relation_mask_mini", "binarize": {"source-format": "ptb"},
        "data": {"source": trees},
    }}  # fmt: skip
    recipe = recipe_with(tmp_path, methods=methods)
    own = recipe.methods[-1]
    assert (own.source.test, own.source.lang) == ("{data}/p/test.ptb", "for")
    assert own.target == recipe.methods[0].target
    assert recipe.baseline_of(own) == recipe.methods[0]
    check_fairness(recipe)
    steps = {step.name: " ".join(step.command) for step in make_plan(recipe).steps}
    assert "--test {out}/data/p/test.ptb {out}/data/p/test.tgt" in steps["binarize/constituents"]


def test_a_row_may_have_variables_of_its_own_but_no_test_set(tmp_path: Path):
    data = recipe_content()["data"]
    data["source"]["train"] = "{data}/p/train.{parser}"
    methods = two_methods()
    methods["relation_mask"]["vars"] = {"parser": "con"}
    changes = {"methods": methods, "vars": {"size": 8, "parser": "dep"}, "data": data}
    recipe = recipe_with(tmp_path, **changes, prepare=["parse {parser}"])
    assert [row.source.train for row in recipe.methods] == [
        "{data}/p/train.dep",
        "{data}/p/train.con",
    ]
    assert recipe.prepare == ("parse dep", "parse con")
    data["target"]["test"] = "{data}/p/test.{parser}"
    with pytest.raises(
        OptionError, match="relation_mask has other target files than sequence; sco"
    ):
        recipe_with(tmp_path, **changes)
    methods["relation_mask"]["vars"] = {"x": 1}
    with pytest.raises(OptionError, match=r"methods\.relation_mask\.vars\.x is not a variable"):
        recipe_with(tmp_path, **changes)


@pytest.mark.parametrize("at", ["methods", "axes"])
def test_rows_on_one_test_set_have_the_same_categories(tmp_path: Path, at: str):
    """An axis counts as well: the baseline may be a row at one of its points."""
    methods = two_methods()
    changes = {"vars": {"size": 8, "kind": "a"}, "categories": "{data}/{kind}", "methods": methods}
    assert recipe_with(tmp_path, **changes).methods[1].categories == "{data}/a"
    if at == "axes":
        changes["axes"] = {"kind": {"vars.kind": ["a", "b"]}}
    else:
        methods["relation_mask"]["vars"] = {"kind": "b"}
    with pytest.raises(
        OptionError,
        match=r"categories is \{data\}/b for \S+, \{data\}/a for sequence\S*; give all rows on \{data\}/p/test.tgt the",
    ):
        recipe_with(tmp_path, **changes)


def test_names_of_folders_stay_short_enough(tmp_path: Path):
    axes = {"lr": {"train.lr": [number / 1000 for number in range(1, 300)]}}
    plan = make_plan(recipe_with(tmp_path, axes=axes))
    names = [step.name for step in plan.steps]
    assert len(names) == len(set(names))
    assert max(len(part) for name in names for part in name.split("/")) < 200
    assert any("+298-more-" in name for name in names)


def test_a_thousand_runs_are_planned_quickly(tmp_path: Path):
    axes = {"lr": {"train.lr": list(range(1, 101))}}
    recipe = recipe_with(tmp_path, methods=two_methods(), axes=axes, seeds=[1, 2, 3, 4, 5])
    plan = make_plan(recipe)
    assert len(plan.runs) == 1000
    assert len(Keys(plan, Digests(tmp_path), {}).of) == len(plan.steps)
    assert sum(len(plan.steps_of(run)) for run in plan.runs) == len(plan.steps) - 4
