"""References that the trees of a row cannot be spelt as: said before anything is trained."""

from __future__ import annotations

from pathlib import Path

import pytest
from study.run.growing_studies import content, run, trained
from support.study_helpers import write_recipe

from treesyntax.errors import OptionError
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.run.early import check_early
from treesyntax.study.run.plan import make_plan
from treesyntax.study.run.references import check_references

pytestmark = pytest.mark.usefixtures("quick")
SPELT = "( larger ohio texas )"


def recipe_of(folder: Path, lines: str, notation: str = "sexpr", **changes: object) -> Path:
    found = content(folder, **changes)
    found["methods"]["stack_pe"]["binarize"] = {
        "target-format": notation,
        "target-view": "nary_dfs",
    }
    found["methods"] = {name: found["methods"][name] for name in ("sequence", "stack_pe")}
    (folder / "files/test.tgt").write_text(lines)
    return write_recipe(folder, **found)


@pytest.mark.parametrize("metric", ["exact", "exact:unseen", "exact@a"])
def test_another_spelling_is_told_with_its_line(metric: str, tmp_path: Path):
    recipe = read_recipe(recipe_of(tmp_path, f"{SPELT}\n(larger ohio texas)\n", score=[metric]))
    with pytest.raises(OptionError, match="1 of 2 references") as raised:
        check_references(recipe)
    assert "line 2: '(larger ohio texas)', written '( larger ohio texas )'" in str(raised.value)
    assert "score tree:sexpr" in str(raised.value)


@pytest.mark.parametrize("metric", ["tree:sexpr", "bleu"])
def test_metrics_that_read_trees_do_not_mind(metric: str, tmp_path: Path):
    check_references(read_recipe(recipe_of(tmp_path, "(larger ohio texas)\n", score=[metric])))


def test_lines_that_are_spelt_alike_are_fine(tmp_path: Path):
    for lines in (f"{SPELT}\n", f" {SPELT} \n", f"{SPELT}\nno tree (\n"):
        check_references(read_recipe(recipe_of(tmp_path, lines)))


def test_a_study_says_so_before_it_begins(tmp_path: Path):
    path = recipe_of(tmp_path, "(larger ohio texas)\n")
    with pytest.raises(OptionError, match="compares spellings"):
        check_early(make_plan(read_recipe(path)), ())


def test_references_that_the_study_makes_are_looked_at_before_a_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """They are there once the recipe's commands are done."""
    path = recipe_of(tmp_path, f"{SPELT}\n")
    changes = read_recipe(path).content
    data = {side: dict(changes["data"][side]) for side in ("source", "target")}
    data["target"]["test"] = "{data}/made.tgt"
    started = run(
        tmp_path, status=2, seeds=[1], data=data, methods=changes["methods"],
        prepare=["sh -c 'mkdir -p {data} && echo \"(larger ohio texas)\" > {data}/made.tgt'"],
    )  # fmt: skip
    assert not trained(started)
    assert "compares spellings" in capsys.readouterr().err


def test_trees_over_several_lines_are_refused(tmp_path: Path):
    path = recipe_of(tmp_path, "(S (A a))\n", "mrg")
    with pytest.raises(OptionError, match="is mrg, whose trees are no lines"):
        check_early(make_plan(read_recipe(path)), ())
