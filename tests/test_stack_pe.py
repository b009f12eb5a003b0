import math

import oracles
import pytest
import torch
from helpers import batch_of
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import trees

from treesyntax.injection import Site
from treesyntax.methods.stack_pe import StackEncoding
from treesyntax.tree import Tree


def encoder(d_model=6, dtype=torch.float64, **options):
    torch.manual_seed(0)
    return StackEncoding(Site(d_model, 2, 1), **options).to(dtype)


def expected(module, steps):
    """Build the wide vector and multiply: what the method never does."""
    clipped = [min(step, module.degree - 1) for step in steps]
    wide = oracles.weighted_stacks(
        clipped, module.degree, module.depth, torch.tanh(module.raw).tolist(), module.site.d_model
    )
    return module.projection(torch.tensor(wide, dtype=torch.float64))


@settings(deadline=None, max_examples=40)
@given(trees(max_nodes=12), st.integers(2, 4), st.integers(1, 5), st.sampled_from(["lcrs", "nary"]))
def test_equals_the_projected_stack_of_pushes(tree, degree, depth, form):
    module = encoder(degree=degree, depth=depth, parameters=3, tree=form)
    found = module.node_encoding(batch_of([tree]))
    for node in range(len(tree)):
        steps = (oracles.lcrs_path if form == "lcrs" else oracles.path)(tree, node)
        assert torch.allclose(found[0, node], expected(module, steps), atol=1e-9)


def test_stack_of_pushes_newest_first():
    """Shiv & Quirk 2019, Eq. 2, n = k = 3: y = root -> 0 -> 2 and z = D_1 y; U z = y."""
    y, z = oracles.stack([0, 2], 3, 3), oracles.stack([0, 2, 1], 3, 3)
    assert y == [0, 0, 1, 1, 0, 0, 0, 0, 0]
    assert z == [0, 1, 0, 0, 0, 1, 1, 0, 0]
    assert [*z[3:], 0, 0, 0] == y


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


def test_gradients_reach_p_and_projection():
    module = encoder(depth=3, parameters=2)
    batch = batch_of([Tree([-1, 0, 1, 0], list("abcd"))])

    def encode(raw, weight, bias):
        parameters = {"raw": raw, "projection.weight": weight, "projection.bias": bias}
        return torch.func.functional_call(module, parameters, (batch,))

    module.forward = module.node_encoding
    inputs = tuple(parameter.detach().requires_grad_() for parameter in module.parameters())
    assert torch.autograd.gradcheck(encode, inputs)
