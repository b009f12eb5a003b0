"""Trees over merged words."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import constituency_trees, dependency_trees

from treesyntax.errors import TreeError
from treesyntax.trees.merging import merge_words
from treesyntax.trees.tree import Tree


@st.composite
def grouped(draw, trees):
    """A tree and groups of its words; some words are in none, but never all."""
    tree = draw(trees)
    size = len(tree.word_nodes())
    edges = sorted(draw(st.sets(st.integers(0, size))) | {0, size})
    groups = [pair for pair in pairwise(edges) if draw(st.integers(0, 3))]
    return tree, groups or [(0, size)]


def ancestors(heads, word):
    """The words above a word, nearest first."""
    found = []
    while heads[word]:
        word = heads[word] - 1
        found.append(word)
    return found


def slow_heads(heads, groups):
    group_of = {word: g for g, (first, end) in enumerate(groups) for word in range(first, end)}
    found = []
    for first, end in groups:
        top = min(range(first, end), key=lambda word: (len(ancestors(heads, word)), word))
        found.append(next((group_of[a] + 1 for a in ancestors(heads, top) if a in group_of), 0))
    root = found.index(0)
    return [0 if g == root else head or root + 1 for g, head in enumerate(found)]


@settings(deadline=None, max_examples=400)
@given(grouped(dependency_trees().filter(len)))
def test_merged_dependency_trees_are_what_their_definition_says(case):
    tree, groups = case
    forms = [f"g{i}" for i in range(len(groups))]
    merged = merge_words(tree, groups, forms)
    if merged is tree:
        assert groups == [(i, i + 1) for i in range(len(tree))]
        return
    assert merged.heads() == slow_heads(tree.heads(), groups)
    assert merged == Tree.from_heads(merged.heads(), forms, [merged.relations[n] for n in merged.word_nodes()] if merged.relations else ())  # fmt: skip


def slow_prune(tree, node, kept, children):
    """The bracketing without the words that are not kept; None where nothing is left."""
    if tree.words[node] >= 0:
        return kept.get(int(tree.words[node]))
    parts = [slow_prune(tree, child, kept, children) for child in children[node]]
    parts = [part for part in parts if part]
    return f"({tree.labels[node]} {' '.join(parts)})" if parts else None


def brackets(tree, node, children):
    if not children[node]:
        return tree.labels[node]
    inner = " ".join(brackets(tree, child, children) for child in children[node])
    return f"({tree.labels[node]} {inner})"


def words_at_all_leaves(tree):
    return tree.leaves == tree.word_nodes() and len(tree) > 1


@settings(deadline=None, max_examples=300)
@given(grouped(constituency_trees().filter(words_at_all_leaves)))
def test_merged_constituency_trees_are_what_their_definition_says(case):
    tree, groups = case
    forms = [f"g{i}" for i in range(len(groups))]
    merged = merge_words(tree, groups, forms)
    if merged is tree:
        return
    kept = {first: form for (first, _), form in zip(groups, forms, strict=True)}
    expected = slow_prune(tree, 0, kept, tree.children())
    assert brackets(merged, 0, merged.children()) == expected
    assert [merged.labels[node] for node in merged.word_nodes()] == forms


def test_the_leftmost_member_with_a_head_outside_would_make_a_cycle():
    # a <- c, c <- b, b is the root: with a and b merged, a's head c hangs below the group itself.
    tree = Tree.from_heads([3, 0, 2], ["a", "b", "c"], ["x", "root", "y"])
    merged = merge_words(tree, [(0, 2), (2, 3)], ["ab", "c"])
    assert merged.heads() == [0, 1]
    assert merged.relations == ("root", "y")


def test_a_removed_root_leaves_its_place_to_its_first_dependent():
    tree = Tree.from_heads([2, 0, 2, 3], ["a", "b", "c", "d"])
    assert merge_words(tree, [(0, 1), (2, 3), (3, 4)], ["a", "c", "d"]).heads() == [0, 1, 2]


def test_long_chains_merge():
    size = 10_000
    chain = Tree.from_heads(range(size), ["w"] * size)
    groups = [(i, i + 2) for i in range(0, size, 2)]
    assert merge_words(chain, groups, ["w"] * len(groups)).heads() == list(range(size // 2))
    assert merge_words(chain, [(size - 1, size)], ["w"]).heads() == [0]
    spine = Tree([*range(-1, size - 1), size - 2], ["X"] * (size + 1), [-1] * (size - 1) + [0, 1])
    assert len(merge_words(spine, [(0, 2)], ["w"])) == size


def test_other_trees_cannot_be_merged():
    tree = Tree([-1, 0, 1], ["X", "a", "b"], [-1, 0, 1])
    assert merge_words(tree, [(0, 1), (1, 2)], ["a", "b"]) is tree
    with pytest.raises(TreeError, match="neither a dependency tree nor has all its words at its"):
        merge_words(tree, [(0, 2)], ["ab"])
