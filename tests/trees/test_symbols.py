"""Tokens that say the slots of their nodes: the linearizations, their inverses and their limits."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.strategies import any_labels, dependency_trees, trees

from treesyntax.errors import TreeError
from treesyntax.trees.linearizations import LINEARIZATIONS
from treesyntax.trees.tree import Tree

NAMES = ("nary_dfs", "nary_bfs", "lcrs_dfs", "lcrs_bfs")
labels = st.one_of(any_labels, st.sampled_from(["/", "a/2", "a/LR", "<unk>", "<s>", "//0"]))
arity_linearizations = st.sampled_from(NAMES)

# (f (g a b) (h c) d), a node's number is its place in preorder
SAMPLE = Tree([-1, 0, 1, 1, 0, 4, 0], ["f", "g", "a", "b", "h", "c", "d"])
GOLDEN = {
    "nary_dfs": ("f/3 g/2 a/0 b/0 h/1 c/0 d/0", [0, 1, 2, 3, 4, 5, 6]),
    "nary_bfs": ("f/3 g/2 h/1 d/0 a/0 b/0 c/0", [0, 1, 4, 6, 2, 3, 5]),
    "lcrs_dfs": ("f/L g/LR a/R b/0 h/LR c/0 d/0", [0, 1, 2, 3, 4, 5, 6]),
    # Levels of the binary tree: f | g | a h | b c d
    "lcrs_bfs": ("f/L g/LR a/R h/LR b/0 c/0 d/0", [0, 1, 2, 4, 3, 5, 6]),
}


def spelled(tree: Tree, name: str) -> list[tuple[str, int]]:
    """Tokens and nodes of a linearization by recursion over the definition."""
    children = tree.children()
    following = {node: after for family in children for node, after in pairwise(family)}

    def read(node: int) -> tuple[str, list[int]]:
        if name.startswith("nary"):
            return f"{tree.labels[node]}/{len(children[node])}", children[node]
        left, right = children[node][:1], [following[node]] if node in following else []
        return f"{tree.labels[node]}/{'L' * len(left) + 'R' * len(right) or '0'}", left + right

    def depth_first(node: int) -> list[tuple[str, int]]:
        token, below = read(node)
        return [(token, node), *(pair for child in below for pair in depth_first(child))]

    def level_by_level(level: list[int]) -> list[tuple[str, int]]:
        below = [child for node in level for child in read(node)[1]]
        return [(read(node)[0], node) for node in level] + (below and level_by_level(below))

    return depth_first(0) if name.endswith("dfs") else level_by_level([0])


@pytest.mark.parametrize("name", NAMES)
def test_a_tree_by_hand(name):
    tokens, nodes = GOLDEN[name]
    assert LINEARIZATIONS[name].tokens(SAMPLE) == tokens.split()
    assert LINEARIZATIONS[name].token_nodes(SAMPLE) == nodes
    assert LINEARIZATIONS[name].tree(tokens.split()) == SAMPLE
    assert LINEARIZATIONS[name].slots


def test_other_linearizations_have_no_slots():
    assert [name for name, linearization in LINEARIZATIONS.items() if linearization.slots] == list(
        NAMES
    )


@settings(deadline=None, max_examples=200)
@given(trees(labels=labels), arity_linearizations)
def test_linearizations_match_their_definitions_and_are_undone(tree, name):
    linearization = LINEARIZATIONS[name]
    pairs = spelled(tree, name)
    assert linearization.tokens(tree) == [token for token, _ in pairs]
    assert linearization.token_nodes(tree) == [node for _, node in pairs]
    assert linearization.tree(linearization.tokens(tree)) == tree


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.sampled_from(["a/0", "b/1", "c/2", "e/L", "f/R", "g/LR", "//0", "x/02", "y", "/1"])
    ),
    arity_linearizations,
)
def test_every_accepted_sequence_comes_back(tokens, name):
    try:
        tree = LINEARIZATIONS[name].tree(tokens)
    except TreeError:
        return
    assert LINEARIZATIONS[name].tokens(tree) == tokens


@settings(deadline=None, max_examples=300)
@given(st.data(), trees(), arity_linearizations)
def test_mutations_are_refused_or_are_other_trees(data, tree, name):
    linearization = LINEARIZATIONS[name]
    tokens = linearization.tokens(tree)
    place = data.draw(st.integers(0, len(tokens) - 1))
    other = data.draw(st.sampled_from(["a/0", "a/1", "a/R", "a/LR", "a/L", "a/2", None]))
    mutated = [*tokens[:place], *([other] if other else []), *tokens[place + 1 :]]
    try:
        found = linearization.tree(mutated)
    except TreeError as error:
        message = str(error)
    else:
        assert linearization.tokens(found) == mutated
        assert (found == tree) == (mutated == tokens)
        return
    assert re.match(r"token \d+, '", message)


@settings(deadline=None, max_examples=50)
@given(trees(min_nodes=2), arity_linearizations)
def test_every_proper_prefix_and_every_continuation_is_refused(tree, name):
    tokens = LINEARIZATIONS[name].tokens(tree)
    for end in range(1, len(tokens)):
        with pytest.raises(TreeError, match="is the last, but .* still open"):
            LINEARIZATIONS[name].tree(tokens[:end])
    with pytest.raises(TreeError, match=f"token {len(tokens) + 1}, 'a/0', follows the end"):
        LINEARIZATIONS[name].tree([*tokens, "a/0"])


WRONG = [
    ("nary_dfs", "a/2 b/0", "token 2, 'b/0', is the last, but 1 slot is still open"),
    ("nary_bfs", "a/3", "token 1, 'a/3', is the last, but 3 slots are still open"),
    ("lcrs_dfs", "a/L b/LR c/0", "token 3, 'c/0', is the last, but 1 slot is still open"),
    ("nary_dfs", "a/1 b/0 c/0", "token 3, 'c/0', follows the end of the tree"),
    ("lcrs_bfs", "a/0 c/0", "token 2, 'c/0', follows the end of the tree"),
    ("lcrs_dfs", "a/LR b/0 c/0", "token 1, 'a/LR', gives the root a sibling"),
    ("lcrs_bfs", "a/R c/0", "token 1, 'a/R', gives the root a sibling"),
    ("nary_dfs", "a/1 <unk>", "token 2, '<unk>', is not a label, '/' and a number up to 10000"),
    ("nary_dfs", "a/L b/0", "token 1, 'a/L', is not a label, '/' and a number up to 10000"),
    ("nary_dfs", "a/01 b/0", "token 1, 'a/01', is not a label"),
    ("nary_bfs", "a/10001", "token 1, 'a/10001', is not a label"),
    ("nary_bfs", "a/-1", "token 1, 'a/-1', is not a label"),
    ("lcrs_bfs", "a/RL b/0", "token 1, 'a/RL', is not a label, '/' and one of 0 L R LR"),
    ("lcrs_dfs", "a/1 b/0", "token 1, 'a/1', is not a label"),
    ("nary_dfs", "/0", "token 1, '/0', is not a label"),
]


@pytest.mark.parametrize(("name", "tokens", "message"), WRONG)
def test_what_is_not_a_tree_is_refused(name, tokens, message):
    with pytest.raises(TreeError, match=f"^{re.escape(message)}"):
        LINEARIZATIONS[name].tree(tokens.split())


@pytest.mark.parametrize("name", NAMES)
def test_white_space_inside_a_token_is_refused(name):
    with pytest.raises(TreeError, match="token 1, 'a b/0', is not a label"):
        LINEARIZATIONS[name].tree(["a b/0"])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("parents", [range(-1, 9_999), [-1] + [0] * 9_999], ids=["deep", "wide"])
def test_trees_of_ten_thousand_nodes(name, parents):
    tree = Tree(parents, ["x"] * 10_000)
    assert LINEARIZATIONS[name].tree(LINEARIZATIONS[name].tokens(tree)) == tree


def test_slots_that_stay_open_cost_nothing():
    with pytest.raises(TreeError, match="199980001 slots are still open"):
        LINEARIZATIONS["nary_bfs"].tree(["a/10000"] * 20_000)


def test_a_node_with_too_many_children_needs_another_linearization():
    tree = Tree([-1] + [0] * 10_001, ["x"] * 10_002)
    with pytest.raises(TreeError, match="node 0 has 10001 children, more than 10000; use a left-"):
        LINEARIZATIONS["nary_dfs"].tokens(tree)
    assert LINEARIZATIONS["lcrs_bfs"].tree(LINEARIZATIONS["lcrs_bfs"].tokens(tree)) == tree


@settings(deadline=None, max_examples=50)
@given(dependency_trees())
def test_words_become_labels(tree):
    linearization = LINEARIZATIONS["nary_bfs"]
    found = linearization.tree(linearization.tokens(tree))
    assert (found.labels, found.parents.tolist()) == (tree.labels, tree.parents.tolist())
    assert set(found.words.tolist()) == {-1}
