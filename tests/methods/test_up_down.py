"""A bias for the steps up and down, against walks from node to node."""

import support.oracles as oracles
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import batch_of, expect_attention
from support.strategies import trees

from treesyntax.model.composition import Composition
from treesyntax.nn.injection import Site
from treesyntax.trees.tree import Tree

SITE = Site(d_model=8, heads=2, layers=2)


@settings(deadline=None, max_examples=50)
@given(st.lists(trees(max_nodes=15), min_size=1, max_size=3), st.integers(1, 20))
def test_codes_are_the_steps_of_a_walk(forest, clip):
    method = Composition(f"up_down(clip={clip})", SITE)["up_down"]
    codes = method.relation_ids(batch_of(forest)).long()
    for row, tree in enumerate(forest):
        for i in range(len(tree)):
            for j in range(len(tree)):
                up, down = oracles.steps(tree, i, j)
                assert codes[row, i, j] == min(up, clip) * (clip + 1) + min(down, clip)
        assert codes[row, len(tree) :].eq(method.no_path).all()
        assert codes[row, :, len(tree) :].eq(method.no_path).all()


@settings(deadline=None, max_examples=15)
@given(
    st.lists(trees(max_nodes=9), min_size=1, max_size=3),
    st.booleans(),
    st.integers(1, 4),
    st.integers(0, 1),
)
def test_attention_and_its_gradients_are_those_of_the_formula(forest, left_pad, clip, layer):
    """Each way, up to ``clip`` steps, has the number of its own that the table holds for its layer and head."""
    composition = Composition(f"up_down(clip={clip})", SITE).double()
    table = composition["up_down"].table
    ways = [(up, down) for up in range(clip + 1) for down in range(clip + 1)]

    def logit(row, head, i, j, product):
        numbers = table[layer, head]
        if max(i, j) >= len(forest[row]):
            return product + numbers[-1]
        way = tuple(min(steps, clip) for steps in oracles.steps(forest[row], i, j))
        return product + numbers[ways.index(way)]

    sizes = [len(tree) + 1 for tree in forest]
    batch = batch_of(forest, left_pad)
    expect_attention(composition, batch, sizes, left_pad, logit, layer)


def test_it_tells_a_grandparent_from_a_sibling():
    method = Composition("up_down", SITE)["up_down"]
    codes = method.relation_ids(batch_of([Tree([-1, 0, 1, 1], list("abcd"))]))[0]
    assert codes[2, 0] != codes[2, 3]
