"""The tree type against slow definitions, and every message for what is not a tree."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.oracles import ancestors, lcrs_path, path
from support.strategies import (
    constituency_trees,
    dependency_trees,
    head_lists,
    rich_trees,
    shapes,
    trees,
)

from treesyntax.errors import TreeError
from treesyntax.trees.binary import from_binary, to_binary
from treesyntax.trees.tree import Tree

DEEP = 10_000


def chain(size: int) -> Tree:
    return Tree(range(-1, size - 1), ["x"] * size)


@settings(deadline=None, max_examples=100)
@given(rich_trees())
def test_properties_match_their_definitions(tree):
    nodes = range(len(tree))
    assert tree.depths.tolist() == [len(ancestors(tree, node)) for node in nodes]
    assert tree.arities.tolist() == [tree.parents.tolist().count(node) for node in nodes]
    assert tree.children() == [
        [child for child in nodes if tree.parents[child] == node] for node in nodes
    ]
    assert tree.leaves == [node for node in nodes if node not in tree.parents]
    for node in nodes:
        dominated = [other for other in nodes if node in [other, *ancestors(tree, other)]]
        assert dominated == list(range(node, tree.last_descendants[node] + 1))


@settings(deadline=None, max_examples=100)
@given(trees())
def test_siblings_without_gaps_count_their_branches(tree):
    for children in tree.children():
        assert tree.branches[children].tolist() == list(range(len(children)))
    assert tree.branches[0] == 0


@settings(deadline=None, max_examples=100)
@given(rich_trees(), rich_trees())
def test_equality_hash_and_pickle(tree, other):
    copy = Tree(tree.parents, tree.labels, tree.words, tree.relations, tree.branches)
    assert copy == tree
    assert hash(copy) == hash(tree)
    assert pickle.loads(pickle.dumps(tree)) == tree
    same = all(
        list(getattr(tree, field)) == list(getattr(other, field))
        for field in ("parents", "labels", "words", "relations", "branches")
    )
    assert (tree == other) == same


def test_every_field_counts_for_equality():
    tree = Tree([-1, 0], ["a", "b"], [-1, 0], ["r", "s"])
    assert tree != Tree([-1, 0], ["a", "c"], [-1, 0], ["r", "s"])
    assert tree != Tree([-1, 0], ["a", "b"], [0, -1], ["r", "s"])
    assert tree != Tree([-1, 0], ["a", "b"], [-1, 0], ["r", "t"])
    assert tree != Tree([-1, 0], ["a", "b"], [-1, 0], ["r", "s"], [0, 1])
    assert tree != "a b"


def test_trees_are_immutable():
    tree = Tree([-1, 0], ["a", "b"])
    with pytest.raises(AttributeError, match="immutable, labels cannot be set"):
        tree.labels = ("c", "d")
    with pytest.raises(AttributeError, match="immutable, words cannot be deleted"):
        del tree.words
    for array in (tree.parents, tree.words, tree.branches):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


def test_the_arrays_given_may_change_later():
    parents = np.array([-1, 0])
    tree = Tree(parents, ["a", "b"])
    parents[1] = 9
    assert tree.parents.tolist() == [-1, 0]


def test_repr_is_short():
    assert repr(chain(3)) == "Tree(3 nodes: x, x, x)"
    assert repr(chain(9)) == "Tree(9 nodes: x, x, x, x, x, x, …)"


def test_the_empty_tree():
    tree = Tree([], [])
    assert len(tree) == 0
    assert tree.leaves == tree.word_nodes() == tree.children() == tree.heads() == []
    assert tree.depths.size == tree.arities.size == tree.last_descendants.size == 0
    assert Tree.from_heads([], []) == tree == to_binary(tree) == from_binary(tree)


@settings(deadline=None, max_examples=100)
@given(shapes(), st.data())
def test_only_preorder_numbers_are_accepted(parents, data):
    """A parent must be open: the node before, or one of that node's ancestors."""
    tree = Tree(parents, ["x"] * len(parents))
    node = data.draw(st.integers(0, len(parents) - 1))
    parent = data.draw(st.integers(-2, len(parents)))
    changed = [*parents[:node], parent, *parents[node + 1 :]]
    allowed = [-1]
    if node:
        allowed = [node - 1, *ancestors(tree, node - 1)]
    if parent not in allowed:
        with pytest.raises(TreeError):
            Tree(changed, tree.labels)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([-1, 0], ["a"]), "2 parents, 1 labels, 2 words and 0 relations do not belong together"),
        (([-1], ["a"], [0, 1]), "1 parents, 1 labels, 2 words and 0 relations"),
        (([-1, 0], ["a", "b"], None, ["r"]), "2 words and 1 relations .*; give every node one"),
        (([0], ["a"]), "the first node has parent 0; the root's parent is -1"),
        (([-1, -1], ["a", "b"]), "node 1 has parent -1, which is not open"),
        (([-1, 1], ["a", "b"]), "node 1 has parent 1, which is not open"),
        (([-1, 0, 0, 1], ["a"] * 4), "node 3 has parent 1, .*; number the nodes in preorder"),
        (([-1, 0], ["a", "b"], None, (), [0]), "2 parents but 1 branches"),
        (([-1, 0], ["a", "b"], None, (), [1, 0]), "node 0 takes branch 1 of node -1"),
        (([-1, 0, 0], ["a"] * 3, None, (), [0, 1, 1]), "node 2 takes branch 1 of node 0, .*free"),
        (([-1, 0], ["a", "b"], None, (), [0, -1]), "the branches of siblings must increase"),
    ],
)
def test_what_is_not_a_tree_is_refused(arguments, message):
    with pytest.raises(TreeError, match=message):
        Tree(*arguments)


@settings(deadline=None, max_examples=100)
@given(head_lists())
def test_from_heads_keeps_every_arc(heads):
    forms = [f"w{word}" for word in range(1, len(heads) + 1)]
    relations = [f"r{word}" for word in range(1, len(heads) + 1)]
    tree = Tree.from_heads(heads, forms, relations)
    assert tree.heads() == heads
    for node in range(len(tree)):
        word = int(tree.words[node]) + 1
        assert (tree.labels[node], tree.relations[node]) == (f"w{word}", f"r{word}")
        head = heads[word - 1]
        assert tree.labels[tree.parents[node]] == f"w{head}" if head else node == 0
    for children in tree.children():
        assert tree.words[children].tolist() == sorted(tree.words[children].tolist())


@settings(deadline=None, max_examples=50)
@given(dependency_trees())
def test_word_nodes_are_in_surface_order(tree):
    assert tree.words[tree.word_nodes()].tolist() == list(range(len(tree)))


@settings(deadline=None, max_examples=50)
@given(constituency_trees())
def test_the_words_of_a_constituency_tree_are_its_leaves(tree):
    assert tree.word_nodes() == tree.leaves


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([0, 3], r"the head 3 of word 2 is out of range \(the sentence has 2 words\); heads run"),
        ([0, -1], "the head -1 of word 2 is out of range"),
        ([2, 1], "no root; exactly one word must have head 0"),
        ([0, 0, 1], r"2 roots \(words: 1, 2\); exactly one word must have head 0"),
        ([0, 3, 2], r"form a cycle \(words never reached from the root: 2, 3\); follow the heads"),
        ([0, 2], r"form a cycle \(words never reached from the root: 2\)"),
        ([0, *range(3, 12), 2], "from the root: 2, 3, 4, 5, 6, 7, 8, 9 …"),
    ],
)
def test_heads_that_do_not_form_a_tree(heads, message):
    with pytest.raises(TreeError, match=message):
        Tree.from_heads(heads, ["w"] * len(heads))


@pytest.mark.parametrize(
    ("words", "relations"), [("a", ""), ("abc", ""), ("ab", "x"), ("ab", "xyz")]
)
def test_heads_are_as_many_as_words_and_relations(words, relations):
    with pytest.raises(
        TreeError, match=r"\d (words|relations), but 2 heads; give one of each a word"
    ):
        Tree.from_heads([0, 1], words, relations)


def test_heads_need_words_everywhere():
    with pytest.raises(TreeError, match="1 nodes are not words; only dependency trees have heads"):
        Tree([-1, 0], ["NP", "cat"], [-1, 0]).heads()


@pytest.mark.parametrize("words", [[-1, 1], [0, 0], [1, 2]])
def test_surface_indices_must_be_complete(words):
    with pytest.raises(TreeError, match="the surface indices of the words are not 0, 1, 2, …"):
        Tree([-1, 0], ["a", "b"], words).word_nodes()


@settings(deadline=None, max_examples=100)
@given(trees())
def test_the_binary_form_has_the_paths_of_its_definition(tree):
    binary = to_binary(tree)
    assert [path(binary, node) for node in range(len(tree))] == [
        lcrs_path(tree, node) for node in range(len(tree))
    ]


@settings(deadline=None, max_examples=100)
@given(st.one_of(trees(), dependency_trees(), constituency_trees()))
def test_from_binary_undoes_to_binary(tree):
    binary = to_binary(tree)
    assert from_binary(binary) == tree
    assert binary.labels == tree.labels
    assert max(binary.arities) <= 2


def test_what_is_not_a_binary_form_is_refused():
    with pytest.raises(TreeError, match="node 1 is child number 3 in a binary tree"):
        from_binary(Tree([-1, 0], ["a", "b"], branches=[0, 2]))
    with pytest.raises(TreeError, match="the root has a sibling; a left-child-right-sibling root"):
        from_binary(Tree([-1, 0], ["a", "b"], branches=[0, 1]))


@pytest.mark.parametrize("tree", [chain(DEEP), Tree([-1] + [0] * DEEP, ["x"] * (DEEP + 1))])
def test_depth_and_width_of_ten_thousand(tree):
    binary = to_binary(tree)
    assert from_binary(binary) == tree
    assert tree.depths.max() in (1, DEEP - 1)
    assert binary.depths.max() in (DEEP, DEEP - 1)
    assert tree.last_descendants[0] == len(tree) - 1
    assert pickle.loads(pickle.dumps(tree)) == tree


def test_a_chain_of_heads():
    heads = list(range(DEEP))
    tree = Tree.from_heads(heads, ["w"] * DEEP)
    assert tree.heads() == heads
    assert tree.depths.max() == DEEP - 1
