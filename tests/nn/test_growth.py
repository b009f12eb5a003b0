"""The growing tree against an explicit stack or queue, and what stays the same as it grows."""

from __future__ import annotations

import pytest
import support.oracles as oracles
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import SPECIALS, encoded
from support.strategies import trees

from treesyntax.nn.coordinates import (
    branch_path,
    depth,
    left_child_right_sibling,
    left_factored,
    previous_sibling,
    right_factored,
)
from treesyntax.nn.growth import GROWING_LINEARIZATIONS, GrowingTrees
from treesyntax.nn.relations import NO_RELATION, RELATIONS, path_lengths, tree_relations
from treesyntax.nn.tree_batch import TreeBatch
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.tree import Tree

many = settings(deadline=None, max_examples=60)
ORDERS = ("dfs", "bfs")
orders = st.sampled_from(ORDERS)
forests = st.lists(trees(max_nodes=14), min_size=1, max_size=4)
EOS = 2
NARY = [*SPECIALS, "a/0", "b/1", "c/2", "d/3", "e/5", "f/0", "word"]
BINARY = [*SPECIALS, "a/0", "b/L", "c/R", "d/LR", "e/0"]


def place(tokens, symbols, order):
    """Binary symbols as they are: the tree of slots itself."""
    return GrowingTrees(symbols, f"nary_{order}").grow(tokens)


@st.composite
def token_batches(draw):
    """Any symbols at all, so complete and incomplete trees and stray symbols occur."""
    symbols = draw(st.sampled_from([NARY, BINARY]))
    width = draw(st.integers(0, 12))
    row = st.lists(st.integers(0, len(symbols) - 1), min_size=width, max_size=width)
    nodes = st.lists(st.integers(4, 8), min_size=width, max_size=width)
    rows = draw(st.lists(st.one_of(nodes, row), min_size=1, max_size=4))
    return symbols, torch.tensor([[EOS, *row] for row in rows])


@many
@given(token_batches(), orders)
def test_growth_equals_the_stack_or_queue(batch, order):
    symbols, tokens = batch
    growth = place(tokens, symbols, order)
    parent, branch = growth.family
    assert torch.equal(parent, growth.slots[0])
    for number, row in enumerate(tokens.tolist()):
        places, _ = oracles.grow([symbols[token] for token in row[1:]], order)
        nodes, unused = len(places), len(row) - 1 - len(places)
        assert growth.placed[number].tolist() == [False] + [True] * nodes + [False] * unused
        assert parent[number, : nodes + 1].tolist() == [-1, *(column for column, _ in places)]
        assert growth.slots[1][number, nodes + 2 :].unique().tolist() in ([], [0])
        for column in range(len(row)):
            _, open_slots = oracles.grow([symbols[token] for token in row[1 : column + 1]], order)
            assert growth.open_slots[number, column] == len(open_slots)
            if column > nodes:
                open_slots = []
            expected = open_slots[0] if open_slots else (-1, 0)
            assert (parent[number, column + 1], branch[number, column + 1]) == expected


@many
@given(token_batches(), orders)
def test_filled_slots_are_the_children_so_far(batch, order):
    symbols, tokens = batch
    growth = place(tokens, symbols, order)
    counts, filled = growth.counts, growth.filled
    for number, row in enumerate(tokens.tolist()):
        places, _ = oracles.grow([symbols[token] for token in row[1:]], order)
        parents = [parent for parent, _ in places]
        for column in range(1, len(row)):
            placed = column <= len(places)
            assert counts[number, column] == (
                len(oracles.slots_of(symbols[row[column]])) if placed else 0
            )
            assert filled[number, column] == parents.count(column)
        assert (counts[number, 0], filled[number, 0]) == (1, min(len(places), 1))


def nodes_of(tree, linearization):
    return get_linearization(linearization).token_nodes(tree)


@pytest.mark.parametrize("linearization", GROWING_LINEARIZATIONS)
@many
@given(forest=forests)
def test_every_linearization_grows_the_original_tree(linearization, forest):
    tokens, symbols = encoded(forest, linearization)
    batch = GrowingTrees(symbols, linearization).grow(tokens).tree
    for row, tree in enumerate(forest):
        unused = batch.parent.shape[1] - len(tree)
        assert batch.parent[row].tolist() == tree.parents.tolist() + [-1] * unused
        assert batch.branch[row].tolist() == tree.branches.tolist() + [0] * unused
        nodes = nodes_of(tree, linearization)
        assert batch.token_node[row].tolist() == [-1, *nodes, *[-1] * (unused - 1)]


@pytest.mark.parametrize("linearization", GROWING_LINEARIZATIONS)
@settings(deadline=None, max_examples=8)
@given(forest=forests)
def test_relations_are_those_of_the_tree(linearization, forest):
    tokens, symbols = encoded(forest, linearization)
    codes = tree_relations(GrowingTrees(symbols, linearization).grow(tokens).tree)
    assert codes[:, 0].eq(NO_RELATION).all()
    for row, tree in enumerate(forest):
        nodes = nodes_of(tree, linearization)
        for i, first in enumerate(nodes):
            for j, second in enumerate(nodes):
                expected = oracles.relation(tree, first, second, i, j)
                assert RELATIONS[codes[row, i + 1, j + 1]] == expected


def test_a_sibling_of_the_root_becomes_a_root():
    """No such tree exists, but a search without constraints may try it."""
    tokens = torch.tensor([[EOS, 4, 5, 6]])
    batch = GrowingTrees([*SPECIALS, "a/R", "b/L", "c/0"], "lcrs_dfs").grow(tokens).tree
    assert batch.parent.tolist() == [[-1, -1, 1, -1]]
    assert batch.branch.tolist() == [[0, 0, 0, 0]]


@many
@given(token_batches(), orders)
def test_the_next_slot_is_a_leaf_where_the_next_node_will_hang(batch, order):
    symbols, tokens = batch
    tree = place(tokens, symbols, order).next_slots
    paths = branch_path(tree, 20)
    for number, row in enumerate(tokens.tolist()):
        places, _ = oracles.grow([symbols[token] for token in row[1:]], order)
        for column in range(len(row)):
            _, open_slots = oracles.grow([symbols[token] for token in row[1 : column + 1]], order)
            node = int(tree.token_node[number, column])
            if column > len(places) or not open_slots:
                assert node == -1
                continue
            parent, branch = open_slots[0]
            expected = []
            while parent >= 0:
                expected.append(branch)
                parent, branch = places[parent - 1] if parent > 0 else (-1, 0)
            assert paths[number, node].tolist() == expected + [-1] * (20 - len(expected))


def path_of_tokens(form):
    def values(batch: TreeBatch):
        path = branch_path(form(batch), 6)
        chosen = batch.token_node.clamp(min=0).unsqueeze(2).expand(-1, -1, 6)
        return path.gather(1, chosen).masked_fill(batch.token_node.unsqueeze(2) < 0, -2)

    return values


def previous_sibling_token(batch: TreeBatch):
    previous = batch.at_tokens(previous_sibling(batch), -2)
    here = (previous.unsqueeze(2) == batch.token_node.unsqueeze(1)) & (previous.unsqueeze(2) >= 0)
    return torch.where(here.any(2), here.byte().argmax(2), previous.clamp(max=-1))


PER_TOKEN = {
    "depth": lambda batch: batch.at_tokens(depth(batch)),
    "branch_path": path_of_tokens(lambda batch: batch),
    "lcrs path": path_of_tokens(left_child_right_sibling),
    "previous_sibling": previous_sibling_token,
}
PER_PAIR = {"tree_relations": tree_relations, "path_lengths": path_lengths}


@pytest.mark.parametrize("linearization", GROWING_LINEARIZATIONS)
@settings(deadline=None, max_examples=15)
@given(forest=forests)
def test_what_is_read_off_a_prefix_stays_true_as_the_tree_grows(linearization, forest):
    tokens, symbols = encoded(forest, linearization)
    growing = GrowingTrees(symbols, linearization)
    growth = growing.grow(tokens)
    whole = growth.tree
    for width in range(1, tokens.shape[1]):
        shorter = growing.grow(tokens[:, :width])
        part = shorter.tree
        for name in ("placed", "open_slots"):
            assert torch.equal(getattr(shorter, name), getattr(growth, name)[:, :width]), name
        for name in ("slots", "family"):
            for mine, other in zip(getattr(shorter, name), getattr(growth, name), strict=True):
                assert torch.equal(mine, other[:, : width + 1]), name
        for name, values in PER_TOKEN.items():
            assert torch.equal(values(part), values(whole)[:, :width]), name
        for name, values in PER_PAIR.items():
            assert torch.equal(values(part), values(whole)[:, :width, :width]), name


@pytest.mark.parametrize("form", [left_factored, right_factored])
def test_paths_in_factored_trees_depend_on_later_siblings(form):
    """So these are not causal, and no decoder may use them."""
    tokens, symbols = encoded([Tree([-1, 0, 0, 2, 0], list("abcde"))], "nary_dfs")
    part, whole = (place(tokens[:, :t], symbols, "dfs").tree for t in (4, 6))
    values = path_of_tokens(form)
    assert not torch.equal(values(part), values(whole)[:, :4])


def test_breadth_first_by_hand():
    """and(f(x y) g): columns and, f, g, x, y; preorder and, f, x, y, g."""
    symbols = [*SPECIALS, "and/2", "f/2", "g/0", "x/0", "y/0"]
    growth = place(torch.tensor([[EOS, 4, 5, 6, 7, 8]]), symbols, "bfs")
    batch = growth.tree
    assert growth.slots[0].tolist() == [[-1, -1, 1, 1, 2, 2, -1]]
    assert growth.open_slots.tolist() == [[1, 2, 3, 2, 1, 0]]
    assert batch.token_node.tolist() == [[-1, 0, 1, 4, 2, 3]]
    assert batch.parent.tolist() == [[-1, 0, 1, 1, 0, -1]]


def test_three_children_expand_the_last_node_with_an_open_slot():
    """A rule that picks the node with most open slots goes wrong here."""
    symbols = [*SPECIALS, "f/3", "g/1", "x/0"]
    parent, slot = place(torch.tensor([[EOS, 4, 5, 5, 6, 6, 6]]), symbols, "dfs").slots
    assert parent.tolist() == [[-1, -1, 1, 2, 3, 1, 1, -1]]
    assert slot.tolist() == [[0, 0, 0, 0, 0, 1, 2, 0]]


@pytest.mark.parametrize("order", ORDERS)
def test_ten_thousand_nodes_deep_or_wide(order):
    size = 10_000
    deep = Tree([-1, *range(size - 1)], ["x"] * size)
    wide = Tree([-1] + [0] * (size - 1), ["x"] * size)
    symbols = [*SPECIALS, "x/1", "x/0", f"x/{size - 1}"]
    tokens = torch.tensor([[EOS, *[4] * (size - 1), 5], [EOS, 6, *[5] * (size - 1)]])
    batch = place(tokens, symbols, order).tree
    for row, tree in enumerate((deep, wide)):
        assert batch.parent[row].tolist() == [*tree.parents.tolist(), -1]
        assert batch.branch[row].tolist() == [*tree.branches.tolist(), 0]
        assert batch.token_node[row].tolist() == list(range(-1, size))


def test_the_table_moves_with_a_model_but_is_not_in_its_checkpoint():
    trees = GrowingTrees(BINARY, "lcrs_dfs")
    assert trees.state_dict() == {}
    assert {name for name, _ in trees.named_buffers()} == {"counts", "branches", "labels"}
    assert trees.half().counts.dtype == torch.int64
    assert trees.branches[6].tolist() == [1, -1]
