"""Depths in the stack of every step, against stacks put together prefix by prefix."""

import math

import pytest
import support.oracles as oracles
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import SPECIALS, encoded, expect_same
from support.strategies import constituency_trees, trees
from torch import nn

from treesyntax.errors import OptionError
from treesyntax.model.bracket_growth import growing_trees
from treesyntax.model.composition import Composition
from treesyntax.model.encoder import Encoder
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.attention import attend
from treesyntax.nn.growth import GROWING_LINEARIZATIONS, GrowingTrees
from treesyntax.nn.injection import Site
from treesyntax.testing import check_method
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.tree import Tree

SITE = Site(8, 2, 2)
few = settings(deadline=None, max_examples=10)
forests = st.lists(trees(max_nodes=9), min_size=1, max_size=2)


def grown(symbols, linearization):
    """Of a prefix: the parent of each node (from 1) in the original tree, and those of open slots."""
    order, binary = GROWING_LINEARIZATIONS[linearization]
    places, open_slots = oracles.grow(symbols, order)
    parents = {}

    def original(parent, branch):
        return parents[parent] if binary and branch == 1 else parent

    for node, (parent, branch) in enumerate(places, start=1):
        parents[node] = original(parent, branch)
    return parents, [original(*slot) for slot in open_slots]


def line(parents, node):
    """A node and its ancestors, the root last."""
    found = []
    while node > 0:
        found.append(node)
        node = parents[node]
    return found


def stack_depth(symbols, linearization, j):
    """The depth of the j-th node after all symbols, from what is still open."""
    parents, waiting = grown(symbols, linearization)
    if linearization.endswith("bfs"):  # the way to the slot that comes next
        waiting = waiting[:1]
    growing = {node for parent in waiting for node in line(parents, parent)}
    complete = [node for node in line(parents, j) if node not in growing]
    return len(line(parents, complete[-1] if complete else j)) - 1


@pytest.mark.parametrize("linearization", GROWING_LINEARIZATIONS)
@few
@given(forest=forests, clip=st.integers(1, 6))
def test_ids_are_the_depths_in_the_stack_of_each_prefix(linearization, forest, clip):
    tokens, symbols = encoded(forest, linearization)
    (method,) = Composition(f"pushdown(clip={clip})", SITE).methods
    partial = GrowingTrees(symbols, linearization).grow(tokens)
    ids = method.relation_ids(partial.tree)
    for row, tree in enumerate(forest):
        text = [symbols[token] for token in tokens[row, 1 : len(tree) + 1]]
        for i in range(1, len(tree) + 1):
            for j in range(1, i + 1):
                wanted = min(stack_depth(text[:i], linearization, j), clip)
                assert ids[row, i, j] == wanted
        assert ids[row, 0].eq(method.no_vector).all()
        assert ids[row, :, len(tree) + 1 :].eq(method.no_vector).all()


def test_a_closed_constituent_has_one_depth():
    """S over NP (the dog) and VP (is happy), as the tokens come."""
    tree = Tree([-1, 0, 1, 1, 0, 4, 4], ["S", "NP", "the", "dog", "VP", "is", "happy"])
    tokens, symbols = encoded([tree], "nary_dfs")
    (method,) = Composition("pushdown", SITE).methods
    ids = method.relation_ids(GrowingTrees(symbols, "nary_dfs").grow(tokens).tree)[0, 1:, 1:]
    assert ids.tril().tolist() == [
        [0, 0, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0, 0],
        [0, 1, 2, 0, 0, 0, 0],
        [0, 1, 1, 1, 0, 0, 0],
        [0, 1, 1, 1, 1, 0, 0],
        [0, 1, 1, 1, 1, 2, 0],
        [0, 0, 0, 0, 0, 0, 0],
    ]


def complete_around(symbols, linearization, j):
    """How many constituents around the j-th node are complete after all symbols."""
    parents, waiting = grown(symbols, linearization)
    if linearization.endswith("bfs"):  # the way to the slot that comes next
        waiting = waiting[:1]
    growing = {node for parent in waiting for node in line(parents, parent)}
    if not waiting:
        return len(line(parents, j)) - 1
    return sum(node not in growing for node in line(parents, j)[1:])


@pytest.mark.parametrize("linearization", GROWING_LINEARIZATIONS)
@few
@given(forest=forests, clip=st.integers(1, 6))
def test_reductions_are_the_complete_constituents_around_a_token(linearization, forest, clip):
    tokens, symbols = encoded(forest, linearization)
    (method,) = Composition(f"pushdown(clip={clip}, tape='reductions')", SITE).methods
    ids = method.relation_ids(GrowingTrees(symbols, linearization).grow(tokens).tree)
    for row, tree in enumerate(forest):
        text = [symbols[token] for token in tokens[row, 1 : len(tree) + 1]]
        for i in range(1, len(tree) + 1):
            for j in range(1, i + 1):
                wanted = min(complete_around(text[:i], linearization, j), clip)
                assert ids[row, i, j] == wanted
        assert ids[row, 0].eq(method.no_vector).all()


def tape_of(words):
    """The program's tape after each token of a bracketed text, from a stack of what is open.

    The first bracket that closes a constituent counts for all tokens inside, the second for none.
    """
    counts, stack, tapes, second = [], [], [], False
    for at, word in enumerate(words):
        if word == ")" and not second:
            begin = stack.pop()
            for inside in range(begin + 1, at):
                counts[inside] += 1
        second = word == ")" and not second
        counts.append(0)
        if word.startswith("("):
            stack.append(at)
        tapes.append([*counts])
    return tapes


def bracketed(words):
    symbols = [*SPECIALS, *sorted({*words})]
    tokens = torch.tensor([[2, *map(symbols.index, words)]])
    (method,) = Composition("pushdown(tape='bracket_reductions')", SITE).methods
    return method.relation_ids(growing_trees(symbols, "bracketed_twice").grow(tokens).tree)[
        0, 1:, 1:
    ]


@settings(deadline=None, max_examples=40)
@given(constituency_trees())
def test_brackets_reduce_what_is_between_them(tree):
    words = get_linearization("bracketed_twice").tokens(tree)
    ids = bracketed(words).tolist()
    for i, tape in enumerate(tape_of(words)):
        assert ids[i][: i + 1] == [min(count, 16) for count in tape]


def test_the_tape_of_the_paper():
    """(((a b) c) d): after c is taken in, a and b have 2, c has 1, and d will have 0."""
    ids = bracketed(["(X", "(X", "(X", "a", "b", ")", ")", "c", ")", ")", "d", ")", ")"])
    a, b, c, after_c, d = 3, 4, 7, 8, 10
    assert ids[after_c, [a, b, c]].tolist() == [2, 2, 1]
    assert ids[d, [a, b, c, d]].tolist() == [2, 2, 1, 0]
    assert ids[d + 1, [a, b, c, d]].tolist() == [3, 3, 2, 1]
    slots = ["X/2", "X/2", "X/2", "a/0", "b/0", "c/0", "d/0"]
    tree = get_linearization("nary_dfs").tree(slots)
    tokens, symbols = encoded([tree], "nary_dfs")
    (method,) = Composition("pushdown(tape='reductions')", SITE).methods
    ids = method.relation_ids(GrowingTrees(symbols, "nary_dfs").grow(tokens).tree)[0, 1:, 1:]
    assert ids[5, 3:6].tolist() == [2, 2, 1]
    assert ids[6, 3:7].tolist() == [3, 3, 2, 1]


@pytest.mark.parametrize("tape", ["reductions", "bracket_reductions"])
def test_a_tape_of_reductions_sees_no_future(tape):
    check_method(f"pushdown(tape='{tape}')")


def test_reductions_of_brackets_are_named():
    growing = growing_trees([*SPECIALS, "(S", "a", ")"], "bracketed_twice")
    growing.check(Composition("pushdown(tape='bracket_reductions')", SITE), False)
    with pytest.raises(OptionError, match="pushdown needs a target with one token a node"):
        growing.check(Composition("pushdown(tape='reductions')", SITE), False)
    with pytest.raises(OptionError, match="pushdown: unknown tape 'x'; it is one of depth, red"):
        Composition("pushdown(tape='x')", SITE)


@pytest.mark.parametrize("per_head", [True, False])
@pytest.mark.parametrize("linearization", ["nary_dfs", "lcrs_bfs"])
@few
@given(forest=forests)
def test_attention_and_its_gradients_are_those_of_the_formula(per_head, linearization, forest):
    tokens, symbols = encoded(forest, linearization)
    composition = Composition(f"pushdown(clip=2, per_head={per_head})", SITE).double()
    (method,) = composition.methods
    nn.init.normal_(method.key_table, generator=torch.manual_seed(0))
    tree = GrowingTrees(symbols, linearization).grow(tokens).tree
    batch, width = tokens.shape
    inputs = torch.randn(3, batch, 2, width, 4, dtype=torch.float64, requires_grad=True)
    causal = torch.ones(width, width, dtype=torch.bool).tril() & tokens.ne(1)[:, None, None]
    found = attend(*inputs, causal, composition.relate(tree)(1))

    wanted = []
    for b, original in enumerate(forest):
        text = [symbols[token] for token in tokens[b, 1 : len(original) + 1]]
        for h in range(2):
            q, k, v = inputs[:, b, h]
            table = method.key_table[1, h] if per_head else method.key_table[1]
            for i in range(width):
                # The start symbol and the padding have no node, on either side.
                keys = [j for j in range(i + 1) if tokens[b, j] != 1]
                placed = i <= len(text)
                with_vectors = [
                    k[j] + table[min(stack_depth(text[:i], linearization, j), 2)]
                    if j and placed
                    else k[j]
                    for j in keys
                ]
                share = torch.softmax(torch.stack(with_vectors) @ q[i] / math.sqrt(4), 0)
                wanted.append(share @ v[keys])
    wanted = torch.stack(wanted).view(batch, 2, width, 4)
    expect_same(found, wanted, [inputs, method.key_table])


def test_an_encoder_refuses_it_and_says_where_it_belongs():
    chosen = TransformerConfig(16, 32, 2, 1, injection="relation_mask+pushdown")
    with pytest.raises(OptionError, match="pushdown is for a decoder.*--decoder-injection"):
        Encoder(chosen, nn.Embedding(len(SPECIALS), 16, 1))


@pytest.mark.parametrize("clip", [0, 254])
def test_a_clip_out_of_range(clip):
    with pytest.raises(OptionError, match="pushdown: clip must be 1 to 253"):
        Composition(f"pushdown(clip={clip})", SITE)
