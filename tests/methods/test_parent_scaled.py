"""Logits scaled around parents, against densities pair by pair."""

import math

import support.oracles as oracles
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import expect_attention, stored
from support.strategies import dependency_trees

from treesyntax.methods.pairs.parent_scaled import parent_positions
from treesyntax.model.composition import Composition
from treesyntax.nn.injection import Site
from treesyntax.nn.tree_batch import collate
from treesyntax.trees.tree import Tree

SITE = Site(d_model=8, heads=2, layers=3)


def copied(tree, copies):
    """Each word as that many tokens in word order: their nodes."""
    return [
        node for node, times in zip(tree.word_nodes(), copies, strict=True) for _ in range(times)
    ]


def middle(tree, tokens, position):
    """By hand: where the parent's tokens are in the middle; a root or end mark is its own."""
    if position >= len(tokens) or tree.parents[tokens[position]] < 0:
        return position
    parent = int(tree.parents[tokens[position]])
    places = [place for place, node in enumerate(tokens) if node == parent]
    return sum(places) / len(places) if places else position


@settings(deadline=None, max_examples=20)
@given(st.lists(dependency_trees(max_words=5), min_size=1, max_size=2), st.booleans(), st.data())
def test_attention_and_its_gradients_are_those_of_the_formula(forest, left_pad, data):
    copies = [
        data.draw(st.lists(st.integers(0, 3), min_size=len(t), max_size=len(t))) for t in forest
    ]
    lines = [copied(tree, times) for tree, times in zip(forest, copies, strict=True)]

    def logit(row, head, i, j, product):
        away = (j - middle(forest[row], lines[row], i)) / 1.5
        return product * math.exp(-away * away / 2) / (1.5 * math.sqrt(2 * math.pi))

    sizes = [len(line) + 1 for line in lines]
    batch = collate([stored(*one) for one in zip(forest, lines, strict=True)], max(sizes), left_pad)
    composition = Composition("parent_scaled(sd=1.5)", SITE).double()
    expect_attention(composition, batch, sizes, left_pad, logit, layer=0)


def test_left_padding_moves_the_parents_along():
    tree = Tree.from_heads([2, 0, 2], ["a", "b", "c"])
    short = stored(tree, tree.word_nodes())
    assert oracles.ancestors(tree, tree.word_nodes()[0]) == [tree.word_nodes()[1]]
    right = parent_positions(collate([short], 6))[0]
    left = parent_positions(collate([short], 6, left_pad=True))[0]
    assert right[:4].tolist() == [1, 1, 1, 3]
    assert left[2:].tolist() == [3, 3, 3, 5]


def test_it_takes_the_first_layers_alone():
    tree = Tree.from_heads([2, 0], ["a", "b"])
    batch = collate([stored(tree, tree.word_nodes())], 3)
    terms_of = Composition("parent_scaled(layers=2)", SITE).relate(batch)
    assert [len(terms_of(layer)) for layer in range(3)] == [1, 1, 0]


def test_parents_are_ignored_at_random_in_training_only():
    tree = Tree.from_heads([0, *range(1, 200)], ["a"] * 200)
    batch = collate([stored(tree, tree.word_nodes())], 201)
    method = Composition("parent_scaled(ignore=0.3)", SITE)["parent_scaled"]
    torch.manual_seed(0)
    ignored = method.pair_scale(batch)[0].eq(1).all(1)
    assert 30 < ignored.sum() < 90
    assert not method.eval().pair_scale(batch)[0].eq(1).any()
