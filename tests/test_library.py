"""``import treesyntax as ts``: its public names, from a text to the output of a model, without fairseq."""

from __future__ import annotations

import ast
import sys

import pytest
import torch
from support import ROOT
from torch import nn

import treesyntax as ts
from treesyntax.errors import need_package

SENTENCE = "the cat sat , unhappily"
BRACKETS = "(S (NP (DT the) (NN cat)) (VP (VBD sat) (, ,) (ADV unhappily)))"
# As a tokenizer for subwords gives them: <s> the cat sat , un happ ily </s> <pad>
OFFSETS = [(0, 0), (0, 3), (4, 7), (8, 11), (12, 13), (14, 16), (16, 20), (20, 23), (0, 0), (0, 0)]


def labels_of(tree: ts.Tree, nodes: list[int]) -> list[str]:
    return ["-" if node < 0 else tree.labels[node] for node in nodes]


def test_every_public_name_is_there_and_typed():
    """The names that type checkers see are those that load."""
    source = ast.parse((ROOT / "treesyntax/__init__.py").read_text("utf-8"))
    (typed,) = [node for node in source.body if isinstance(node, ast.If)]
    seen = {alias.name for node in typed.body for alias in node.names}
    assert seen == set(ts.__all__)
    for name in ts.__all__:
        assert getattr(ts, name).__doc__, name
    assert set(ts.__all__) <= set(dir(ts))
    with pytest.raises(AttributeError, match="has no attribute 'encode'"):
        _ = ts.encode
    assert (ROOT / "treesyntax/py.typed").exists()


def test_from_a_text_to_the_output_of_an_encoder():
    tree = ts.parse_tree(BRACKETS, "ptb")
    nodes = ts.align(tree, OFFSETS, SENTENCE)
    assert labels_of(tree, nodes) == [
        "-", "the", "cat", "sat", ",", "unhappily", "unhappily", "unhappily", "-", "-",
    ]  # fmt: skip
    batch = ts.batch_trees([tree, ts.to_binary(tree)], [nodes, nodes[:6]])
    config = ts.TransformerConfig(16, 32, 4, 2, injection="stack_pe(depth=4)+relation_mask")
    encoder = ts.Encoder(config, nn.Embedding(20, 16, padding_idx=1)).eval()
    tokens = torch.randint(4, 20, (2, 10))
    output = encoder(tokens, batch)
    assert output.memory.shape == (2, 10, 16)
    other = ts.batch_trees([ts.control_tree(tree, "right_branching", 1)], [[-1] * 10])
    assert not torch.equal(encoder(tokens[:1], other).memory, output.memory[:1])
    decoder = ts.Decoder(ts.TransformerConfig(16, 32, 4, 2), nn.Embedding(20, 16, padding_idx=1))
    assert decoder(tokens[:, :3], output).shape == (2, 3, 20)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("first", "- the cat sat , unhappily - - - -"), ("last", "- the cat sat , - - unhappily - -")],
)
def test_one_token_of_a_word_stands_on_its_node(policy: str, expected: str):
    tree = ts.parse_tree(BRACKETS, "ptb")
    assert labels_of(tree, ts.align(tree, OFFSETS, SENTENCE, policy=policy)) == expected.split()
    with pytest.raises(ts.OptionError, match="no subword policy is named 'all'; there are copy"):
        ts.align(tree, OFFSETS, SENTENCE, policy="all")


def test_a_token_over_several_words_belongs_to_the_highest_and_one_between_to_the_next():
    tree = ts.parse_tree("1\tdo\t_\t_\t_\t_\t2\tx\t_\t_\n2\tn't\t_\t_\t_\t_\t0\tr\t_\t_", "conllu")
    assert labels_of(tree, ts.align(tree, [(0, 5)], "don't")) == ["n't"]
    assert labels_of(tree, ts.align(tree, [(0, 2), (2, 3), (3, 6), (6, 7)], "do n't ")) == [
        "do", "n't", "n't", "n't",
    ]  # fmt: skip
    spans = [(0, 5), (0, 5)]
    assert labels_of(tree, ts.align(tree, [(0, 2), (2, 5)], spans=spans)) == ["n't", "n't"]


def test_words_that_are_not_the_texts_are_refused():
    tree = ts.parse_tree(BRACKETS, "ptb")
    with pytest.raises(ts.TreeError, match=r"word 2 \('cat'\) is not at character 4"):
        ts.align(tree, OFFSETS, "the dog sat")
    with pytest.raises(ts.TreeError, match="2 spans, but the tree has 5 words"):
        ts.align(tree, OFFSETS, spans=[(0, 3), (4, 7)])
    with pytest.raises(ts.TreeError, match="a token is of word 6, but the tree has 5 words"):
        ts.align_words(tree, [None, 0, 5])
    assert labels_of(tree, ts.align_words(tree, [None, 0, 4, 4])) == [
        "-", "the", "unhappily", "unhappily",
    ]  # fmt: skip


def test_a_batch_is_padded_on_either_side_and_checked():
    trees = [ts.Tree([-1, 0], ["a", "b"]), ts.Tree([-1], ["c"])]
    assert ts.batch_trees(trees).token_node.tolist() == [[0, 1], [0, -1]]
    assert ts.batch_trees(trees, left_pad=True, width=3).token_node.tolist() == [
        [-1, 0, 1], [-1, -1, 0],
    ]  # fmt: skip
    for rows, message in (
        ([[0, 1]], "2 trees, but token nodes of 1 rows"),
        ([[0, 1, 1, 1], [0]], "a row has 4 tokens, but the batch has 3 columns"),
        ([[0], [1]], "the node of token 0 is none of its 1 nodes"),
    ):
        with pytest.raises(ValueError, match=message):
            ts.batch_trees(trees, rows, width=3)


def test_methods_metrics_and_statistics():
    methods = ts.compose("stack_pe(depth=4)+relation_mask", d_model=16, heads=4, layers=2)
    assert list(methods) == ["stack_pe", "relation_mask"]
    assert ts.score("exact", ["a", "b"], ["a", "c"]).value == 50
    assert ts.score("f1:sexpr", ["(a b)"], ["(a b)"]).value == 100
    found = ts.compare_runs([[1, 1, 1], [1, 0, 1]], [[0, 1, 0], [0, 0, 0]], few_items=True)
    assert 0 < found.p <= 1
    assert ts.holm([0.01, 0.04]) == [0.02, 0.04]


def test_a_package_without_a_build_for_this_python_is_told_of():
    here = ".".join(map(str, sys.version_info[:2]))
    with pytest.raises(ts.OptionError, match="no_such, which is not installed; pip install") as one:
        need_package("no_such", "extra", "training", sys.version_info[:2])
    assert "build" not in str(one.value)
    with pytest.raises(ts.OptionError, match=r"no_such\.part, which is not installed"):
        need_package("no_such.part", "extra", "training")
    with pytest.raises(ts.OptionError) as one:
        need_package("no_such", "extra", "training", (3, 10))
    assert str(one.value) == (
        f"training needs no_such, which has no build for Python {here}; make an environment of Python "
        "3.10 (python3.10 -m venv .venv), and there pip install 'treesyntax[extra]'"
    )
