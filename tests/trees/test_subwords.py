"""Subword pieces on trees."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.oracles import subwords_on_tree
from support.strategies import constituency_trees, dependency_trees, rich_trees

from treesyntax.data.binarize.spelling import by_word
from treesyntax.errors import OptionError, TreeError
from treesyntax.trees.linearizations import LINEARIZATIONS, get_linearization
from treesyntax.trees.subwords import POLICIES, attach, linearize
from treesyntax.trees.tree import Tree

WORDS, PREORDER, BRACKETED, TWICE = (
    get_linearization(name) for name in ("words", "preorder", "bracketed", "bracketed_twice")
)

any_trees = st.one_of(constituency_trees(), dependency_trees(), rich_trees(), st.just(Tree([], [])))


@st.composite
def segmented_trees(draw, trees=any_trees, fewest=0):
    """A tree and pieces for each of its words, all different so that each can be traced."""
    tree = draw(trees)
    sizes = st.integers(fewest, 4)
    pieces = []
    for word in range(len(tree.word_nodes())):
        pieces.append([f"w{word}p{i}" for i in range(draw(sizes))])
    return tree, pieces


@settings(deadline=None, max_examples=400)
@given(segmented_trees(), st.sampled_from(sorted(POLICIES)), st.sampled_from([BRACKETED, TWICE]))
def test_every_policy_is_what_its_definition_says(case, policy, brackets):
    tree, pieces = case
    assume(pieces)  # a tree without words shows its leaves in the words linearization
    segmented = attach(tree, pieces, policy)
    for linearization in (WORDS, PREORDER, brackets):
        new, *expected = subwords_on_tree(tree, pieces, policy, linearization.name)
        assert segmented.tree == new
        assert list(linearize(segmented, linearization)) == expected


@settings(deadline=None, max_examples=100)
@given(
    segmented_trees(fewest=1),
    st.sampled_from(["siblings", "chain"]),
    st.sampled_from(sorted(LINEARIZATIONS)),
)
def test_pieces_that_are_nodes_give_the_linearization_of_the_new_tree(case, policy, linearization):
    segmented = attach(*case, policy)
    tokens, nodes = linearize(segmented, get_linearization(linearization))
    assert tokens == get_linearization(linearization).tokens(segmented.tree)
    assert nodes == get_linearization(linearization).token_nodes(segmented.tree)


def sentence() -> Tree:
    """(S (NP (D the) (N dogs)) (V bark))."""
    labels = ["S", "NP", "D", "the", "N", "dogs", "V", "bark"]
    return Tree([-1, 0, 1, 2, 1, 4, 0, 6], labels, [-1, -1, -1, 0, -1, 1, -1, 2])


def test_mcdonald_and_chiang_split_a_leaf_into_leaves_under_the_same_parent():
    segmented = attach(sentence(), [["the"], ["do@@", "g@@", "s"], ["bark"]], "siblings")
    tokens, nodes = linearize(segmented, PREORDER)
    assert tokens == ["S", "NP", "D", "the", "N", "do@@", "g@@", "s", "V", "bark"]
    assert nodes == list(range(10))
    assert segmented.tree.parents.tolist() == [-1, 0, 1, 2, 1, 4, 4, 4, 0, 8]


def test_brackets_stay_in_place_around_pieces():
    pieces = [["the"], ["dog", "s"], []]
    whole = linearize(attach(sentence(), [["the"], ["dog"], ["bark"]], "copy"), BRACKETED)[0]
    for policy in ("siblings", "copy", "first", "last"):
        tokens, _ = linearize(attach(sentence(), pieces, policy), BRACKETED)
        at = whole.index("dog") + 1
        assert tokens == [token for token in [*whole[:at], "s", *whole[at:]] if token != "bark"]


def test_a_chain_of_pieces_is_bracketed_as_a_tree():
    pieces = [["the"], ["do@@", "g@@", "s"], ["bark"]]
    tokens, _ = linearize(attach(sentence(), pieces, "chain"), BRACKETED)
    assert " ".join(tokens) == "(S (NP (D the ) (N (do@@ (g@@ s ) ) ) ) (V bark ) )"


def test_only_some_tokens_of_a_bracketed_head_may_be_on_its_node():
    heads = Tree.from_heads([0, 1], ["ab", "cd"])
    found = {}
    for policy in ("copy", "first", "last"):
        tokens, nodes = linearize(attach(heads, [["a", "b"], ["c", "d"]], policy), BRACKETED)
        assert tokens == ["(a", "b", "c", "d", ")"]
        found[policy] = nodes
    assert found == {"copy": [0, 0, 1, 1, 0], "first": [0, -1, 1, -1, 0], "last": [-1, 0, -1, 1, 0]}


def test_linearizations_with_one_token_a_node_take_pieces_that_are_nodes_only():
    pieces = [["the"], ["dog", "s"], ["bark"]]
    linearization = get_linearization("nary_dfs")
    assert len(linearize(attach(sentence(), pieces, "chain"), linearization)[0]) == 9
    told = "nary_dfs has one token a node, but the word 'dogs' has 2 subwords; .* siblings or"
    with pytest.raises(TreeError, match=told):
        linearize(attach(sentence(), pieces, "first"), linearization)


@pytest.mark.parametrize("policy", POLICIES)
def test_words_that_segmentation_deletes_are_named_where_every_node_is_a_token(policy):
    told = "nary_dfs has one token a node, but the word 'dogs' has no subword; remove the word from"
    with pytest.raises(TreeError, match=told):
        linearize(
            attach(sentence(), [["the"], [], ["bark"]], policy), get_linearization("nary_dfs")
        )


def test_pieces_that_look_like_brackets_are_escaped_like_leaves():
    pieces = [["the"], ["(", ")", "(dog"], ["bark"]]
    tokens = {
        policy: linearize(attach(sentence(), pieces, policy), BRACKETED)[0]
        for policy in ("siblings", "copy")
    }
    assert tokens["copy"] == tokens["siblings"]
    assert tokens["copy"].count(")") == tokens["copy"].count("(N") + 4
    assert BRACKETED.tree(tokens["copy"]).labels[5:8] == ("(", ")", "(dog")


def test_an_opening_bracket_outlives_its_word():
    heads = Tree.from_heads([0, 1], ["\u00a0", "b"])
    for policy in ("siblings", "copy"):
        tokens, nodes = linearize(attach(heads, [[], ["b"]], policy), BRACKETED)
        assert (tokens, nodes) == (["(", "b", ")"], [0, 1, 0])


def dependency_sentence() -> Tree:
    """Big dogs bark loudly."""
    return Tree.from_heads(
        [2, 3, 0, 3], ["big", "dogs", "bark", "loudly"], ["amod", "nsubj", "root", "advmod"]
    )


def test_pieces_of_a_head_follow_its_dependents_and_those_of_the_root_come_first():
    pieces = [["big"], ["dog", "s"], ["b", "ark"], ["loudly"]]
    tree = attach(dependency_sentence(), pieces, "siblings").tree
    assert tree.labels == ("b", "ark", "dog", "big", "s", "loudly")
    assert tree.parents.tolist() == [-1, 0, 0, 2, 0, 0]
    assert tree.words.tolist() == [3, 4, 1, 0, 2, 5]
    assert tree.relations == ("root", "subword", "nsubj", "amod", "subword", "advmod")


def test_a_chain_follows_the_dependents_of_its_head():
    pieces = [["big"], ["dog", "g", "s"], ["b", "ark"], ["loudly"]]
    tree = attach(dependency_sentence(), pieces, "chain").tree
    assert tree.labels == ("b", "dog", "big", "g", "s", "loudly", "ark")
    assert tree.parents.tolist() == [-1, 0, 1, 1, 3, 0, 0]
    assert tree.branches.tolist() == [0, 0, 0, 1, 0, 1, 2]
    assert tree.words.tolist() == [4, 1, 0, 2, 3, 6, 5]
    assert tree.relations == ("root", "nsubj", "amod", "subword", "subword", "advmod", "subword")


def test_a_word_without_pieces_keeps_its_node_and_has_no_token():
    pieces = [["big"], [], ["bark"], ["loud", "ly"]]
    for policy, size in (
        ("siblings", 5), ("chain", 5), ("copy", 4), ("first", 4), ("last", 4),
    ):  # fmt: skip
        segmented = attach(dependency_sentence(), pieces, policy)
        assert len(segmented.tree) == size
        assert "dogs" in segmented.tree.labels
        tokens, nodes = linearize(segmented, WORDS)
        assert tokens == ["big", "bark", "loud", "ly"]
        assert segmented.tree.labels.index("dogs") not in nodes


def test_a_long_chain_is_no_problem():
    size = 10_000
    chain = Tree.from_heads(range(size), ["w"] * size, ["r"] * size)
    for policy in ("siblings", "chain"):
        assert len(attach(chain, [["a", "b"]] * size, policy).tree) == 2 * size
    word = attach(Tree.from_heads([0], ["w"]), [["a"] * size], "chain").tree
    assert word.parents.tolist() == list(range(-1, size - 1))


def test_faults_are_named():
    with pytest.raises(
        OptionError,
        match="no subword policy is named 'x'; there are siblings, chain, copy, first, last",
    ):
        attach(sentence(), [], "x")
    with pytest.raises(TreeError, match="2 segmented words, but the tree has 3 words"):
        attach(sentence(), [["a"], ["b"]], "copy")


@pytest.mark.parametrize(
    ("line", "style", "words"),
    [
        ("▁the ▁do g s", "sentencepiece", [["▁the"], ["▁do", "g", "s"]]),
        ("▁ 猫 ▁", "sentencepiece", [["▁", "猫"], ["▁"]]),
        ("the ▁dog", "sentencepiece", [["the"], ["▁dog"]]),
        ("the do@@ g@@ s", "subword-nmt", [["the"], ["do@@", "g@@", "s"]]),
        ("@@ a b@@", "subword-nmt", [["@@", "a"], ["b@@"]]),
        ("", "subword-nmt", []),
        ("", "sentencepiece", []),
    ],
)
def test_pieces_are_grouped_by_word(line, style, words):
    assert by_word(line.split(), style) == words
