import oracles
import torch
import torch.nn.functional as F
from helpers import batch_of
from hypothesis import given, settings
from strategies import trees

from treesyntax.composition import Composition
from treesyntax.injection import Site
from treesyntax.pair_bias import total_bias
from treesyntax.relations import NO_RELATION, RELATIONS

SITE = Site(d_model=8, heads=2, layers=3)


def composition(strengths=None):
    built = Composition("relation_mask", SITE).double()
    if strengths is not None:
        built["relation_mask"].strengths.data.copy_(strengths)
    return built


def bias_of(built, tree, layer):
    pairs = built.code_pairs(batch_of([tree]))
    return total_bias(pairs.biases(layer), None, torch.float64)[0]


@settings(deadline=None, max_examples=25)
@given(trees(max_nodes=10))
def test_equals_nine_dense_masks(tree):
    """Attention with the table equals the paper's formula, pair by pair and mask by mask."""
    torch.manual_seed(0)
    strengths = torch.randn(3, 2, 9, dtype=torch.float64)
    size = len(tree)
    masks = torch.zeros(9, size, size, dtype=torch.float64)
    for i in range(size):
        for j in range(size):
            masks[RELATIONS.index(oracles.relation(tree, i, j, i, j)), i, j] = 1
    q, k, v = torch.randn(3, 1, 2, size, 4, dtype=torch.float64)
    for layer in range(3):
        bias = bias_of(composition(strengths), tree, layer)[:, :size, :size]
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.unsqueeze(0))
        for head in range(2):
            expected = oracles.masked_attention(
                q[0, head], k[0, head], v[0, head], strengths[layer, head], masks
            )
            assert torch.allclose(found[0, head], expected, atol=1e-10)


def test_strengths_start_at_zero_so_that_every_pair_gets_minus_one():
    from treesyntax.tree import Tree

    bias = bias_of(composition(), Tree([-1, 0, 0], ["a", "b", "c"]), 0)
    assert bias.eq(-1).all()


def test_uncovered_pairs_stay_at_minus_one_whatever_is_learned():
    built = composition(torch.full((3, 2, 9), 2.0))
    table = built["relation_mask"].bias_table(1)
    assert table[:, NO_RELATION].eq(-1).all()
    assert torch.allclose(table[:, :NO_RELATION], -torch.tensor(2.0).double().exp())


def test_strengths_are_per_layer_and_head():
    """Set one strength of one head of one layer, and see just that in the bias."""
    from treesyntax.tree import Tree

    strengths = torch.zeros(3, 2, 9, dtype=torch.float64)
    strengths[1, 1, RELATIONS.index("parent")] = 1.5
    built = composition(strengths)
    tree = Tree([-1, 0, 0], ["a", "b", "c"])
    for layer in range(3):
        changed = (bias_of(built, tree, layer) != -1).nonzero().tolist()
        assert changed == ([[1, 0, 1], [1, 0, 2]] if layer == 1 else [])
