"""What is listed for people and, with --json, for scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from treesyntax.__main__ import main
from treesyntax.data.sets import SETS
from treesyntax.study.recipe.shipped import shipped_recipes


def test_data_sets_as_json(capsys: pytest.CaptureFixture[str]):
    assert main(["data", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in listed] == [*SETS]
    assert all(one["licence"] and one["citation"] and one["title"] for one in listed)


def test_recipes_as_json(capsys: pytest.CaptureFixture[str]):
    assert main(["recipes", "--json"]) == 0
    listed = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert {*listed} == {*shipped_recipes()}
    assert Path(listed["demo/for2lam"]["file"]).is_file()
    assert listed["demo/for2lam"]["title"]
