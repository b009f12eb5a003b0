"""Attention between stack encodings, against lists of steps and sums written out."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import support.oracles as oracles
from support.analysis_helpers import WIDTH, analyse, build_methods, refused, save_methods

from treesyntax.analysis.paper.encoding_attention import (
    compute_attention,
    default_moves,
    draw_attention,
    file_name,
    read_moves,
)
from treesyntax.analysis.tree_nodes import complete_tree
from treesyntax.errors import OptionError

DEPTH = 3


def method(spec: str):
    (built,) = build_methods(spec).values()
    return built


def literally_moved(steps: list[int], move: list[str]) -> list[int]:
    """The steps of a node, from the root, after U and D0, D1, … one after the other."""
    # What falls off a full stack does not come back, so only the newest steps are known.
    for one in move:
        steps = steps[:-1] if one == "U" else [*steps, int(one[1:])][-DEPTH:]
    return steps


def literal_scores(
    names: list[str], move: list[str], degree: int, p: list[float] | None, temperature: float
) -> list[list[float]]:
    """Row by row softmax of dot products; without p every step counts 1."""

    def encode(steps: list[int]) -> list[float]:
        if p is None:
            return oracles.stack(steps, degree, DEPTH)
        return oracles.weighted_stacks(steps, degree, DEPTH, p, WIDTH)

    paths = [[] if name == "root" else [int(step) for step in name][-DEPTH:] for name in names]
    rows = []
    for path in paths:
        query = encode(literally_moved(path, move))
        logits = [
            sum(a * b for a, b in zip(query, encode(other), strict=True)) / temperature
            for other in paths
        ]
        total = sum(math.exp(logit) for logit in logits)
        rows.append([math.exp(logit) / total for logit in logits])
    return rows


MOVES = {"stay": [], "U": ["U"], "D1": ["D1"], "UU": ["U", "U"], "D0U": ["U", "D0"], "D1D0": ["D0", "D1"]}  # fmt: skip


@pytest.mark.parametrize("degree", [2, 3])
def test_scores_are_those_written_out(degree: int):
    stack_pe = method(f"stack_pe(tree='nary', degree={degree}, depth={DEPTH}, parameters=3)")
    nodes = complete_tree(degree, 5 if degree == 2 else 4, DEPTH)  # deeper than the stack
    found = compute_attention(stack_pe, nodes, [1.0], list(MOVES), 0.5)
    assert list(found) == ["p = 1", "learned p (3)"]
    learned = np.tanh(stack_pe.raw.detach().double().numpy()).tolist()
    for name, p, temperature in (("p = 1", None, 0.5), ("learned p (3)", learned, WIDTH**0.5)):
        assert list(found[name]) == list(MOVES)
        for move, steps in MOVES.items():
            wanted = literal_scores(list(nodes.names), steps, degree, p, temperature)
            assert np.allclose(found[name][move], wanted, atol=1e-6), (name, move)
            assert np.allclose(found[name][move].sum(1), 1)


def test_with_less_than_one_near_steps_count_more():
    stack_pe = method("stack_pe(depth=3, parameters=0, projection='plain')")
    nodes = complete_tree(2, 3, 3)
    found = compute_attention(stack_pe, nodes, [1.0, 0.5], ["stay"], 1.0)
    assert list(found) == ["p = 1", "p = 0.5"]
    at = nodes.names.index
    # Newest first: 01 is (e1, p e0), 11 is (e1, p e1), 00 is (e0, p e0).
    for p in (1.0, 0.5):
        row = found[f"p = {p:g}"]["stay"][at("01")]
        shares = {
            "01": 1 + p * p,
            "11": 1.0,
            "00": p * p,
            "1": 1.0,
            "0": 0.0,
            "10": 0.0,
            "root": 0.0,
        }
        total = sum(map(math.exp, shares.values()))
        for name, logit in shares.items():
            assert row[at(name)] == pytest.approx(math.exp(logit) / total)
    root = found["p = 1"]["stay"][at("root")]
    assert np.allclose(root, 1 / len(nodes.names))


def test_moves_are_read_from_the_right():
    assert read_moves("stay", 2) == []
    assert read_moves("U", 2) == [-1]
    assert read_moves("D1U", 2) == [-1, 1]
    assert read_moves("D10UD0", 11) == [0, -1, 10]
    assert default_moves(2) == ["U", "D0", "D1", "UU", "D0U", "D1U"]
    for text in ("", "u", "D", "UD", "D1 U", "D2"):
        with pytest.raises(OptionError, match="--moves"):
            read_moves(text, 2)
    assert file_name("p = 0.7") == "p_0.7"


def test_all_panels_have_one_scale():
    stack_pe = method("stack_pe(depth=3, parameters=2)")
    nodes = complete_tree(2, 3, 3)
    found = compute_attention(stack_pe, nodes, [1.0], ["stay", "U"], 1.0)["p = 1"]
    figure = draw_attention(found, nodes.names, 0.7)
    panels = [axes for axes in figure.axes if axes.get_title()]
    assert [panel.get_title() for panel in panels] == ["stay", "U"]
    for panel, matrix in zip(panels, found.values(), strict=True):
        assert panel.collections[0].get_clim() == (0.0, 0.7)
        assert np.allclose(panel.collections[0].get_array(), matrix)
        assert [label.get_text() for label in panel.get_xticklabels()] == list(nodes.names)


def test_the_command(tmp_path: Path):
    spec, out = "stack_pe(depth=4, parameters=2)", tmp_path / "out"
    path = save_methods(tmp_path / "c.pt", build_methods(spec), spec)
    words = (path, "--p", 1, "--moves", "U", "D1U", "--levels", 3, "--out", out)
    assert analyse("encoding_attention", *words) == 0
    assert {file.name for file in out.iterdir()} == {
        "encoding_attention.svg", "encoding_attention_p_1.svg", "encoding_attention_learned_p.svg",
        "encoding_attention.json",
    }  # fmt: skip
    numbers = json.loads((out / "encoding_attention.json").read_text())
    assert list(numbers["attention"]) == ["p = 1", "learned p (2)"]
    assert list(numbers["attention"]["p = 1"]) == ["stay", "U", "D1U"]
    assert np.shape(numbers["attention"]["p = 1"]["D1U"]) == (7, 7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--moves", "D2"], "nodes have 2 branches, from D0 to D1"),
        (["--p", "1.5"], "p lies between -1 and 1"),
        (["--temperature", "0"], "give more than 0"),
        (["--temperature", "nan"], "give more than 0"),
    ],
)
def test_a_fault_is_one_clear_line(tmp_path, capsys, options, message):
    spec = "stack_pe(depth=4, parameters=2)"
    path = save_methods(tmp_path / "c.pt", build_methods(spec), spec)
    assert message in refused(capsys, tmp_path / "out", "encoding_attention", path, *options)
