"""The search of a study is that of ``treesyntax translate`` with its checkpoints."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from support.study_helpers import recipe_content, write_recipe, write_study

from treesyntax.commands.study_search import take_search
from treesyntax.commands.translate import add_arguments
from treesyntax.errors import OptionError
from treesyntax.study.recipe.recipe import read_recipe

CHECKPOINT = "runs/sequence-2/checkpoints/checkpoint_best.pt"


def taken(path: Path, *flags: str) -> tuple[object, ...]:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    args = parser.parse_args(["data", "--path", str(path), *flags])
    take_search(args)
    return args.beam, args.max_len_a, args.max_len_b, args.lenpen, args.tree_constraints


@pytest.fixture
def study(tmp_path: Path) -> Path:
    methods = recipe_content()["methods"]
    methods["sequence"]["generate"] = {"lenpen": 2, "min-len": 3}
    generate = {"beam": 1, "max-len-a": 1.5, "max-len-b": 10, "tree-constraints": "none"}
    recipe = write_recipe(tmp_path, generate=generate, methods=methods)
    write_study(tmp_path, read_recipe(recipe))
    return tmp_path


def test_flags_of_the_row_are_the_defaults(study: Path, capsys: pytest.CaptureFixture[str]):
    assert taken(study / CHECKPOINT) == (1, 1.5, 10, 2.0, "none")
    assert capsys.readouterr().err == (
        "search as in the study: --beam 1 --max-len-a 1.5 --max-len-b 10 --lenpen 2 "
        "--tree-constraints none\nthe study also searched with --min-len, which translate does not have\n"
    )
    other = study / "runs/stack_pe-1/checkpoint_average.pt"
    assert taken(other) == (1, 1.5, 10, 1.0, "none")


def test_given_flags_win(study: Path, capsys: pytest.CaptureFixture[str]):
    found = taken(study / CHECKPOINT, "--beam", "7", "--lenpen", "1", "--tree-constraints", "tree")
    assert found == (7, 1.5, 10, 1.0, "tree")
    assert "--beam" not in capsys.readouterr().err


@pytest.mark.parametrize("path", ["model.pt", "runs/other-1/checkpoints/a.pt", "checkpoints/a.pt"])
def test_without_a_study_fairseqs_defaults_hold(study: Path, capsys, path: str):
    assert taken(study / path) == (5, 0.0, 200, 1.0, "auto")
    assert capsys.readouterr().err == ""


def test_a_damaged_recipe_is_told_and_a_bad_value_refused(study: Path, capsys):
    write_recipe(study, generate={"beam": "many"})
    with pytest.raises(OptionError, match="the study searched with --beam many; give --beam"):
        taken(study / CHECKPOINT)
    (study / "recipe.yaml").write_text("name: [")
    assert taken(study / CHECKPOINT) == (5, 0.0, 200, 1.0, "auto")
    assert "translate searches with its own defaults" in capsys.readouterr().err
