"""Many trees as arrays are what trees are."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import constituency_trees, head_lists

from treesyntax.data.binarize.forest import Forest, from_depths, merged, preorder
from treesyntax.trees.merging import merge_words
from treesyntax.trees.tree import Tree


def forest_of(sentences: list[list[int]]) -> Forest:
    sizes = np.array([len(heads) for heads in sentences])
    total, parents = int(sizes.sum()), []
    for heads in sentences:
        first = len(parents)
        parents += [first + head - 1 if head else total for head in heads]
    return Forest(sizes, np.array(parents))


@settings(deadline=None, max_examples=200)
@given(st.lists(head_lists(max_words=12), min_size=1, max_size=5), st.integers(0, 2**32))
def test_forests_are_what_trees_are(sentences, seed):
    order = preorder(forest_of(sentences))
    trees = [Tree.from_heads(heads, ["x"] * len(heads)) for heads in sentences]
    assert order.parents.tolist() == [p for tree in trees for p in tree.parents.tolist()]
    assert order.branches.tolist() == [b for tree in trees for b in tree.branches.tolist()]
    assert order.numbers.tolist() == [node for tree in trees for node in tree.word_nodes()]
    source = random.Random(seed)
    begins = [[True] + [source.random() < 0.6 for _ in heads[1:]] for heads in sentences]
    fewer = merged(forest_of(sentences), np.array([b for marks in begins for b in marks]))
    expected = []
    for tree, marks in zip(trees, begins, strict=True):
        firsts = [word for word, begin in enumerate(marks) if begin]
        groups = list(zip(firsts, [*firsts[1:], len(marks)], strict=True))
        expected.append(merge_words(tree, groups, ["x"] * len(groups)).heads())
    assert [part.tolist() for part in fewer] == [p.tolist() for p in forest_of(expected)]


def test_long_chains_are_no_problem():
    heads = [0, *range(1, 9999)]
    order = preorder(forest_of([heads, [0]]))
    assert order.parents.tolist() == [*range(-1, 9998), -1]
    assert not order.branches.any()


@settings(deadline=None, max_examples=200)
@given(st.lists(constituency_trees(max_nodes=20), min_size=1, max_size=5))
def test_depths_give_parents_and_branches(trees):
    sizes = np.array([len(tree) for tree in trees])
    depths = np.concatenate([tree.depths for tree in trees]).astype(np.int64)
    order = from_depths(sizes, depths)
    assert order.parents.tolist() == [p for tree in trees for p in tree.parents.tolist()]
    assert order.branches.tolist() == [b for tree in trees for b in tree.branches.tolist()]
    assert order.numbers.tolist() == [node for tree in trees for node in range(len(tree))]
