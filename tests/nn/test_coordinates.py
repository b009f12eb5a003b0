import pytest
import support.oracles as oracles
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import batch_of, first_column, stored
from support.strategies import dependency_trees, trees

from treesyntax.nn.coordinates import (
    branch_path,
    depth,
    last_descendant,
    left_child_right_sibling,
    previous_sibling,
)
from treesyntax.nn.relations import NO_RELATION, RELATIONS, tree_relations
from treesyntax.nn.tree_batch import NO_NODE, TreeBatch, collate
from treesyntax.trees.binary import to_binary
from treesyntax.trees.tree import Tree

many = settings(deadline=None, max_examples=60)
tree_lists = st.lists(trees(), min_size=1, max_size=4)


def chain(length):
    return Tree([-1, *range(length - 1)], ["x"] * length)


@many
@given(tree_lists, st.booleans())
def test_coordinates_equal_the_trees_own(forest, left_pad):
    batch = batch_of(forest, left_pad)
    depths, last, binary = depth(batch), last_descendant(batch), left_child_right_sibling(batch)
    for row, tree in enumerate(forest):
        size = len(tree)
        assert depths[row, :size].tolist() == tree.depths.tolist()
        assert last[row, :size].tolist() == tree.last_descendants.tolist()
        assert binary.parent[row, :size].tolist() == to_binary(tree).parents.tolist()
        assert binary.branch[row, :size].tolist() == to_binary(tree).branches.tolist()


@many
@given(tree_lists, st.integers(1, 6))
def test_branch_paths_keep_the_steps_nearest_the_node(forest, steps):
    batch = batch_of(forest)
    found = branch_path(batch, steps)
    for row, tree in enumerate(forest):
        for node in range(len(tree)):
            newest_first = oracles.path(tree, node)[::-1][:steps]
            expected = newest_first + [-1] * (steps - len(newest_first))
            assert found[row, node].tolist() == expected


def test_previous_siblings_by_hand():
    tree = Tree([-1, 0, 1, 0, 0, 4], list("abcdef"))
    assert previous_sibling(batch_of([tree]))[0].tolist() == [-1, -1, -1, 1, 3, -1]


def test_a_chain_of_ten_thousand_nodes():
    tree = chain(10_000)
    batch = batch_of([tree, chain(3)])
    assert depth(batch)[0].tolist() == list(range(10_000))
    assert last_descendant(batch)[0].unique().tolist() == [9_999]
    assert branch_path(batch, 4)[0, -1].tolist() == [0, 0, 0, 0]
    assert left_child_right_sibling(batch).parent[0].tolist() == tree.parents.tolist()


def test_an_empty_tree_in_a_batch():
    batch = batch_of([Tree([], []), chain(2)])
    assert batch.token_node.tolist() == [[NO_NODE] * 3, [0, 1, NO_NODE]]
    assert depth(batch)[1].tolist() == [0, 1]
    assert tree_relations(batch)[0].unique().tolist() == [NO_RELATION]
    alone = batch_of([Tree([], [])])
    assert tree_relations(alone).tolist() == [[[NO_RELATION]]]
    assert branch_path(alone, 2).shape == (1, 1, 2)


def test_a_batch_survives_the_dict_form():
    batch = batch_of([chain(3)])
    again = TreeBatch.from_dict(batch.to_dict())
    assert all(torch.equal(again.to_dict()[key], value) for key, value in batch.to_dict().items())


@many
@given(tree_lists, st.booleans())
def test_relations_of_preorder_trees(forest, left_pad):
    batch = batch_of(forest, left_pad)
    codes, width = tree_relations(batch), batch.token_node.shape[1]
    assert codes.dtype == torch.uint8
    for row, tree in enumerate(forest):
        start = first_column(tree, width, left_pad)
        for first in range(width):
            for second in range(width):
                i, j = first - start, second - start
                if 0 <= i < len(tree) and 0 <= j < len(tree):
                    expected = RELATIONS.index(oracles.relation(tree, i, j, i, j))
                else:
                    expected = NO_RELATION
                assert codes[row, first, second] == expected


@many
@given(dependency_trees())
def test_relations_of_dependency_trees_in_word_order(tree):
    nodes = tree.word_nodes()
    batch = collate([stored(tree, nodes)], len(nodes) + 1)
    codes = tree_relations(batch)[0]
    for first, first_node in enumerate(nodes):
        for second, second_node in enumerate(nodes):
            expected = oracles.relation(tree, first_node, second_node, first, second)
            assert RELATIONS[codes[first, second]] == expected


def test_tokens_that_share_a_node_are_in_relation_self():
    batch = collate([stored(chain(2), [0, 0, 1])], 4)
    assert tree_relations(batch)[0, :3, :3].tolist() == [[0, 0, 1], [0, 0, 1], [2, 2, 0]]


def test_relations_by_hand():
    """S(NP(the cat) VP): codes of every pair of S, NP, the, cat, VP."""
    tree = Tree([-1, 0, 1, 1, 0], ["S", "NP", "the", "cat", "VP"])
    names = [[RELATIONS[c] for c in row[:5]] for row in tree_relations(batch_of([tree]))[0, :5]]
    assert names[0] == ["self", "parent", "ancestor", "ancestor", "parent"]
    assert names[1] == ["child", "self", "parent", "parent", "left_sibling"]
    assert names[2] == ["descendant", "child", "self", "left_sibling", "left_other"]
    assert names[3] == ["descendant", "child", "right_sibling", "self", "left_other"]
    assert names[4] == ["child", "right_sibling", "right_other", "right_other", "self"]


def test_relative_depth_table_of_omote_et_al():
    """Omote, Tamura & Ninomiya 2019, Table 1: depth_j - depth_i of "My father bought a red car ."."""
    words = ["My", "father", "bought", "a", "red", "car", "."]
    tree = Tree.from_heads([2, 3, 0, 6, 6, 3, 3], words)
    batch = collate([stored(tree, tree.word_nodes())], len(words) + 1)
    depths = batch.at_tokens(depth(batch))[0, :-1]
    assert depths.tolist() == [2, 1, 0, 2, 2, 1, 1]
    distances = depths.unsqueeze(0) - depths.unsqueeze(1)
    assert distances[2].tolist() == [2, 1, 0, 2, 2, 1, 1]
    assert distances[0].tolist() == [0, -1, -2, 0, 0, -1, -1]


@pytest.mark.parametrize("left_pad", [False, True])
def test_special_tokens_and_padding_have_no_node(left_pad):
    batch = batch_of([chain(3), chain(1)], left_pad)
    expected = [[0, 1, 2, -1], [-1, -1, 0, -1] if left_pad else [0, -1, -1, -1]]
    assert batch.token_node.tolist() == expected
