"""The picture of a method shows what it computes, and those of the docs are up to date."""

from __future__ import annotations

import html
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
from support import ROOT

from treesyntax.__main__ import main
from treesyntax.analysis.paper.method import cell_texts, cells_of, untrained
from treesyntax.methods import METHODS
from treesyntax.trees.formats import parse_tree

PAGES = runpy.run_path(str(ROOT / ".ci/method_pages.py"))
TREE = parse_tree(PAGES["TREE"], "ptb")  # S NP the cat VP sees NP it


def values_of(spec: str) -> np.ndarray:
    shown = cells_of(*untrained(spec).values(), TREE)
    assert shown is not None
    return shown.values


@pytest.mark.parametrize("name", METHODS)
def test_the_picture_in_the_docs_has_the_numbers_of_the_method(name: str):
    """make figures draws them again."""
    picture = ROOT / f"docs/figures/methods/{PAGES['place_of'](name)}.svg"
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", picture.read_text("utf-8"))
    texts = [html.unescape(text) for text in texts]
    shown = cells_of(untrained(name)[name], TREE)
    if shown is None:
        assert "sees" in texts
        return
    numbers = [text for text in cell_texts(shown.values).ravel().tolist() if text]
    assert "\n".join(numbers) in "\n".join(texts)


def test_what_is_shown_is_what_the_formula_says():
    parents = values_of("parent_head")
    assert parents.argmax(1).tolist() == [0, 0, 1, 1, 0, 4, 4, 6]
    assert parents.sum(1).tolist() == [1] * 8
    near = values_of("distance_head")
    assert near.sum(1) == pytest.approx(np.ones(8))
    assert near[2, 2] / near[2, 3] == pytest.approx(np.exp(2)), "two edges apart"
    assert values_of("rotary").diagonal() == pytest.approx(np.ones(8))
    lengths = values_of("tree_distance")
    assert lengths[2].tolist() == [2, 1, 0, 2, 3, 4, 4, 5]
    seen = values_of("constrained_mask(views='ancestors<=1, all')")
    assert seen[7].tolist() == [1, 1, 1, 1, 1, 1, 2, 2]
    leaves = values_of("hierarchical_accumulation(weighted=False)")
    assert leaves[1, [1, 2, 3]] == pytest.approx([0.5, 0.25, 0.25])
    walk = values_of("random_walk_pairs")
    assert walk[2, 3] == pytest.approx(1 / 3), "up to NP, and then one of three ways"
    assert (values_of("random_walk")[2, 0]) == pytest.approx(1 / 3)


def test_a_method_with_arguments_on_a_tree_of_your_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    words = ["analyse", "method", "stack_pe(depth=4)+rotary", "--tree", "(A b)"]
    assert main([*words, "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"rotary.svg", "stack_pe.svg"}
    assert main(["analyse", "method", "stuck_pe", "--out", str(tmp_path)]) == 2
    assert "stack_pe" in capsys.readouterr().err
