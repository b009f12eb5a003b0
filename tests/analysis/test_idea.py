"""The picture of the README shows what the code computes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from treesyntax.__main__ import main
from treesyntax.analysis.idea import draw_idea, node_coordinates
from treesyntax.trees.formats import parse_tree

TREE = parse_tree("(S (NP the cat) (VP sees (NP it)))", "ptb")


def test_a_parent_stands_above_the_middle_of_its_children():
    found = dict(zip(TREE.labels, node_coordinates(TREE).tolist(), strict=True))
    assert found["the"] == [0, -2]
    assert found["it"] == [3, -3]
    assert found["VP"] == [2.5, -1]
    assert found["S"] == [1.5, 0]


def test_every_panel_holds_the_numbers_of_its_method():
    trees, brackets, grown, stacks, masks, depths = draw_idea(TREE).axes
    assert [text.get_text() for text in brackets.texts] == [
        "(S", "(NP", "the", "cat", ")", "(VP", "sees", "(NP", "it", ")", ")", ")",
    ]  # fmt: skip
    shown = [text.get_text() for text in grown.texts]
    assert shown[::2] == ["S", "NP", "the", "cat", "VP", "?", "NP", "it"]
    assert [text.get_text() for text in trees.texts][1::2] == [*"01234567"]
    path_of_it = stacks.images[0].get_array()[7]
    assert path_of_it.tolist() == [0, 1, 1], "the only child of the second child of the second"
    relations = masks.images[0].get_array()
    assert relations[0, 0] == 0, "self"
    assert len(np.unique(relations)) == 9
    assert depths.images[0].get_array()[7].tolist() == [-3, -2, -1, -1, -2, -1, -1, 0]


def test_any_tree_can_be_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["analyse", "idea", "--tree", "(A b)", "--out", str(tmp_path)]) == 0
    assert ">b<" in (tmp_path / "idea.svg").read_text()
    assert main(["analyse", "idea", "--tree", "(A b", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("words", [("idea",), ("method", "stack_pe")])
def test_an_empty_tree_is_refused(words: tuple[str, ...], tmp_path: Path, capsys):
    assert main(["analyse", *words, "--tree", "", "--out", str(tmp_path / "out")]) == 2
    assert "--tree is empty" in capsys.readouterr().err
