"""Similarity of stack encodings and summed masks of a sentence, against explicit definitions."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import support.oracles as oracles
import torch
from support.analysis_helpers import (
    HEADS,
    LAYERS,
    WIDTH,
    analyse,
    build_methods,
    refused,
    save_methods,
    write_data,
)
from support.helpers import batch_of
from torch import nn

from treesyntax.analysis.encoding_similarity import (
    compute_learned_p,
    compute_moved,
    compute_similarity,
    draw_similarity,
)
from treesyntax.analysis.sentence_masks import compute_sentence_masks, draw_sentence_masks
from treesyntax.analysis.sentences import AnalysedSentence
from treesyntax.analysis.tree_nodes import complete_tree, tokens_of
from treesyntax.data.dictionary import EOS
from treesyntax.nn.relations import RELATIONS
from treesyntax.trees.tree import Tree

TREE = Tree([-1, 0, 1, 1, 0], list("abcde"))


def method(spec: str):
    (built,) = build_methods(spec).values()
    return built


def sentence() -> AnalysedSentence:
    tokens = torch.tensor([[4, 5, 6, 7, 4, EOS]])
    return AnalysedSentence(0, tokens, batch_of([TREE]), ("u", "v", "w", "x", "u", "</s>"))


def cosine(first: list[float], second: list[float]) -> float:
    product = sum(a * b for a, b in zip(first, second, strict=True))
    return product / math.hypot(*first) / math.hypot(*second)


def test_parents_and_siblings_by_hand():
    p, stack_pe = 0.5, method("stack_pe(degree=2, depth=3, parameters=1)")
    nodes = complete_tree(2, 3, 3)
    assert nodes.names == ("root", "0", "1", "00", "01", "10", "11")
    found = compute_similarity(stack_pe, nodes, [p])["p = 0.5"]
    at = nodes.names.index
    assert np.isnan(found[at("root")]).all()
    assert np.isnan(found[:, at("root")]).all()
    # Newest step first: 0 is (e0), 00 is (e0, p e0), 01 is (e1, p e0), 10 is (e0, p e1).
    length = math.sqrt(1 + p * p)
    assert found[at("0"), at("1")] == 0
    assert found[at("0"), at("00")] == pytest.approx(1 / length)
    assert found[at("0"), at("01")] == 0
    assert found[at("00"), at("01")] == pytest.approx(p * p / length**2)
    assert found[at("00"), at("10")] == pytest.approx(1 / length**2)
    assert found[at("01"), at("01")] == pytest.approx(1)


@pytest.mark.parametrize("degree", [2, 3])
def test_cosines_are_those_of_explicit_pushes(degree: int):
    depth = 2
    stack_pe = method(f"stack_pe(tree='nary', degree={degree}, depth={depth}, parameters=3)")
    nodes = complete_tree(degree, 4, depth)
    learned = compute_learned_p(stack_pe).tolist()
    found = compute_similarity(stack_pe, nodes, [0.7])
    assert list(found) == ["p = 0.7", "learned p (3)", "projected"]
    for name, p in (("p = 0.7", [0.7]), ("learned p (3)", learned)):
        vectors = [
            oracles.weighted_stacks(
                [] if label == "root" else [int(step) for step in label], degree, depth, p, WIDTH
            )
            for label in nodes.names
        ]
        for i, j in ((1, 2), (4, 5), (1, 4), (7, 13), (12, 12), (9, 3)):
            expected = cosine(vectors[i], vectors[j])
            assert found[name][i, j] == pytest.approx(expected, abs=1e-6)


def test_projected_is_what_the_model_adds():
    stack_pe = method("stack_pe(depth=4, parameters=2)")
    item = sentence()
    with torch.no_grad():
        rows = stack_pe.node_encoding(item.tree)[0, :5].double()
    expected = nn.functional.cosine_similarity(rows.unsqueeze(1), rows.unsqueeze(0), dim=2)
    nodes = tokens_of(item, stack_pe.tree, stack_pe.depth)
    assert nodes.names == item.symbols[:5]
    found = compute_similarity(stack_pe, nodes, [])
    assert list(found) == ["learned p (2)", "projected"]
    assert np.allclose(found["projected"], expected, atol=1e-6)


def test_operators_move_nodes_to_their_parents_and_children():
    stack_pe = method("stack_pe(tree='nary', degree=3, depth=5, parameters=2)")
    nodes = complete_tree(3, 3, 5)
    found = compute_moved(stack_pe, nodes)
    assert list(found) == ["U", "D0", "D1", "D2"]
    still = compute_similarity(stack_pe, nodes, [])["learned p (2)"]
    for row, name in enumerate(nodes.names):
        name = "" if name == "root" else name
        if len(name) > 1:
            parent = nodes.names.index(name[:-1])
            assert np.allclose(found["U"][row], still[parent], equal_nan=True)
        else:
            assert np.isnan(found["U"][row]).all()
        for child in range(3):
            if name + str(child) in nodes.names:
                below = nodes.names.index(name + str(child))
                assert np.allclose(found[f"D{child}"][row], still[below], equal_nan=True)


def test_a_plain_stack_has_no_p():
    stack_pe = method("stack_pe(degree=2, depth=4, parameters=0, projection='none')")
    found = compute_similarity(stack_pe, complete_tree(2, 2, 4), [])
    assert list(found) == ["no p"]
    assert len(compute_learned_p(stack_pe)) == 0


def test_a_panel_a_matrix_with_named_nodes():
    stack_pe = method("stack_pe(depth=4, parameters=2)")
    nodes = complete_tree(2, 3, 4)
    found = compute_similarity(stack_pe, nodes, [0.2, 0.8])
    figure = draw_similarity(found, nodes.names, "node")
    panels = [axes for axes in figure.axes if axes.get_title()]
    assert [panel.get_title() for panel in panels] == list(found)
    for panel in panels:
        assert [label.get_text() for label in panel.get_xticklabels()] == list(nodes.names)
        assert panel.get_xlabel() == "node"
        assert panel.collections[0].get_clim()[1] == 1


MASKS = {
    "relation_mask": [(name,) for name in RELATIONS],
    "relation_mask(per_head=False, relations='parent, up=parent|ancestor, self')":
        [("parent",), ("parent", "ancestor"), ("self",)],
}  # fmt: skip


@pytest.mark.parametrize("spec", MASKS)
def test_masks_are_summed_pair_by_pair(spec: str):
    mask = method(spec)
    found = compute_sentence_masks(mask, sentence())
    strengths = mask.strengths.detach()
    assert found.summed.shape == (*strengths.shape[:2], 6, 6)
    for layer, head in np.ndindex(*strengths.shape[:2]):
        for i, j in np.ndindex(5, 5):
            name = oracles.relation(TREE, i, j, i, j)
            held = [float(s) for s, cover in zip(strengths[layer, head], MASKS[spec], strict=True)
                    if name in cover]  # fmt: skip
            assert found.summed[layer, head, i, j] == pytest.approx(sum(held))
    assert not found.summed[:, :, 5].any()
    assert not found.summed[:, :, :, 5].any()
    assert found.depths == (0, 1, 2, 2, 1, -1)


def test_a_panel_a_head_over_the_tree():
    found = compute_sentence_masks(method("relation_mask"), sentence())
    figure = draw_sentence_masks(found)
    panels = [axes for axes in figure.axes if axes.get_title()]
    assert [panel.get_title() for panel in panels] == [
        f"layer {layer}, head {head}" for layer in (1, 2) for head in (1, 2)
    ]
    for panel, matrix in zip(panels, found.summed.reshape(4, 6, 6), strict=True):
        assert np.allclose(panel.collections[0].get_array(), matrix)
    names = [label.get_text() for label in panels[0].get_yticklabels()]
    assert names == ["u", "·v", "··w", "··x", "·u", "</s>"]


def write_all(folder: Path, spec: str, side: str = "encoder") -> Path:
    """A checkpoint and data for it."""
    write_data(folder, [[4, 5, 6, 7, 4]], [(TREE, None)], "uvwx")
    return save_methods(folder / "c.pt", build_methods(spec), spec, side)


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_the_similarity_command(tmp_path: Path, side: str):
    path = write_all(tmp_path, "stack_pe(depth=4, parameters=2)", side)
    out = tmp_path / "out"
    words = (path, "--side", side, "--p", 0.5, "--levels", 3, "--out", out)
    assert analyse("encoding_similarity", *words) == 0
    assert {file.name for file in out.iterdir()} == {
        "encoding_similarity.svg", "encoding_similarity_moved.svg", "learned_p.svg",
        "encoding_similarity.json",
    }  # fmt: skip
    numbers = json.loads((out / "encoding_similarity.json").read_text())
    raw = torch.load(path, weights_only=False)["model"][f"{side}.injections.stack_pe.raw"]
    assert np.allclose(numbers["learned_p"], torch.tanh(raw))
    assert numbers["cosine"]["p = 0.5"][0][0] is None
    assert numbers["cosine"]["p = 0.5"][1][1] == pytest.approx(1)
    assert list(numbers["cosine_moved"]) == ["U", "D0", "D1"]
    assert "learned p" in (out / "learned_p.svg").read_text()


def test_the_similarity_command_draws_sentences(tmp_path: Path):
    path = write_all(tmp_path, "stack_pe(depth=4, parameters=0, projection='none')")
    words = (path, "--p", "--data", tmp_path, "--out", tmp_path / "out")
    assert analyse("encoding_similarity", *words) == 0
    numbers = json.loads((tmp_path / "out" / "encoding_similarity.json").read_text())
    assert numbers["nodes"] == list("uvwxu")
    assert numbers["learned_p"] == []
    assert not (tmp_path / "out" / "learned_p.svg").exists()


def test_the_masks_command(tmp_path: Path):
    path = write_all(tmp_path, "relation_mask")
    out = tmp_path / "out"
    assert analyse("sentence_masks", path, tmp_path, "--out", out) == 0
    assert {file.name for file in out.iterdir()} == {"sentence_masks.svg", "sentence_masks.json"}
    numbers = json.loads((out / "sentence_masks.json").read_text())
    assert np.shape(numbers["summed"]) == (LAYERS, HEADS, 6, 6)
    assert numbers["tokens"] == [*"uvwxu", "</s>"]
    assert "summed mask" in (out / "sentence_masks.svg").read_text()


@pytest.mark.parametrize(
    ("name", "spec", "options", "message"),
    [
        ("encoding_similarity", "relation_mask", [],
         "c.pt: has no stack_pe in its encoder; give one of --encoder-injection stack_pe"),
        ("encoding_similarity", "stack_pe(depth=4)", ["--side", "decoder"], "no stack_pe in its dec"),
        ("encoding_similarity", "stack_pe(depth=4)", ["--p", "1.5"], "p must lie between -1 and 1"),
        ("encoding_similarity", "stack_pe(depth=4)", ["--levels", "9"], "for 500 nodes at most"),
        ("encoding_similarity", "stack_pe(depth=4)", ["--levels", "0"], "give 1 or more"),
        ("encoding_similarity", "stack_pe(depth=4)", ["--data", "{}", "--sentence", "1"],
         "sentence 1: valid.en-de.en has sentences 0 to 0"),
        ("sentence_masks", "stack_pe(depth=4)", ["{}"], "c.pt: has no relation_mask in its encoder"),
        ("sentence_masks", "relation_mask", ["{}", "--sentence", "-1"], "sentence -1: "),
        ("sentence_masks", "relation_mask", ["{}", "--subset", "test"], "no single test split"),
    ],
)  # fmt: skip
def test_a_fault_is_one_clear_line(tmp_path, capsys, name, spec, options, message):
    path = write_all(tmp_path, spec)
    words = [option.replace("{}", str(tmp_path)) for option in options]
    assert message in refused(capsys, tmp_path / "out", name, path, *words)


def test_a_sentence_without_nodes_cannot_be_drawn(tmp_path, capsys):
    path = write_all(tmp_path, "stack_pe(depth=4)")
    write_data(tmp_path, [[4]], [(Tree([], []), [-1])], "uvwx")
    words = (path, "--data", tmp_path)
    error = refused(capsys, tmp_path / "out", "encoding_similarity", *words)
    assert "sentence 0 has 0 tokens with a node" in error


def test_parameters_of_another_method_are_one_clear_line(tmp_path, capsys):
    path = save_methods(tmp_path / "c.pt", build_methods("relation_mask"), "stack_pe(depth=4)")
    error = refused(capsys, tmp_path / "out", "encoding_similarity", path)
    assert "its encoder's methods cannot be rebuilt (Missing key" in error
