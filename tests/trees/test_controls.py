"""Control trees: the same words under a structure without syntax."""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import constituency_trees, dependency_trees, rich_trees, trees

from treesyntax.errors import OptionError, TreeError
from treesyntax.trees.controls import (
    CONTROLS,
    LABEL,
    RELATION,
    child_order,
    control_tree,
    shuffled,
    unshuffled,
)
from treesyntax.trees.tree import Tree

OTHERS = [name for name in CONTROLS if name != "given"]
LONG = 10_000
# The random heads of twelve words, seed 1, as every machine must find them.
GOLDEN = [12, 10, 2, 8, 6, 8, 6, 10, 8, 1, 1, 0]
names = st.sampled_from(OTHERS)


def words_of(tree: Tree) -> list[str]:
    return [tree.labels[node] for node in tree.word_nodes()]


def leaf(*words: str) -> Tree:
    """A sentence under one root, which a control is to forget."""
    return Tree([-1] + [0] * len(words), ["S", *words], [-1, *range(len(words))])


def binary(*words: str) -> Tree:
    """A right-branching sentence in which all labels are alike."""
    return control_tree(leaf(*words), "right_branching", 0)


def program(size: int) -> Tree:
    return Tree(list(range(-1, size - 1)), [f"f{i}" for i in range(size)])


def sentence(size: int) -> Tree:
    return Tree.from_heads(range(size), [f"w{i}" for i in range(size)])


def kinds_of(tree: Tree) -> Counter:
    """How often the tree has each label with each number of children."""
    return Counter(zip(tree.labels, tree.arities.tolist(), strict=True))


# Definitions, as slow as they are plain


def dominated(heads: list[int], word: int, head: int) -> bool:
    while word and word != head:
        word = heads[word - 1]
    return word == head


def is_projective(heads: list[int]) -> bool:
    """Whether every word between a head and its dependent is dominated by the head."""
    return all(
        dominated(heads, between, head)
        for word, head in enumerate(heads, start=1)
        if head
        for between in range(min(word, head) + 1, max(word, head))
    )


def is_tree(heads: list[int]) -> bool:
    try:
        Tree.from_heads(heads, ["w"] * len(heads))
    except TreeError:
        return False
    return True


def projective_trees(words: int) -> set[tuple[int, ...]]:
    every = product(range(words + 1), repeat=words)
    return {heads for heads in every if is_tree(list(heads)) and is_projective(list(heads))}


def catalan(n: int) -> int:
    return comb(2 * n, n) // (n + 1)


# Structure


@settings(deadline=None, max_examples=100)
@given(dependency_trees(), names, st.integers(0, 3))
def test_dependency_controls_keep_the_words(tree, name, seed):
    new = control_tree(tree, name, seed)
    size = len(tree)
    heads = new.heads()
    assert words_of(new) == words_of(tree)
    assert new.relations == (RELATION,) * size
    assert is_projective(heads)
    if name == "right_branching":
        assert heads == list(range(size))
    if name == "flat":
        assert heads == [0] + [1] * (size - 1)
    assert new == Tree.from_heads(heads, words_of(tree), new.relations)


@settings(deadline=None, max_examples=100)
@given(constituency_trees(), names, st.integers(0, 3))
def test_constituency_controls_keep_the_words_as_leaves(tree, name, seed):
    new = control_tree(tree, name, seed)
    words = words_of(tree)
    assert words_of(new) == words
    assert new.word_nodes() == new.leaves
    interior = [node for node in range(len(new)) if new.arities[node]]
    if name == "random":
        assert kinds_of(new) == kinds_of(tree)
        assert new.labels[0] == tree.labels[0]
        return
    assert {new.labels[node] for node in interior} == {LABEL}
    arities = [int(new.arities[node]) for node in interior]
    if name == "flat" or len(words) == 1:
        assert arities == [len(words)]
    else:
        assert arities == [2] * (len(words) - 1)
    if name == "right_branching" and len(words) > 1:
        first = [children[0] for children in new.children() if children]
        assert all(not new.arities[node] for node in first)
    assert new == Tree(new.parents, new.labels, new.words)


@settings(deadline=None, max_examples=100)
@given(trees(), names, st.integers(0, 3))
def test_controls_of_a_program_keep_its_labels_in_preorder(tree, name, seed):
    new = control_tree(tree, name, seed)
    assert new.labels == tree.labels
    assert new.word_nodes() == []
    if name == "right_branching":
        assert new.parents.tolist() == list(range(-1, len(tree) - 1))
    if name == "flat":
        assert new.parents.tolist() == [-1] + [0] * (len(tree) - 1)
    assert new == Tree(new.parents, new.labels)


@settings(deadline=None, max_examples=100)
@given(rich_trees(), names)
def test_any_tree_has_a_control_with_its_words(tree, name):
    new = control_tree(tree, name, 0)
    assert words_of(new) == words_of(tree)
    assert len(new.relations) in (0, len(new))
    assert set(new.relations) <= {RELATION}
    assert new == Tree(new.parents, new.labels, new.words, new.relations)


def test_examples():
    tree = Tree([-1, 0, 1, 0, 3], ["S", "D", "the", "N", "cat"], [-1, -1, 0, -1, 1])
    assert control_tree(tree, "given", 5) is tree
    assert control_tree(tree, "flat", 0) == Tree([-1, 0, 0], ["X", "the", "cat"], [-1, 0, 1])
    assert control_tree(leaf("a", "b", "c"), "right_branching", 0) == Tree(
        [-1, 0, 0, 2, 2], ["X", "a", "X", "b", "c"], [-1, 0, -1, 1, 2]
    )
    assert control_tree(leaf("a"), "random", 0) == Tree([-1, 0], ["S", "a"], [-1, 0])
    assert kinds_of(control_tree(tree, "random", 0)) == kinds_of(tree)
    assert control_tree(tree, "random", 0).children()[1] == [2]  # the part of speech of its word
    assert control_tree(Tree.from_heads([0], ["a"]), "random", 0) == Tree.from_heads([0], ["a"])


@pytest.mark.parametrize("name", CONTROLS)
def test_the_empty_tree_is_its_own_control(name):
    assert control_tree(Tree([], []), name, 0) == Tree([], [])


@pytest.mark.parametrize("name", OTHERS)
def test_long_trees_are_no_problem(name):
    words = [f"w{i}" for i in range(LONG)]
    assert words_of(control_tree(leaf(*words), name, 0)) == words
    assert words_of(control_tree(sentence(LONG), name, 0)) == words
    assert len(control_tree(program(LONG), name, 0)) == LONG


# Nothing of the original structure is left


@settings(deadline=None, max_examples=50)
@given(st.data(), st.sampled_from(OTHERS))
def test_the_control_depends_on_the_words_alone(data, name):
    words = st.just("w")
    first, second = (data.draw(constituency_trees(words=words)) for _ in range(2))
    if name != "random" and len(words_of(first)) == len(words_of(second)):
        assert control_tree(first, name, 1) == control_tree(second, name, 1)
    first, second = (
        data.draw(dependency_trees(forms=words, min_words=5, max_words=5)) for _ in range(2)
    )
    assert control_tree(first, name, 1) == control_tree(second, name, 1)


def test_random_trees_are_the_same_in_every_process_and_differ_by_seed_and_words():
    tree = sentence(12)
    heads = control_tree(tree, "random", 1).heads()
    assert heads == GOLDEN
    assert control_tree(tree, "random", 2).heads() != heads
    other = Tree.from_heads(range(12), ["v", *words_of(tree)[1:]])
    assert control_tree(other, "random", 1).heads() != heads
    # Words are told apart, however they are cut.
    pair = [control_tree(binary(*["a"] * 20, x, y), "random", 0) for x, y in ("bc", ("bc", "d"))]
    assert pair[0].parents.tolist() != pair[1].parents.tolist()


def test_labels_that_are_no_unicode_text_are_allowed():
    assert len(control_tree(Tree([-1, 0, 0], ["\ud800", "\0", ""]), "random", 0)) == 3


# The distribution


def check_uniform(found: Counter, kinds: int) -> None:
    """Every kind comes up, and about equally often (6 standard deviations)."""
    expected = found.total() / kinds
    assert len(found) == kinds
    assert all(abs(count - expected) < 6 * expected**0.5 for count in found.values())


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_random_dependency_trees_are_uniform_over_projective_trees(size):
    kinds = projective_trees(size)
    assert len(kinds) == comb(3 * size - 2, size - 1) // size
    tree = sentence(size)
    found = Counter(tuple(control_tree(tree, "random", seed).heads()) for seed in range(3000))
    assert set(found) == kinds
    check_uniform(found, len(kinds))


@pytest.mark.parametrize(
    "tree",
    [*(binary(*"abcde"[:size]) for size in (2, 3, 4, 5)), *map(program, (1, 2, 3, 4, 5))],
)
def test_random_trees_are_uniform_over_binary_trees_or_over_ordered_programs(tree):
    size = len(tree.word_nodes()) or len(tree)
    found = Counter(
        tuple(control_tree(tree, "random", seed).parents.tolist()) for seed in range(3000)
    )
    check_uniform(found, catalan(size - 1))


def test_random_constituents_are_uniform_over_the_trees_of_the_same_nodes():
    tree = Tree([-1, 0, 1, 1, 0, 4, 5, 0], ["S", "A", "a", "b", "B", "C", "c", "d"],
                [-1, -1, 0, 1, -1, -1, 2, 3])  # fmt: skip
    found = Counter(
        (tuple(new.parents.tolist()), tuple(new.labels))
        for new in (control_tree(tree, "random", seed) for seed in range(6000))
    )
    # Forests of 3 trees from A (2 children), B (1 child) and 4 leaves, in 3/6 of 6!/(1! 1! 4!) orders.
    check_uniform(found, 15)


def test_faults_are_named():
    with pytest.raises(
        OptionError,
        match="no control tree is named 'x'; there are given, random, right_branching, flat",
    ):
        control_tree(leaf("a"), "x", 0)
    with pytest.raises(TreeError, match="surface indices"):
        control_tree(Tree([-1, 0], ["S", "a"], [-1, 7]), "flat", 0)


# Shuffled trees, the control of targets


def nested(tree: Tree, node: int = 0) -> tuple:
    return tree.labels[node], *(nested(tree, child) for child in tree.children()[node])


def shuffled_by_definition(node: tuple, seed: int) -> tuple:
    label, *children = node
    order = child_order(label, len(children), seed)
    return label, *(shuffled_by_definition(children[place], seed) for place in order)


@settings(deadline=None)
@given(trees(), st.integers(0, 3))
def test_shuffled_trees_are_the_trees_by_definition_and_come_back(tree: Tree, seed: int):
    other = shuffled(tree, seed)
    if len(tree):
        assert nested(other) == shuffled_by_definition(nested(tree), seed)
    assert kinds_of(other) == kinds_of(tree)
    back = unshuffled(other, seed)
    assert (back.labels, back.parents.tolist()) == (tree.labels, tree.parents.tolist())


def test_the_order_of_children_hangs_on_label_number_and_seed():
    orders = {key: tuple(child_order(*key)) for key in product("ab", (2, 3, 8), range(8))}
    assert all(sorted(order) == [*range(key[1])] for key, order in orders.items())
    assert len({orders["a", 8, seed] for seed in range(8)}) == 8
    assert {orders["a", 2, seed] for seed in range(8)} == {(0, 1), (1, 0)}
    assert orders["a", 8, 0] != orders["b", 8, 0]
    # As every machine must find it.
    assert child_order("and", 5, 1) == [0, 2, 3, 4, 1]


def test_shuffled_words_are_numbered_as_they_are_printed():
    tree = Tree([-1, 0, 0, 0], ["S", "x", "y", "z"], [-1, 0, 1, 2])
    other = next(two for seed in range(9) if (two := shuffled(tree, seed)).labels != tree.labels)
    assert other.words.tolist() == [-1, 0, 1, 2]


def test_a_long_chain_is_shuffled():
    assert shuffled(program(LONG), 1).parents.tolist() == program(LONG).parents.tolist()
