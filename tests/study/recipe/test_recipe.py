"""Recipes, overrides, and what makes a study itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from support.fake_programs import UPDATES
from support.study_helpers import RECIPES, recipe_content, write_recipe

from treesyntax.errors import InputError, OptionError
from treesyntax.study.recipe.fairness import check_fairness
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.run.plan import make_plan


def test_a_recipe_is_read_and_variables_replaced(path: Path):
    recipe = read_recipe(path)
    assert recipe.name == "demo"
    assert recipe.prepare == ("treesyntax generate for2lam --out {data}/p --size 8",)
    assert recipe.source.train == "{data}/p/train.src"
    assert [method.name for method in recipe.methods] == ["sequence", "relation_mask", "stack_pe"]
    assert recipe.question == ""


def test_the_resolved_recipe_is_a_fixed_point(path: Path, tmp_path: Path):
    recipe = read_recipe(path, ["size=9", "train.clip-norm=0.1"])
    again = tmp_path / "again.yaml"
    again.write_text(yaml.safe_dump(recipe.content, sort_keys=False))
    assert read_recipe(again).content == recipe.content


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"metods": {}}, "an unknown key 'metods'; did you mean 'methods'? valid keys are name, title"),
        ({"methods": {}}, "methods is empty"),
        ({"methods": []}, "methods is []; it must be a mapping"),
        ({"methods": {"a": {"arc": "x"}}}, "methods.a has an unknown key 'arc'"),
        ({"methods": {"a": {}}}, "methods.a lacks the key 'arch'"),
        ({"methods": {"a/b": {"arch": "x"}}}, "'a/b' is 'a/b'; use letters"),
        ({"methods": {"_a": {"arch": "x"}}}, "'_a' begins with _, and figures leave such names out"),
        ({"name": "../x"}, "name is '../x'; use letters"),
        ({"title": 3}, "title is 3; it must be text: write it in quotes"),
        ({"title": False}, "title is False, as YAML reads no, off and false; it must be text: write it in quotes"),
        ({"seeds": [1, 1]}, "seeds is [1, 1]; each may occur only once"),
        ({"seeds": ["a"]}, "seeds is ['a']; it must be a list of whole numbers"),
        ({"seeds": []}, "seeds is []"),
        ({"score": "exact"}, "score is 'exact'; it must be a list of names"),
        ({"prepare": "make"}, "prepare is 'make'; it must be a list"),
        ({"prepare": ["x {nowhere}"]}, "command 1, holds {nowhere}, which is not a variable"),
        ({"data": {"source": {}}}, "data lacks the key 'target'"),
        ({"data": {"source": {}, "target": {}}}, "data.source lacks the key 'lang'"),
        ({"train": {"seed": 3}}, "train.seed is set by the study; list the seeds under seeds"),
        ({"train": {"no_epoch_checkpoints": True}}, "is set by the study; leave it out"),
        ({"train": {"--lr": 3}}, "train has the flag '--lr'; write flags without dashes"),
        ({"train": {"lr": {"a": 1}}}, "train.lr is {'a': 1}; a flag takes"),
        ({"generate": {"path": "x"}}, "generate.path is set by the study"),
        ({"binarize": {"train": "x"}}, "binarize.train is set by the study"),
        ({"vars": {"data": "x"}}, "vars.data is the study's own folder"),
        ({"vars": {"root": [1]}}, "vars.root is [1]; it must be text or a number"),
    ],
)  # fmt: skip
def test_a_faulty_recipe_is_refused_with_key_and_file(tmp_path: Path, changes: dict, message: str):
    path = write_recipe(tmp_path, **changes)
    with pytest.raises(OptionError) as error:
        make_plan(read_recipe(path))
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)


def test_a_missing_key_and_equal_languages_are_refused(tmp_path: Path):
    content = recipe_content()
    del content["seeds"]
    path = tmp_path / "r.yaml"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(OptionError, match="the recipe lacks the key 'seeds'; it needs name, title"):
        read_recipe(path)
    content = recipe_content()
    content["data"]["target"]["lang"] = "for"
    path.write_text(yaml.safe_dump(content))
    with pytest.raises(OptionError, match=r"data\.target\.lang is 'for' like the source's"):
        read_recipe(path)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("name: [", 1, "is not YAML"),
        ("a: 1\nb: 2\na: 3\n", 3, "the key 'a' occurs twice"),
        ("- 1\n", None, "holds no recipe"),
        ("a: \x01", None, "is not YAML"),
    ],
)
def test_a_file_that_is_no_yaml_mapping_is_refused(
    tmp_path: Path, text: str, line: int | None, message: str
):
    path = tmp_path / "r.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as error:
        read_recipe(path)
    if line:
        assert error.value.line == line


def test_unbalanced_quotes_under_prepare_are_refused(tmp_path: Path):
    with pytest.raises(OptionError, match="prepare, command 1: no closing quotation"):
        make_plan(read_recipe(write_recipe(tmp_path, prepare=["echo 'x"])))


def test_overrides_change_entries(path: Path):
    recipe = read_recipe(
        path,
        ["seeds=[3]", "train.lr=0.5", "train.fp16=true", "methods.sequence.train.lr=1", "size=4",
         "methods.stack_pe=null"],
    )  # fmt: skip
    assert recipe.seeds == (3,)
    assert [method.name for method in recipe.methods] == ["sequence", "relation_mask"]
    assert recipe.train == {"max-update": UPDATES, "lr": 0.5, "fp16": True}
    assert recipe.methods[0].train == {"lr": 1}
    assert recipe.prepare[0].endswith("--size 4")


def test_both_spellings_of_a_renamed_flag_are_one_flag(path: Path):
    recipe = read_recipe(
        path,
        [
            "binarize.source-view=words",
            "methods.relation_mask.binarize.source-linearization=preorder",
            "methods.stack_pe.binarize.source_linearization=preorder",
        ],
    )
    assert [recipe.flags(method, "binarize").get("source-view") for method in recipe.methods] == [
        "words", "preorder", "preorder",
    ]  # fmt: skip
    names = [step.name for step in make_plan(recipe).steps if step.name.startswith("binarize/")]
    assert names == ["binarize/sequence", "binarize/relation_mask+stack_pe"]
    with pytest.raises(OptionError, match="varies binarize.source-linearization, as axes.a does"):
        read_recipe(
            path,
            ["axes.a={binarize.source-view: [words]}",
             "axes.b={binarize.source-linearization: [words]}"],
        )  # fmt: skip


def test_an_override_leaves_other_recipes_alone(path: Path, tmp_path: Path):
    content = recipe_content()
    del content["generate"]
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump(content))
    assert read_recipe(other, ["generate.beam=2"]).generate == {"beam": 2}
    assert read_recipe(other).generate == {}


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed=3", "the recipe has no entry 'seed'; it has name"),
        ("methods.sequense.arch=x", "methods has no entry 'sequense'; it has sequence"),
        ("methods.sequence.ark=x", "methods.sequence has no entry 'ark'"),
        ("data.source.train.x=1", "data.source.train has no entries"),
        ("seeds", "write it as key=value"),
        ("a..b=1", "write it as key=value"),
        ("seeds=[1", "the value is not YAML"),
    ],
)
def test_an_override_that_does_not_fit_is_refused(path: Path, override: str, message: str):
    with pytest.raises(OptionError) as error:
        read_recipe(path, [override])
    assert message in str(error.value)


def test_an_override_may_add_any_key_of_a_row(tmp_path: Path):
    path = write_recipe(tmp_path)
    recipe = read_recipe(
        path, ["methods.stack_pe.controls=[random]", "methods.stack_pe.about=sums"]
    )
    rows = {method.name: method for method in recipe.methods}
    assert rows["stack_pe"].controls == ("stack_pe/random",)
    assert rows["stack_pe"].about == "sums"
    with pytest.raises(OptionError, match="methods.stack_pe has an unknown key 'injection'"):
        read_recipe(path, ["methods.stack_pe.injection=stack_pe"])


@pytest.mark.parametrize("override", ["speed=4", "vars.speed=4"])
def test_a_variable_that_nothing_uses_cannot_be_set(tmp_path: Path, override: str):
    path = write_recipe(tmp_path, vars={**recipe_content()["vars"], "speed": 3})
    read_recipe(path)
    with pytest.raises(OptionError, match="has no use for the variable speed; it uses .*size"):
        read_recipe(path, [override])


def test_a_variable_may_be_used_through_another(tmp_path: Path):
    path = write_recipe(tmp_path, vars={**recipe_content()["vars"], "size": "{speed}", "speed": 3})
    assert read_recipe(path, ["speed=4"]).prepare[0].endswith("--size 4")


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_the_recipes_of_the_repository_are_valid_and_fair(file: Path):
    recipe = read_recipe(file)
    check_fairness(recipe)
    first = {"what_helps": "full"}  # it asks what settings of one model bring
    usual = "plain" if file.parent.name == "pretrained" else "sequence"
    assert recipe.methods[0].base == first.get(file.stem, usual)
    assert make_plan(recipe).runs
    assert file.read_text().startswith("# treesyntax study recipes/")


def test_a_method_says_what_it_is(tmp_path: Path):
    content = recipe_content()
    content["vars"]["kind"] = "binary"
    content["methods"]["stack_pe"]["about"] = "reads a {kind} tree"
    recipe = read_recipe(write_recipe(tmp_path, **content))
    assert [method.about for method in recipe.methods] == ["", "", "reads a binary tree"]
    content["methods"]["stack_pe"]["about"] = ["a", "b"]
    with pytest.raises(
        OptionError, match=r"methods.stack_pe.about is \['a', 'b'\]; it must be text"
    ):
        read_recipe(write_recipe(tmp_path, **content))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_row_of_a_shipped_recipe_says_what_it_is(path: Path):
    assert not [method.name for method in read_recipe(path).methods if not method.about]
