import support.oracles as oracles
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import batch_of, stored
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
