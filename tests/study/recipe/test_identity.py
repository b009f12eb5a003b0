"""The identity of a study, and the folder that belongs to it."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path

import pytest
from support.study_helpers import recipe_content, write_recipe

from treesyntax.errors import InputError, OptionError
from treesyntax.study.recipe.identity import identify, read_identity, write_identity
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.run.folder import check_folder


def test_any_change_makes_another_hash(tmp_path: Path):
    base = identify(read_recipe(write_recipe(tmp_path))).hash
    assert identify(read_recipe(write_recipe(tmp_path))).hash == base
    seen = {base}
    for override in (
        "name=x", "title=x", "question=x", "size=9", "train.lr=0.002", "train.new=1",
        "generate.beam=4", "binarize.workers=2", "score=[exact]", "seeds=[1]",
        "methods.sequence.arch=x", "methods.sequence.train.lr=1", "data.source.lang=x",
        "prepare=[]",
    ):  # fmt: skip
        found = identify(read_recipe(tmp_path / "recipe.yaml", [override])).hash
        assert found not in seen, override
        seen.add(found)


def test_input_files_are_part_of_the_hash(tmp_path: Path):
    data, script = tmp_path / "train.src", tmp_path / "input file.txt"
    data.write_text("a\n")
    script.write_text("b\n")
    content = recipe_content()
    content["data"]["source"]["train"] = str(data)
    content["prepare"] = [f"treesyntax generate split --source {shlex.quote(str(script))}"]
    path = write_recipe(tmp_path, **content)
    first = identify(read_recipe(path))
    assert first.inputs[str(data)] == {"size": 2, "sha256": hashlib.sha256(b"a\n").hexdigest()}
    assert set(first.inputs) == {str(data), str(script)}
    for file in (data, script):
        file.write_text("changed\n")
        second = identify(read_recipe(path))
        assert second.hash != first.hash
        first = second


def test_a_missing_data_file_is_named_with_its_key(tmp_path: Path):
    content = recipe_content()
    content["vars"] = {"root": "nowhere"}
    content["prepare"] = []
    content["data"]["target"]["test"] = "{root}/x"
    path = write_recipe(tmp_path, **content)
    with pytest.raises(OptionError) as error:
        identify(read_recipe(path))
    assert "data.target.test: no such file: nowhere/x" in str(error.value)
    assert "--set root=…" in str(error.value)


def test_a_folder_belongs_to_one_study(path: Path, tmp_path: Path):
    recipe = read_recipe(path)
    identity = identify(recipe)
    folder = tmp_path / "study"
    check_folder(folder, identity)
    folder.mkdir()
    check_folder(folder, identity)
    write_identity(folder, recipe, identity)
    check_folder(folder, identity)
    assert read_identity(folder) == identity
    assert read_recipe(folder / "recipe.yaml").content == recipe.content
    other = identify(read_recipe(path, ["seeds=[7]"]))
    with pytest.raises(OptionError, match=f"holds the study {identity.short}, but the recipe"):
        check_folder(folder, other)
    (folder / "study.json").write_text("{")
    with pytest.raises(InputError, match="is damaged"):
        check_folder(folder, identity)


def test_foreign_folders_and_files_are_refused(path: Path, tmp_path: Path):
    identity = identify(read_recipe(path))
    with pytest.raises(OptionError, match="is not empty and holds no study"):
        check_folder(tmp_path, identity)
    with pytest.raises(OptionError, match="is a file"):
        check_folder(path, identity)
    with pytest.raises(OptionError, match=r"holds no study \(study\.json is missing\)"):
        read_identity(tmp_path)
