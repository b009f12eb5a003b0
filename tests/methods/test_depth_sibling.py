"""Embeddings of depth and sibling index, against sums of two rows node by node."""

import support.oracles as oracles
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import batch_of, expect_same, first_column
from support.strategies import rich_trees, trees
from torch import nn

from treesyntax.model.composition import Composition
from treesyntax.nn.injection import Site
from treesyntax.trees.tree import Tree

SITE = Site(d_model=6, heads=2, layers=1)
# Branches with gaps as well: the index is that of the slot.
forests = st.lists(
    trees(max_nodes=12) | rich_trees(min_nodes=1, max_nodes=8), min_size=1, max_size=3
)


@settings(deadline=None, max_examples=30)
@given(forests, st.booleans(), st.integers(1, 5), st.integers(1, 4))
def test_values_and_gradients_are_those_of_two_rows_a_node(forest, left_pad, depths, siblings):
    spec = f"depth_sibling(depths={depths}, siblings={siblings})"
    method = Composition(spec, SITE).double()["depth_sibling"]
    for table in method.parameters():
        nn.init.normal_(table)
    batch = batch_of(forest, left_pad)
    found = method.node_encoding(batch)
    wanted = torch.zeros_like(found)
    for row, tree in enumerate(forest):
        start = first_column(tree, found.shape[1], left_pad)
        for node in range(len(tree)):
            depth, index = len(oracles.ancestors(tree, node)), int(tree.branches[node])
            of_depth = method.depth_table[min(depth, depths - 1)]
            wanted[row, start + node] = of_depth + method.sibling_table[min(index, siblings - 1)]
    expect_same(found, wanted, method.parameters())


def test_special_tokens_get_nothing():
    method = Composition("depth_sibling", SITE)["depth_sibling"]
    found = method.node_encoding(batch_of([Tree([-1], ["a"])]))[0]
    assert found[0].abs().sum() > 0
    assert found[1].eq(0).all()
