import torch
from hypothesis import given, settings
from support.helpers import batch_of
from support.strategies import trees

from treesyntax.model.composition import Composition
from treesyntax.nn.injection import Site
from treesyntax.trees.tree import Tree

SITE = Site(d_model=6, heads=2, layers=1)


@settings(deadline=None, max_examples=30)
@given(trees(max_nodes=12))
def test_equals_the_two_embeddings_node_by_node(tree):
    torch.manual_seed(0)
    method = Composition("depth_sibling(depths=3, siblings=2)", SITE)["depth_sibling"]
    found = method.node_encoding(batch_of([tree]))[0]
    for node in range(len(tree)):
        rows = min(int(tree.depths[node]), 2), min(int(tree.branches[node]), 1)
        expected = method.depth_table[rows[0]] + method.sibling_table[rows[1]]
        assert torch.allclose(found[node], expected)


def test_special_tokens_get_nothing():
    method = Composition("depth_sibling", SITE)["depth_sibling"]
    found = method.node_encoding(batch_of([Tree([-1], ["a"])]))[0]
    assert found[0].abs().sum() > 0
    assert found[1].eq(0).all()
