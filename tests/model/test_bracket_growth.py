"""Trees that grow from brackets, against a stack that reads token by token."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import SPECIALS, encoded
from support.strategies import trees

from treesyntax.model.bracket_growth import BRACKETS, GrowingBrackets
from treesyntax.trees.linearizations import get_linearization

SYMBOLS = [*SPECIALS, "(a", "(b", "c", "\\(", ")"]
START = 2
forests = st.lists(trees(max_nodes=14), min_size=1, max_size=4)


def grown(tokens):
    """The node of each token, and parent, branch and symbol of each node, until a token does not fit."""
    nodes, parents, branches, symbols, path = [], [], [], [], []
    owes_second, last_opened = False, False
    for token in tokens:
        if token in SPECIALS[:3]:
            break
        if owes_second:
            if token != ")":
                break
            nodes.append(path.pop())
            owes_second = False
        elif token == ")":
            if not path or last_opened:
                break
            nodes.append(path[-1])
            owes_second = True
        elif parents and not path:
            break
        else:
            nodes.append(len(parents))
            branches.append(parents.count(path[-1]) if path else 0)
            parents.append(path[-1] if path else -1)
            symbols.append(token)
            if token.startswith("("):
                path.append(nodes[-1])
        last_opened = token.startswith("(")
    return nodes, parents, branches, symbols


@st.composite
def token_batches(draw):
    """Trees, their beginnings, and any symbols at all after them."""
    width = draw(st.integers(0, 14))
    lines = []
    for tree in draw(forests):
        labels = st.sampled_from("ab")
        whole = [f"({draw(labels)}" if one.startswith("(") else one if one == ")" else "c"
                 for one in get_linearization(BRACKETS).tokens(tree)]  # fmt: skip
        kept = draw(st.integers(0, width))
        others = st.lists(st.sampled_from(SYMBOLS), min_size=width, max_size=width)
        lines.append((whole[:kept] + draw(others))[:width])
    return lines


@settings(deadline=None, max_examples=40)
@given(token_batches())
def test_growth_is_that_of_a_stack(lines):
    tokens = torch.tensor([[START, *map(SYMBOLS.index, line)] for line in lines])
    batch = GrowingBrackets(SYMBOLS).grow(tokens).tree
    assert batch.parent.shape == batch.branch.shape == batch.label.shape == tokens.shape
    numbers = {"(a": 2, "(b": 3}
    for row, line in enumerate(lines):
        nodes, parents, branches, symbols = grown(line)
        count, rest = len(parents), tokens.shape[1] - 1 - len(nodes)
        assert batch.token_node[row].tolist() == [-1, *nodes, *[-1] * rest]
        assert batch.parent[row, :count].tolist() == parents
        assert batch.branch[row, :count].tolist() == branches
        assert batch.label[row, :count].tolist() == [numbers.get(one, 1) for one in symbols]
        assert batch.parent[row, count:].eq(-1).all()


@settings(deadline=None, max_examples=10)
@given(forests)
def test_whole_trees_come_back_and_start_and_padding_have_no_node(forest):
    tokens, symbols = encoded(forest, BRACKETS)
    batch = GrowingBrackets(symbols).grow(tokens).tree
    for row, tree in enumerate(forest):
        nodes = get_linearization(BRACKETS).token_nodes(tree)
        assert batch.token_node[row, : len(nodes) + 1].tolist() == [-1, *nodes]
        assert batch.token_node[row, len(nodes) + 1 :].eq(-1).all()
        assert batch.parent[row, : len(tree)].tolist() == tree.parents.tolist()


def test_no_columns_make_no_tree():
    batch = GrowingBrackets(SYMBOLS).grow(torch.zeros(2, 0, dtype=torch.long)).tree
    assert batch.token_node.shape == (2, 0)
