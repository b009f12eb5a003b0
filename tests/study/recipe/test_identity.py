"""What a study's folder says of itself, and whose folder it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.study_helpers import recipe_content, write_recipe

from treesyntax.errors import InputError, OptionError
from treesyntax.study.recipe.identity import (
    check_data_files,
    find_changes,
    make_identity,
    read_identity,
    write_identity,
)
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.run.folder import check_folder, default_folder


def test_a_missing_data_file_is_named_with_its_key(tmp_path: Path):
    content = recipe_content()
    content["vars"] = {"root": "nowhere"}
    content["prepare"] = []
    content["data"]["target"]["test"] = "{root}/x"
    path = write_recipe(tmp_path, **content)
    with pytest.raises(OptionError) as error:
        check_data_files(read_recipe(path))
    assert "data.target.test: no such file: nowhere/x" in str(error.value)
    assert "--set root=…" in str(error.value)


def test_a_study_keeps_its_hash_and_folder_when_it_grows(path: Path, tmp_path: Path):
    recipe, folder = read_recipe(path), tmp_path / "study"
    check_folder(folder)
    first = make_identity(recipe, {"a": {"size": 1, "sha256": "0"}}, {"sequence-1": "k"})
    write_identity(folder, recipe, first)
    check_folder(folder)
    assert read_identity(folder) == first
    assert read_recipe(folder / "recipe.yaml").content == recipe.content
    more = read_recipe(path, ["seeds=[1, 2, 3]", "title=x"])
    second = make_identity(more, {"b": {"size": 1, "sha256": "1"}}, {"sequence-3": "l"}, first)
    assert second.hash == first.hash
    assert second.digests == {"a": "0", "b": "1"}
    assert default_folder(more) == default_folder(recipe) == Path("runs/demo")


def test_what_an_edit_changes_is_told(path: Path, tmp_path: Path):
    recipe = read_recipe(path)
    (lost,) = find_changes(tmp_path / "none", recipe)
    assert lost == "recipe.yaml is lost or damaged, and is written again"
    write_identity(tmp_path / "study", recipe, make_identity(recipe, {}, {}))
    assert find_changes(tmp_path / "study", recipe) == []
    overrides = ["seeds=[1, 3, 4]", "score=[tree:lambda, exact]", "train.lr=0.01",
                 "methods.stack_pe=null", "average=2", "train.save-interval-updates=1"]  # fmt: skip
    lines = find_changes(tmp_path / "study", read_recipe(path, overrides))
    assert lines == [
        "train.lr: 0.001 -> 0.01",
        "train.save-interval-updates: nothing -> 1",
        "score: in another order",
        "seeds: + 3, 4; - 2",
        "methods.stack_pe: {'arch': 'tree_stack_pe_mini', 'binarize': {'source-format': 'for'}} "
        "-> nothing",
        "average: nothing -> 2",
    ]


def test_folders_of_older_versions_are_refused_in_one_line(path: Path, tmp_path: Path):
    old = {"hash": "0" * 64, "version": "0.1", "inputs": {}}
    (tmp_path / "study").mkdir()
    (tmp_path / "study/study.json").write_text(json.dumps(old))
    with pytest.raises(OptionError, match="before runs had keys; report it with the version"):
        check_folder(tmp_path / "study")
    (tmp_path / "study/study.json").write_text("{")
    with pytest.raises(InputError, match="is damaged"):
        check_folder(tmp_path / "study")


def test_foreign_folders_and_files_are_refused(path: Path, tmp_path: Path):
    with pytest.raises(OptionError, match="is not empty and holds no study"):
        check_folder(tmp_path)
    with pytest.raises(OptionError, match="is a file"):
        check_folder(path)
    with pytest.raises(OptionError, match=r"holds no study \(study\.json is missing\)"):
        read_identity(tmp_path)
