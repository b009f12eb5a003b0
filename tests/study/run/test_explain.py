"""Messages of steps name the keys of the recipe."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.study_helpers import recipe_content, recipe_with

from treesyntax.study.run.failures import in_recipe
from treesyntax.study.run.plan import make_plan
from treesyntax.study.run.steps import Step


@pytest.fixture
def steps(tmp_path: Path) -> dict[str, Step]:
    content = recipe_content()
    binarize = {"subword-vocab": "{vocab}", "source-view": "words", "source-format": "for"}
    recipe = recipe_with(
        tmp_path,
        vars={"size": 8, "vocab": 4000},
        binarize=binarize,
        methods={"a": content["methods"]["sequence"]},
    )
    plan = make_plan(recipe)
    return {step.kind: (step, plan) for step in plan.steps}


@pytest.mark.parametrize(
    ("kind", "message", "told"),
    [
        ("binarize", "too few; the largest is --subword-vocab 9", "binarize.subword-vocab or vars.vocab"),
        ("binarize", "--source-linearization words: no", "binarize.source-view"),
        ("prepare", "a.conllu:3: is empty", "prepare, command 1,"),
    ],
)  # fmt: skip
def test_the_key_stands_behind_the_message(steps, kind: str, message: str, told: str):
    step, plan = steps[kind]
    assert in_recipe(message, step, plan) == f"{message} ({told} of recipe.yaml)"


def test_a_message_without_a_flag_of_the_recipe_stays(steps):
    for kind, message in (
        ("binarize", "disk is full"),
        ("train", "out of memory"),
        ("train", "--help"),
    ):
        assert in_recipe(message, *steps[kind]) == message
