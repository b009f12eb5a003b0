"""A bias for the length of the path, against walks from node to node."""

import support.oracles as oracles
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import batch_of, expect_attention, stored
from support.strategies import dependency_trees, trees

from treesyntax.model.composition import Composition
from treesyntax.nn.injection import Site
from treesyntax.nn.relations import path_lengths
from treesyntax.nn.tree_batch import collate
from treesyntax.trees.tree import Tree

SITE = Site(d_model=8, heads=2, layers=2)


@settings(deadline=None, max_examples=50)
@given(st.lists(trees(), min_size=1, max_size=3), st.booleans())
def test_lengths_are_those_of_a_walk(forest, left_pad):
    batch = batch_of(forest, left_pad)
    lengths = path_lengths(batch)
    for row, tree in enumerate(forest):
        columns = (batch.token_node[row] >= 0).nonzero().flatten().tolist()
        for i, first in enumerate(columns):
            for j, second in enumerate(columns):
                assert lengths[row, first, second] == sum(oracles.steps(tree, i, j))
        assert lengths[row].ge(0).sum() == len(tree) ** 2


@settings(deadline=None, max_examples=20)
@given(dependency_trees())
def test_lengths_in_word_order(tree):
    nodes = tree.word_nodes()
    lengths = path_lengths(collate([stored(tree, nodes)], len(nodes) + 1))[0]
    for i, first in enumerate(nodes):
        for j, second in enumerate(nodes):
            assert lengths[i, j] == sum(oracles.steps(tree, first, second))


@settings(deadline=None, max_examples=15)
@given(
    st.lists(dependency_trees(max_words=7), min_size=1, max_size=3),
    st.booleans(),
    st.integers(1, 4),
    st.integers(0, 1),
)
def test_attention_and_its_gradients_are_those_of_the_formula(forest, left_pad, clip, layer):
    """Graphormer, Eq. 6, over words in their order and an end mark."""
    composition = Composition(f"tree_distance(clip={clip})", SITE).double()
    table = composition["tree_distance"].table

    def logit(row, head, i, j, product):
        nodes = forest[row].word_nodes()
        if max(i, j) >= len(nodes):
            return product + table[head, -1]
        length = sum(oracles.steps(forest[row], nodes[i], nodes[j]))
        return product + table[head, min(length, clip)]

    sizes = [len(tree) + 1 for tree in forest]
    lines = [stored(tree, tree.word_nodes()) for tree in forest]
    batch = collate(lines, max(sizes), left_pad)
    expect_attention(composition, batch, sizes, left_pad, logit, layer)


def test_codes_clip_and_mark_what_has_no_path():
    method = Composition("tree_distance(clip=2)", SITE)["tree_distance"]
    chain = Tree([-1, 0, 1, 2], list("abcd"))
    codes = method.relation_ids(batch_of([chain]))[0]
    assert codes[0].tolist() == [0, 1, 2, 2, 3]
    assert codes[4].tolist() == [3] * 5


def test_the_table_is_shared_by_layers():
    method = Composition("tree_distance", SITE)["tree_distance"]
    assert method.bias_table(0) is method.bias_table(1)
    assert torch.count_nonzero(method.table) == 0
