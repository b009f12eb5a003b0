"""The table of a recipe's keys, which the documentation is written from, is that of the code."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from treesyntax.study.recipe import controls, inherit, recipe, rows, search, trainer
from treesyntax.study.recipe.keys import (
    KEYS,
    METHOD_KEYS,
    PRETRAINED_DATA_KEYS,
    PRETRAINED_ROW_KEYS,
    REQUIRED,
    SEARCH_KEYS,
)
from treesyntax.study.recipe.reading import ALIASES, EXTENDS
from treesyntax.study.recipe.recipe import read_recipe

PLAIN = """
name: keys
title: Keys
vars: {size: tiny, root: corpus, pairs: 1000}
data:
  source: {lang: en, train: "{root}/a-{pairs}.en", valid: "{root}/b.en", test: "{root}/c.en"}
  target: {lang: sv, train: "{root}/a-{pairs}.sv", valid: "{root}/b.sv", test: "{root}/c.sv"}
train: {max-update: 100, batch-size: 8, lr: 0.001}
score: [bleu]
seeds: [1, 2]
methods:
  sequence: {arch: "tree_sequence_{size}", binarize: {source-format: conllu, source-view: words}}
  relation_mask: {arch: "tree_relation_mask_{size}", binarize: {source-format: conllu, source-view: words}}
"""


def read(tmp_path: Path, key: str, value, *above: str):
    content = yaml.safe_load(PLAIN)
    if key in trainer.KEYS[1:] or "plain" in above or above == ("data",):
        content |= {"trainer": trainer.HUGGINGFACE, "model": "bert-{size}", "task": "causal"}
        content |= {
            "data": dict.fromkeys(trainer.SPLITS, "a.jsonl"),
            "methods": {
                "other": None,  # all of it as the recipe says
                "plain": {"injection": "relation_mask", "about": "{pairs} pairs"},
            },
        }
    place = content
    for name in above:
        place = place.setdefault(name, {})
    if above == ("search",):
        place.setdefault("over", {"train.lr": [0.001, 0.002, 0.003]})
        if key in ("trials", "seed", "kind"):
            place.update(kind="random", trials=2)
    if key == "hold-out":
        del place["valid"]
    if key == "parser":
        place["format"] = "conllu"
    if key == "at":
        content["axes"] = {"pairs": {"vars.pairs": [1000, 4000]}}
    if key == "methods":
        content.pop("baseline", None)
    if key == "vars" and not above:
        value = {**content["vars"], **value}
    place[key] = value
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return read_recipe(path)


def test_the_keys_are_those_of_the_code():
    required = {key for key, of in KEYS.items() if of.default == REQUIRED}
    assert required == {*recipe.REQUIRED}
    assert {*KEYS} == {*recipe.REQUIRED, *recipe.DEFAULTS, *recipe.OPTIONAL, EXTENDS}
    for key, value in recipe.DEFAULTS.items():
        assert yaml.safe_load(KEYS[key].default) == value
    of_rows = {"arch", inherit.LIKE, rows.ABOUT, controls.CONTROLS, *rows.SECTIONS, *rows.OWN}
    assert {*METHOD_KEYS} == of_rows
    assert {*PRETRAINED_ROW_KEYS} == {*trainer.ROW_KEYS}
    assert {*PRETRAINED_DATA_KEYS} == {*trainer.SPLITS, *trainer.OPTIONAL}
    assert {*SEARCH_KEYS} == {"over", *search.OPTIONAL}
    assert all(name in KEYS[key].meaning for name, key in ALIASES.items())


def test_values_and_defaults_are_those_of_the_code(tmp_path: Path):
    plain = read(tmp_path, "title", "Keys")
    assert KEYS["budget"].type == ", ".join(recipe.BUDGETS)
    assert KEYS["trainer"].type == ", ".join(trainer.TRAINERS)
    assert KEYS["skip"].type == ", ".join(recipe.SKIP)
    assert SEARCH_KEYS["metric"].type == ", ".join(search.METRICS)
    assert SEARCH_KEYS["kind"].type == f"{search.GRID}, {search.RANDOM}"
    assert KEYS["budget"].default == plain.budget
    assert plain.analyses is yaml.safe_load(KEYS["analyses"].default)
    assert plain.average == int(KEYS["average"].default)
    assert plain.baseline == "sequence"
    assert plain.primary == ["bleu"]
    assert not plain.skips
    assert all(kind in METHOD_KEYS["controls"].meaning for kind in controls.KINDS)


@pytest.mark.parametrize("key", [key for key in KEYS if key != EXTENDS])
def test_the_example_of_a_key_is_read(tmp_path: Path, key: str):
    value = yaml.safe_load(KEYS[key].example)
    made = read(tmp_path, key, value)
    assert key in ("vars", "import") or key in made.content


def test_the_example_of_extends_is_read(tmp_path: Path):
    path = tmp_path / "recipe.yaml"
    path.write_text(f"extends: {KEYS['extends'].example}\nname: mine\n", encoding="utf-8")
    assert read_recipe(path, ["vars.root=x", "vars.model=y"]).name == "mine"


@pytest.mark.parametrize("key", METHOD_KEYS)
def test_the_example_of_a_key_of_a_row_is_read(tmp_path: Path, key: str):
    value = yaml.safe_load(METHOD_KEYS[key].example)
    made = read(tmp_path, key, value, "methods", "relation_mask")
    assert len(made.methods) >= 2


@pytest.mark.parametrize("key", PRETRAINED_ROW_KEYS)
def test_the_example_of_a_key_of_a_pretrained_row_is_read(tmp_path: Path, key: str):
    value = yaml.safe_load(PRETRAINED_ROW_KEYS[key].example)
    assert len(read(tmp_path, key, value, "methods", "plain").methods) >= 2


@pytest.mark.parametrize("key", PRETRAINED_DATA_KEYS)
def test_the_example_of_a_key_of_pretrained_data_is_read(tmp_path: Path, key: str):
    value = yaml.safe_load(PRETRAINED_DATA_KEYS[key].example)
    assert read(tmp_path, key, value, "data").content["data"][key] == value


@pytest.mark.parametrize("key", SEARCH_KEYS)
def test_the_example_of_a_key_of_search_is_read(tmp_path: Path, key: str):
    assert read(tmp_path, key, yaml.safe_load(SEARCH_KEYS[key].example), "search").search
