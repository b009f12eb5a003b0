"""Subword pieces on trees."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.strategies import constituency_trees, dependency_trees, rich_trees

from treesyntax.data.binarize.spelling import by_word
from treesyntax.errors import OptionError, TreeError
from treesyntax.trees.linearizations import LINEARIZATIONS, get_linearization
from treesyntax.trees.subword_nodes import SUBWORD_RELATION
from treesyntax.trees.subwords import NO_NODE, POLICIES, attach, linearize
from treesyntax.trees.tree import Tree

WORDS, PREORDER, BRACKETED = (
    get_linearization(name) for name in ("words", "preorder", "bracketed")
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


def first_nodes(new: Tree, pieces: list[list[str]]) -> list[int]:
    """The new node of the first piece (or of the kept label) of each word."""
    nodes, start = [], 0
    for word in pieces:
        nodes.append(new.words.tolist().index(start))
        start += max(1, len(word))
    return nodes


def remove(new: Tree, added: set[int], old: Tree, words: dict[int, int]) -> Tree:
    """The tree without some leaves, with the old labels and surface indices."""
    kept = [node for node in range(len(new)) if node not in added]
    number = {-1: -1} | {node: i for i, node in enumerate(kept)}
    parents = new.parents.tolist()
    elder = [sum(parents[a] == parents[node] and a < node for a in added) for node in kept]
    return Tree(
        [number[parents[node]] for node in kept],
        old.labels,
        [words.get(node, -1) for node in kept],
        [new.relations[node] for node in kept] if new.relations else (),
        [int(new.branches[node]) - e for node, e in zip(kept, elder, strict=True)],
    )


@settings(deadline=None, max_examples=150)
@given(segmented_trees())
def test_siblings_attach_every_piece_once_and_can_be_taken_off(case):
    tree, pieces = case
    new, nodes, spread, _ = attach(tree, pieces, "siblings")
    assert nodes == new.word_nodes()
    assert sum(parent == -1 for parent in new.parents.tolist()) == min(1, len(tree))
    labels = [new.labels[node] for node in new.word_nodes()]
    kept_labels = [tree.labels[node] for node in tree.word_nodes()]
    expected = [word or [label] for word, label in zip(pieces, kept_labels, strict=True)]
    assert labels == [piece for word in expected for piece in word]
    assert [list(word) for word in spread] == [
        [piece] if piece else [] for word in pieces for piece in (word or [""])
    ]
    firsts = first_nodes(new, pieces)
    added = {node for node, word in enumerate(new.words.tolist()) if word >= 0} - set(firsts)
    words = {node: word for word, node in enumerate(firsts)}
    assert remove(new, added, tree, words) == tree


@settings(deadline=None, max_examples=100)
@given(segmented_trees())
def test_added_nodes_are_leaves_after_the_word_under_its_parent(case):
    tree, pieces = case
    new = attach(tree, pieces, "siblings").tree
    last = new.last_descendants.tolist()
    node_of = {word: node for node, word in enumerate(new.words.tolist()) if word >= 0}
    start = 0
    for word in pieces:
        first = node_of[start]
        for i in range(1, len(word)):
            added = node_of[start + i]
            root = new.parents[first] == -1
            assert new.parents[added] == (first if root else new.parents[first])
            assert last[added] == added
            assert added == i + (0 if root else last[first])
            assert not new.relations or new.relations[added] == SUBWORD_RELATION
        start += max(1, len(word))


@settings(deadline=None, max_examples=100)
@given(segmented_trees())
def test_copy_keeps_the_tree_and_repeats_nodes(case):
    tree, pieces = case
    assume(pieces)  # a tree without words shows its leaves in the words linearization
    segmented = attach(tree, pieces, "copy")
    assert segmented.tree == tree
    tokens, nodes = linearize(segmented, WORDS)
    assert tokens == [piece for word in pieces for piece in word]
    owners = zip(tree.word_nodes(), pieces, strict=True)
    assert nodes == [node for node, word in owners for _ in word]


@settings(deadline=None, max_examples=100)
@given(segmented_trees())
def test_a_chain_hangs_every_piece_below_the_one_before_and_moves_nothing(case):
    tree, pieces = case
    new, nodes, *_ = attach(tree, pieces, "chain")
    last, children = new.last_descendants.tolist(), new.children()
    start, added = 0, set()
    for word in pieces:
        chain = nodes[start : start + len(word)]
        for above, below in pairwise(chain):
            assert children[above][-1] == below
            assert last[above] == last[below]
            assert not new.relations or new.relations[below] == SUBWORD_RELATION
        assert len(chain) < 2 or not children[chain[-1]]
        added |= set(chain[1:])
        start += max(1, len(word))
    # Without the pieces it is the old tree, node by node and slot by slot.
    kept = [node for node in range(len(new)) if node not in added]
    number = {-1: -1} | {node: i for i, node in enumerate(kept)}
    assert [number[int(new.parents[node])] for node in kept] == tree.parents.tolist()
    assert new.branches[kept].tolist() == tree.branches.tolist()
    assert tuple(new.relations[node] for node in kept if new.relations) == tree.relations
    assert [number[node] for node in first_nodes(new, pieces)] == tree.word_nodes()


@settings(deadline=None, max_examples=100)
@given(segmented_trees(), st.sampled_from(["first", "last"]))
def test_one_piece_is_on_the_node_of_the_word_and_the_others_are_on_none(case, policy):
    tree, pieces = case
    assume(pieces)
    segmented = attach(tree, pieces, policy)
    assert segmented.tree == tree
    expected = []
    for node, word in zip(tree.word_nodes(), pieces, strict=True):
        others = [NO_NODE] * (len(word) - 1)
        if word:
            expected += [node, *others] if policy == "first" else [*others, node]
    assert linearize(segmented, WORDS)[1] == expected


@settings(deadline=None, max_examples=200)
@given(segmented_trees(), st.sampled_from(sorted(POLICIES)))
def test_the_words_linearization_is_the_segmented_sentence_whatever_the_policy(case, policy):
    tree, pieces = case
    assume(pieces)
    segmented = attach(tree, pieces, policy)
    tokens, nodes = linearize(segmented, WORDS)
    assert tokens == [piece for word in pieces for piece in word]
    assert len(nodes) == len(tokens)
    new = segmented.tree
    # What is built without checks passes the checks, so there is a single root.
    assert new == Tree(new.parents, new.labels, new.words, new.relations, new.branches)
    placed = sum(node != NO_NODE for node in nodes)
    assert placed == (sum(map(bool, pieces)) if policy in ("first", "last") else len(tokens))
    assert len({node for node in nodes if node >= 0}) == (
        sum(map(bool, pieces)) if policy in ("first", "last", "copy") else len(tokens)
    )


@settings(deadline=None, max_examples=200)
@given(segmented_trees(), st.sampled_from(sorted(POLICIES)), st.sampled_from([PREORDER, BRACKETED]))
def test_every_piece_is_in_every_linearization_in_order(case, policy, linearization):
    tokens, _ = linearize(attach(*case, policy), linearization)
    for word in case[1]:
        shown = [token.removeprefix("(") for token in tokens]
        assert [token for token in shown if token in word] == word


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


@settings(deadline=None, max_examples=100)
@given(segmented_trees(trees=constituency_trees()))
def test_copy_puts_pieces_at_the_node_in_preorder(case):
    tree, pieces = case
    tokens, nodes = linearize(attach(tree, pieces, "copy"), PREORDER)
    expected = []
    for node in range(len(tree)):
        word = int(tree.words[node])
        expected += [(t, node) for t in (pieces[word] if word >= 0 else [tree.labels[node]])]
    assert list(zip(tokens, nodes, strict=True)) == expected


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
    with pytest.raises(TreeError, match="nary_dfs has one token a node, but a word .* siblings or"):
        linearize(attach(sentence(), pieces, "first"), linearization)


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
