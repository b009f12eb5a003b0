"""Which row each row of a study is compared with."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.study_helpers import baselines, recipe_content, recipe_with, two_methods

from treesyntax.errors import OptionError
from treesyntax.study.recipe.fairness import check_fairness


def test_the_first_method_is_the_baseline_unless_another_is_named(tmp_path: Path):
    assert baselines(recipe_with(tmp_path)) == {
        "sequence": None, "relation_mask": "sequence", "stack_pe": "sequence",
    }  # fmt: skip
    assert baselines(recipe_with(tmp_path, baseline="stack_pe")) == {
        "sequence": "stack_pe", "relation_mask": "stack_pe", "stack_pe": None,
    }  # fmt: skip
    with pytest.raises(OptionError, match="baseline is 'x'; it must be a method: sequence, rel"):
        recipe_with(tmp_path, baseline="x")


def test_on_shared_axes_rows_are_compared_at_the_same_point(tmp_path: Path):
    axes = {
        "lr": {"train.lr": [1, 2]},
        "control": {"methods.relation_mask.binarize.source-control": ["given", "flat"]},
    }
    recipe = recipe_with(tmp_path, methods=two_methods(), axes=axes)
    assert baselines(recipe) == {
        "sequence-lr=1": None,
        "sequence-lr=2": None,
        "relation_mask-lr=1-control=given": "sequence-lr=1",
        "relation_mask-lr=1-control=flat": "sequence-lr=1",
        "relation_mask-lr=2-control=given": "sequence-lr=2",
        "relation_mask-lr=2-control=flat": "sequence-lr=2",
    }
    one = recipe_with(tmp_path, methods=two_methods(), axes=axes, baseline="sequence-lr=2")
    assert set(baselines(one).values()) == {None, "sequence-lr=2"}
    assert baselines(one)["sequence-lr=1"] == "sequence-lr=2"


def test_the_rows_of_one_method_are_compared_with_the_first(tmp_path: Path):
    methods = {"sequence": recipe_content()["methods"]["sequence"]}
    recipe = recipe_with(tmp_path, methods=methods, axes={"lr": {"train.lr": [1, 2, 3]}})
    assert baselines(recipe) == {
        "sequence-lr=1": None, "sequence-lr=2": "sequence-lr=1", "sequence-lr=3": "sequence-lr=1",
    }  # fmt: skip


def test_a_method_may_stand_at_some_points_alone(tmp_path: Path):
    axes = {"pairs": {"train.max-update": {"few": 10, "many": 20}}}
    methods = two_methods()
    methods["relation_mask"] = {**methods["relation_mask"], "at": {"pairs": ["many"]}}
    recipe = recipe_with(tmp_path, methods=methods, axes=axes)
    names = ["sequence-pairs=few", "sequence-pairs=many", "relation_mask-pairs=many"]
    assert [method.name for method in recipe.methods] == names
    assert baselines(recipe)["relation_mask-pairs=many"] == "sequence-pairs=many"
    check_fairness(recipe)


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ({"size": ["few"]}, "methods.relation_mask.at.size is no axis of the method; it has pairs"),
        ({"pairs": "few"}, "methods.relation_mask.at.pairs is 'few'; it must be a list of labels"),
        ({"pairs": ["none"]}, "is 'none'; it must be one of few, many"),
        ("few", "methods.relation_mask.at is 'few'; it must be a mapping"),
    ],
)
def test_points_that_do_not_exist_are_refused(tmp_path: Path, at: object, message: str):
    axes = {"pairs": {"train.max-update": {"few": 10, "many": 20}}}
    methods = two_methods()
    methods["relation_mask"] = {**methods["relation_mask"], "at": at}
    with pytest.raises(OptionError) as caught:
        recipe_with(tmp_path, methods=methods, axes=axes)
    assert message in str(caught.value)


def test_a_baseline_stands_at_all_points(tmp_path: Path):
    axes = {"pairs": {"train.max-update": {"few": 10, "many": 20}}}
    methods = two_methods()
    methods["sequence"] = {**methods["sequence"], "at": {"pairs": ["many"]}}
    with pytest.raises(OptionError, match="baseline is sequence, which has at"):
        recipe_with(tmp_path, methods=methods, axes=axes)
    recipe_with(tmp_path, methods=methods, axes=axes, baseline="relation_mask")
