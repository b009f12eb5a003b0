"""Stack encodings, against stacks pushed step by step and multiplied by the whole matrix."""

import math

import pytest
import support.oracles as oracles
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import batch_of, expect_same, first_column
from support.strategies import trees

from treesyntax.methods.encodings.stack_pe import StackEncoding
from treesyntax.nn.injection import Site
from treesyntax.trees.tree import Tree


def encoder(d_model=6, dtype=torch.float64, **options):
    torch.manual_seed(0)
    return StackEncoding(Site(d_model, 2, 1), **options).to(dtype)


def path_in(form, tree, node):
    if form in ("left", "right"):
        return oracles.factored_path(tree, node, form)
    return (oracles.lcrs_path if form == "lcrs" else oracles.path)(tree, node)


def wide_stack(module, steps):
    """The stack of pushes, newest step first, each weighted by every p: what the method never builds.

    Depth-major, then branch, then parameter, with p^level sqrt(1 - p^2) sqrt(d_model / 2).
    """
    p, half = torch.tanh(module.raw), module.site.d_model / 2
    newest = [min(step, module.degree - 1) for step in reversed(steps)]
    nothing = torch.zeros_like(p)
    return torch.cat([
        p**level * torch.sqrt((1 - p * p) * half) if newest[level : level + 1] == [branch] else nothing
        for level in range(module.depth)
        for branch in range(module.degree)
    ])  # fmt: skip


@settings(deadline=None, max_examples=40)
@given(
    st.lists(trees(max_nodes=12), min_size=1, max_size=2),
    st.booleans(),
    st.integers(2, 4),
    st.integers(1, 8),
    st.sampled_from(["lcrs", "nary", "left", "right"]),
    st.sampled_from(["bias", "plain"]),
)
def test_values_and_gradients_are_those_of_the_projected_stack(
    forest, left_pad, degree, depth, form, projection
):
    degree = degree if form == "nary" else 2
    module = encoder(degree=degree, depth=depth, parameters=3, tree=form, projection=projection)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    found = module.node_encoding(batch_of(forest, left_pad))
    width, steps = found.shape[1], {}
    for row, tree in enumerate(forest):
        start = first_column(tree, width, left_pad)
        steps |= {(row, start + node): path_in(form, tree, node) for node in range(len(tree))}
    wanted = [
        module.projection(wide_stack(module, steps.get((row, column), [])))
        for row in range(len(forest))
        for column in range(width)
    ]
    expect_same(found.flatten(0, 1), torch.stack(wanted), module.parameters())


def test_golden_weights_of_the_published_implementation():
    """Depth 3, degree 2, one p = 0.5, d_model 8, node root -> right -> left."""
    module = encoder(d_model=8, degree=2, depth=3, parameters=1, tree="nary")
    with torch.no_grad():
        module.raw.fill_(math.atanh(0.5))
    assert torch.allclose(
        module.weights().flatten(),
        torch.tensor([1.7320508, 0.8660254, 0.4330127], dtype=torch.float64),
    )
    wide = oracles.weighted_stacks([1, 0], 2, 3, [0.5], 8)
    assert wide == pytest.approx([1.7320508, 0, 0, 0.8660254, 0, 0])
    # branch 1 below the root, branch 0 below that: "right" needs an elder sibling in the tree.
    tree = Tree([-1, 0, 0, 2], list("abcd"))
    found = module.node_encoding(batch_of([tree]))[0, 3]
    assert torch.allclose(found, module.projection(torch.tensor(wide, dtype=torch.float64)))


def test_root_and_special_tokens_get_the_bias_alone():
    module = encoder()
    torch.nn.init.normal_(module.projection.bias)
    found = module.node_encoding(batch_of([Tree([-1, 0], ["a", "b"])]))
    assert torch.equal(found[0, 0], module.projection.bias)
    assert torch.equal(found[0, 2], module.projection.bias)
    assert not torch.allclose(found[0, 1], module.projection.bias)


def test_children_beyond_the_degree_share_the_last_branch():
    module = encoder(degree=2, tree="nary")
    tree = Tree([-1, 0, 0, 0], list("abcd"))
    found = module.node_encoding(batch_of([tree]))[0]
    assert torch.equal(found[2], found[3])
    assert not torch.allclose(found[1], found[2])


@settings(deadline=None, max_examples=20)
@given(trees(max_nodes=10))
def test_without_projection_it_is_the_weighted_stack_itself(tree):
    module = encoder(d_model=12, degree=2, depth=3, parameters=2, projection="none")
    found = module.node_encoding(batch_of([tree]))[0]
    for node in range(len(tree)):
        wide = oracles.weighted_stacks(
            oracles.lcrs_path(tree, node), 2, 3, torch.tanh(module.raw).tolist(), 12
        )
        assert found[node].tolist() == pytest.approx(wide)
    assert found[-1].eq(0).all()


def test_without_weights_it_is_the_plain_stack():
    module = encoder(d_model=9, degree=3, depth=3, parameters=0, projection="none", tree="nary")
    tree = Tree([-1, 0, 1, 1, 1, 4, 4], list("abcdefg"))
    found = module.node_encoding(batch_of([tree]))[0]
    assert found[4].tolist() == oracles.stack([0, 2], 3, 3)
    assert found[6].tolist() == oracles.stack([0, 2, 1], 3, 3)


def test_where_p_begins():
    icecaps = torch.tanh(encoder(parameters=32).raw)
    assert 0.2 < icecaps.abs().max() <= math.tanh(math.sqrt(3 / 32))
    high = torch.tanh(encoder(parameters=32, start="high").raw)
    assert high.min() >= 0.6 - 1e-6
    assert high.max() <= 0.76 + 1e-6
    fixed = encoder(parameters=2, start="0.9", learned=False)
    assert torch.tanh(fixed.raw).tolist() == pytest.approx([0.9, 0.9])
    assert not fixed.raw.requires_grad


def test_bare_powers_without_the_norm():
    module = encoder(depth=3, parameters=1, start="0.5", norm="none")
    assert module.weights().flatten().tolist() == pytest.approx([1, 0.5, 0.25])
