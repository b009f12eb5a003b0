"""Linearizations: trees as tokens."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import any_labels, constituency_trees, dependency_trees, rich_trees, trees

from treesyntax.errors import OptionError, TreeError
from treesyntax.trees.linearizations import (
    LINEARIZATIONS,
    from_linearization,
    get_linearization,
    tree_text,
)
from treesyntax.trees.tree import Tree

WORDS, PREORDER, BRACKETED, TWICE = (
    LINEARIZATIONS[name] for name in ("words", "preorder", "bracketed", "bracketed_twice")
)

brackets = st.sampled_from([BRACKETED, TWICE])

# (S (NP the cat) sleeps)
SENTENCE = Tree([-1, 0, 1, 1, 0], ["S", "NP", "the", "cat", "sleeps"], [-1, -1, 0, 1, 2])


def spelled(tree: Tree, closing: int = 1, node: int = 0) -> list[tuple[str, int]]:
    """The bracketed linearizations by recursion over the definition: tokens with their nodes."""
    label, children = tree.labels[node], tree.children()[node]
    if not children:
        special = label == ")" or label[0] in "(\\"
        return [("\\" + label if special else label, node)]
    inner = [pair for child in children for pair in spelled(tree, closing, child)]
    return [("(" + label, node), *inner, *[(")", node)] * closing]


def test_the_linearizations_of_a_sentence():
    assert WORDS.tokens(SENTENCE) == ["the", "cat", "sleeps"]
    assert WORDS.token_nodes(SENTENCE) == [2, 3, 4]
    assert PREORDER.tokens(SENTENCE) == ["S", "NP", "the", "cat", "sleeps"]
    assert BRACKETED.tokens(SENTENCE) == ["(S", "(NP", "the", "cat", ")", "sleeps", ")"]
    assert BRACKETED.token_nodes(SENTENCE) == [0, 1, 2, 3, 1, 4, 0]
    assert TWICE.tokens(SENTENCE) == ["(S", "(NP", "the", "cat", ")", ")", "sleeps", ")", ")"]
    assert TWICE.token_nodes(SENTENCE) == [0, 1, 2, 3, 1, 1, 4, 0, 0]


@settings(deadline=None, max_examples=100)
@given(rich_trees(min_nodes=1))
def test_bracketed_matches_its_definition(tree):
    for closing, linearization in enumerate((BRACKETED, TWICE), start=1):
        pairs = spelled(tree, closing)
        assert linearization.tokens(tree) == [token for token, _ in pairs]
        assert linearization.token_nodes(tree) == [node for _, node in pairs]


@settings(deadline=None, max_examples=200)
@given(brackets, trees(labels=any_labels, min_nodes=0))
def test_bracketed_is_undone_exactly(linearization, tree):
    assert linearization.tree(linearization.tokens(tree)) == tree


@settings(deadline=None, max_examples=300)
@given(
    brackets,
    st.lists(st.sampled_from(["(", "(a", "b", ")", "\\(", "\\)", "\\\\", "\\b", "\\", "", "("])),
)
def test_every_accepted_sequence_comes_back(linearization, tokens):
    try:
        tree = linearization.tree(tokens)
    except TreeError:
        return
    assert linearization.tokens(tree) == tokens


@settings(deadline=None, max_examples=50)
@given(trees(labels=any_labels))
def test_bracketed_may_have_interior_nodes_without_a_label(tree):
    labels = ["" if arity else "x" for arity in tree.arities]
    unlabelled = Tree(tree.parents, labels)
    assert BRACKETED.tree(BRACKETED.tokens(unlabelled)) == unlabelled


@settings(deadline=None, max_examples=50)
@given(st.one_of(dependency_trees(), constituency_trees(), trees()))
def test_words_are_the_surface_or_the_leaves(tree):
    nodes = WORDS.token_nodes(tree)
    if tree.words.max() >= 0:
        assert tree.words[nodes].tolist() == list(range(tree.words.max() + 1))
    else:
        assert nodes == tree.leaves
    assert WORDS.tokens(tree) == [tree.labels[node] for node in nodes]
    assert PREORDER.tokens(tree) == list(tree.labels)
    assert PREORDER.token_nodes(tree) == list(range(len(tree)))


@pytest.mark.parametrize("linearization", LINEARIZATIONS.values(), ids=LINEARIZATIONS)
def test_every_linearization_of_the_empty_tree_is_empty(linearization):
    empty = Tree([], [])
    assert linearization.tokens(empty) == linearization.token_nodes(empty) == []


@pytest.mark.parametrize("linearization", LINEARIZATIONS.values(), ids=LINEARIZATIONS)
@pytest.mark.parametrize("label", ["", " ", "a b", "a\n", "\u3000", "x\u2028y", "\x1c"])
def test_labels_that_cannot_be_tokens_are_named(linearization, label):
    tree = Tree([-1, 0, 0], ["S", "fine", label])
    message = f"node 2 has the label {label!r}; labels become tokens, which cannot be empty or hold"
    with pytest.raises(TreeError, match=re.escape(message)):
        linearization.tokens(tree)


def test_words_need_complete_surface_indices():
    with pytest.raises(TreeError, match="surface indices"):
        WORDS.tokens(Tree([-1, 0], ["a", "b"], [-1, 1]))


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["(a", "b"], "1 bracket is still open at the end"),
        (["(a", "(b", "\\("], "2 brackets are still open at the end"),
        (["(a", "b", ")", ")"], "token 4, '\\)', closes nothing"),
        ([")"], "token 1, '\\)', closes nothing"),
        (["(a", ")"], "token 2, '\\)', closes a node without children"),
        (["a", "b"], "token 2, 'b', follows the end of the tree"),
        (["(a", "b", ")", "(c"], "token 4, '\\(c', follows the end of the tree"),
        (["(a", "", ")"], "token 2, '', is empty or holds white space"),
        (["(a b", "c", ")"], "token 1, '\\(a b', is empty or holds white space"),
        (["\\a"], r"token 1, '\\\\a', has a backslash that it does not need"),
        (["\\"], "has a backslash that it does not need"),
    ],
)
def test_what_is_not_a_tree_is_refused(tokens, message):
    with pytest.raises(TreeError, match=message):
        BRACKETED.tree(tokens)


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (["(a", "b", ")"], "the last closing bracket stands once, not twice"),
        (["(a", "b", ")", "c"], "token 4, 'c', stands where the second closing bracket must"),
        (["(a", "(b", "c", ")", ")"], "1 bracket is still open at the end"),
        (["(a", "b", ")", ")", ")"], "token 5, '\\)', closes nothing"),
        (["(a", ")", ")"], "token 2, '\\)', closes a node without children"),
        (["(a", "b", ")", ")", "c"], "token 5, 'c', follows the end of the tree"),
    ],
)
def test_brackets_that_do_not_close_twice_are_refused(tokens, message):
    with pytest.raises(TreeError, match=message):
        TWICE.tree(tokens)


def test_depth_of_a_hundred_thousand():
    size = 100_000
    chain = Tree(range(-1, size - 1), ["x"] * size)
    tokens = BRACKETED.tokens(chain)
    assert len(tokens) == 2 * size - 1
    assert BRACKETED.tree(tokens) == chain
    assert BRACKETED.token_nodes(chain)[-1] == 0


def test_linearizations_by_name():
    assert get_linearization("preorder") is PREORDER
    assert [linearization.name for linearization in LINEARIZATIONS.values()] == list(LINEARIZATIONS)
    assert WORDS.tree is PREORDER.tree is None
    with pytest.raises(
        OptionError,
        match="no linearization is named 'inorder'; did you mean 'preorder'. there are words, preorder",
    ):
        get_linearization("inorder")


@pytest.mark.parametrize("linearization", ["bracketed", "nary_dfs", "lcrs_bfs"])
def test_no_linearization_has_the_heads_of_dependency_trees(linearization):
    """Every output, gold ones too, came out as a lone bracket."""
    assert tree_text("conllu", linearization) is None
    with pytest.raises(OptionError, match=f"{linearization} do not determine a tree of conllu"):
        from_linearization("a", linearization, "conllu")
