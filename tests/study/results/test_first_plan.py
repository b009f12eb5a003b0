"""What a study was to compare before its first score, and what differs from that."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from study.run.growing_studies import content, run
from support.study_helpers import recipe_content, recipe_with, result

from treesyntax.errors import InputError
from treesyntax.files import read_json
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.results.first_plan import PLAN_FILE, UNKNOWN, changes_since, note_plan
from treesyntax.study.results.results import write_results


def planned(folder: Path, **changes: Any) -> list[str]:
    """A plan, a score of the row sequence, and what changes of the recipe are told then."""
    note_plan(folder, recipe_with(folder))
    write_results(folder / "runs.jsonl", [result("sequence")])
    later = recipe_with(folder, **changes)
    note_plan(folder, later)
    return changes_since(folder, later)


def test_an_edit_before_the_first_score_belongs_to_the_plan(tmp_path: Path):
    note_plan(tmp_path, recipe_with(tmp_path))
    later = recipe_with(tmp_path, seeds=[1, 2, 3])
    assert changes_since(tmp_path, later) == ["Added after the first score: seed 3."]
    note_plan(tmp_path, later)
    assert changes_since(tmp_path, later) == []
    assert read_json(tmp_path / PLAN_FILE)["seeds"] == [1, 2, 3]


METHODS = recipe_content()["methods"]
NEW = {**METHODS, "new": {"arch": "tree_up_down_mini", "binarize": {"source-format": "for"}}}


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        ({}, []),
        ({"title": "Another"}, []),
        ({"baseline": "stack_pe"},
         ["The baseline was sequence before the first score; now it is stack_pe."]),
        ({"primary": "tree:lambda"},
         ["The metric that decides was exact before the first score; now it is tree:lambda."]),
        ({"score": ["exact", "tree:lambda", "bleu"]}, ["Added after the first score: metric bleu."]),
        ({"seeds": [1, 2, 3, 4]}, ["Added after the first score: seeds 3, 4."]),
        ({"seeds": [1]}, ["Taken away after the first score: seed 2."]),
        ({"methods": NEW}, ["Added after the first score: row new."]),
        ({"methods": {name: METHODS[name] for name in ("sequence", "stack_pe")}},
         ["Taken away after the first score: row relation_mask."]),
        ({"strongest": ["sequence", "stack_pe"]},
         ["Added after the first score: strongest rows sequence, stack_pe."]),
        ({"budget": "fixed"}, ["Changed after the first score: budget from rest to fixed."]),
        ({"train": {"max-update": 9, "lr": 0.001}},
         ["Changed after the first score: train.max-update from 5 to 9, of all rows."]),
        ({"methods": {**METHODS, "stack_pe": {**METHODS["stack_pe"], "train": {"lr": 1}}}},
         ["Changed after the first score: train.lr from 0.001 to 1, of row stack_pe."]),
        ({"methods": {**METHODS, "stack_pe": {**METHODS["stack_pe"], "controls": ["random"]}}},
         ["Added after the first score: row stack_pe/random.",
          "Changed after the first score: controls from none to stack_pe/random, of row stack_pe."]),
    ],
)  # fmt: skip
def test_what_came_after_the_first_score_is_told(
    changes: dict, sentences: list[str], tmp_path: Path
):
    assert planned(tmp_path, **changes) == sentences


def test_a_row_that_came_and_went_is_told(tmp_path: Path):
    planned(tmp_path)
    write_results(tmp_path / "runs.jsonl", [result("tried")])
    assert changes_since(tmp_path, recipe_with(tmp_path)) == [
        "Taken away after the first score: row tried."
    ]


def test_of_an_older_study_no_plan_is_known(tmp_path: Path):
    recipe = recipe_with(tmp_path)
    assert changes_since(tmp_path, recipe) == []
    write_results(tmp_path / "runs.jsonl", [result("sequence")])
    note_plan(tmp_path, recipe)
    assert not (tmp_path / PLAN_FILE).exists()
    assert changes_since(tmp_path, recipe) == [UNKNOWN]
    (tmp_path / PLAN_FILE).write_text("{}")
    with pytest.raises(InputError, match="is no plan of a study: it lacks "):
        changes_since(tmp_path, recipe)


@pytest.mark.usefixtures("quick")
def test_a_study_keeps_its_first_plan(tmp_path: Path):
    run(tmp_path, seeds=[1])
    first = read_json(tmp_path / "out" / PLAN_FILE)
    assert first["seeds"] == [1]
    assert [*first["rows"]] == [*content(tmp_path)["methods"]]
    run(tmp_path, seeds=[1, 2])
    assert read_json(tmp_path / "out" / PLAN_FILE) == first
    recipe = read_recipe(tmp_path / "out/recipe.yaml")
    assert changes_since(tmp_path / "out", recipe) == ["Added after the first score: seed 2."]


def test_other_lines_or_another_own_metric_under_the_same_name_are_told(tmp_path: Path):
    """Both score all outputs anew, so nothing else says it."""
    categories, part, package = tmp_path / "cat", "score: own/mine.py", "score: own/package numpy"
    categories.write_text("gen\ntest\n")
    recipe = recipe_with(tmp_path, categories=str(categories))
    note_plan(tmp_path, recipe, {part: "a", package: "1"})
    same = replace(result("sequence"), code={part: "a", package: "1"})
    write_results(tmp_path / "runs.jsonl", [same])
    assert changes_since(tmp_path, recipe) == []
    categories.write_text("gen\ngen\n")
    write_results(
        tmp_path / "runs.jsonl", [same, replace(same, seed=2, code={part: "b", package: "2"})]
    )
    assert changes_since(tmp_path, recipe) == [
        "Changed after the first score: the categories of test lines.",
        "Changed after the first score: mine.py, by which outputs are scored.",
        "Changed after the first score: package numpy, by which outputs are scored.",
    ]
    categories.unlink()
    assert len(changes_since(tmp_path, recipe)) == 2


@pytest.mark.usefixtures("quick")
def test_a_study_notes_its_own_metrics(tmp_path: Path):
    """The file may register any metric, since its name is not written out."""
    own = tmp_path / "own.py"
    for number, told in ((1, []), (2, ["own.py, by which outputs"])):
        own.write_text(
            "from treesyntax.metrics import register_metric\n\n"
            f"@register_metric('m' * {number})\ndef mine(hypotheses, references):\n    return []\n"
        )
        run(tmp_path, seeds=[1], **{"import": "own.py"})
        notes = changes_since(tmp_path / "out", read_recipe(tmp_path / "out/recipe.yaml"))
        assert all(text in note for text, note in zip(told, notes, strict=True))
