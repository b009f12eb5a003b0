"""The kernel for long inputs on a GPU, whose slow form runs forward on a CPU as well."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.golden_states import TREES, output
from support.helpers import batch_of
from support.strategies import trees
from torch import nn

from treesyntax.methods.pairs.relation_mask import RelationMask
from treesyntax.model.composition import Composition
from treesyntax.model.encoder import Encoder
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.injection import Site
from treesyntax.nn.relations import relation_of_pair, tree_relations

SITE = Site(d_model=8, heads=2, layers=1)


@settings(deadline=None, max_examples=40)
@given(st.lists(trees(max_nodes=12), min_size=1, max_size=3), st.booleans())
def test_the_relation_of_a_pair_is_the_stored_one(forest, left_pad):
    batch = batch_of(forest, left_pad)
    ids, relation_of = tree_relations(batch).long(), relation_of_pair(batch)
    b, i, j = (
        index.flatten() for index in torch.meshgrid(*map(torch.arange, ids.shape), indexing="ij")
    )
    assert torch.equal(relation_of(b, i, j), ids.flatten())


@pytest.mark.parametrize(
    "spec", ["relation_mask", "stack_pe(depth=3)+relation_mask(form='additive')"]
)
def test_computed_ids_give_the_output_of_stored_ones(monkeypatch, spec):
    torch.manual_seed(0)
    # The kernel wants heads of 16 channels or more.
    options = TransformerConfig(d_model=32, d_ff=8, heads=2, layers=2, injection=spec)
    encoder = Encoder(options, nn.Embedding(8, 32, 1)).eval().requires_grad_(False)
    for name, parameter in encoder.named_parameters():
        if name.startswith("injections"):
            nn.init.normal_(parameter)
    stored = output(encoder)
    monkeypatch.setattr("treesyntax.model.composition.is_long", lambda tree: True)
    terms = encoder.injections.relate(batch_of(TREES), may_compute=True)(0)
    assert [callable(term.ids) for term in terms] == [True]
    computed = output(encoder)
    # The last sentence is padded; what stands at its padding does not matter.
    assert torch.allclose(computed[0], stored[0], atol=1e-5)
    assert torch.allclose(computed[1, :3], stored[1, :3], atol=1e-5)


@pytest.mark.parametrize(
    ("spec", "long"),
    [
        ("relation_mask+relative_depth", True),
        ("relation_mask+parent_scaled", True),
        ("tree_distance", True),
        ("relation_mask", False),
    ],
)
def test_short_inputs_and_methods_without_such_a_function_have_stored_ids(monkeypatch, spec, long):
    if long:
        monkeypatch.setattr("treesyntax.model.composition.is_long", lambda tree: True)
    terms = Composition(spec, SITE).relate(batch_of(TREES), may_compute=True)(0)
    assert len(terms) == spec.count("+") + 1
    assert not any(callable(term.ids) for term in terms)


@pytest.mark.parametrize("hook", ["vector_tables", "pair_scale", "pair_features", "value_map"])
def test_a_method_that_adds_more_than_biases_has_stored_ids(monkeypatch, hook):
    """The kernel for functions of a pair would leave the rest out."""
    monkeypatch.setattr("treesyntax.model.composition.is_long", lambda tree: True)
    relate = Composition("relation_mask", SITE).relate
    assert callable(relate(batch_of(TREES), may_compute=True)(0)[0].ids)
    usual = getattr(RelationMask, hook)
    monkeypatch.setattr(RelationMask, hook, lambda self, *words: usual(self, *words))
    assert not callable(relate(batch_of(TREES), may_compute=True)(0)[0].ids)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_gradients_on_a_gpu_are_those_of_stored_ids():
    torch.manual_seed(0)
    tree = batch_of(TREES)
    cuda = type(tree)(*(x.cuda() for x in (tree.parent, tree.branch, tree.token_node)))
    options = TransformerConfig(
        d_model=64, d_ff=8, heads=2, layers=1, injection="relation_mask", dropout=0
    )
    encoder = Encoder(options, nn.Embedding(8, 64, 1)).cuda()
    tokens = torch.tensor([[4, 5, 6, 7, 4, 5, 2], [6, 7, 2, 1, 1, 1, 1]]).cuda()

    def gradient():
        encoder.zero_grad()
        encoder.encode(tokens, cuda).memory[0].square().sum().backward()
        return encoder.injections["relation_mask"].strengths.grad.clone()

    stored = gradient()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("treesyntax.model.composition.is_long", lambda tree: True)
        computed = gradient()
    assert torch.allclose(stored, computed, atol=1e-3)


def test_gradients_through_its_slow_form_are_those_of_stored_ids(monkeypatch):
    # PyTorch refuses gradients on a CPU, as its compiled kernel has none there; the slow form has.
    monkeypatch.setattr("torch.nn.attention.flex_attention._validate_device", lambda *inputs: None)
    torch.manual_seed(0)
    tree = batch_of(TREES)
    options = TransformerConfig(
        d_model=32,
        d_ff=8,
        heads=2,
        layers=2,
        injection="stack_pe(depth=3)+relation_mask",
        dropout=0,
    )
    encoder = Encoder(options, nn.Embedding(8, 32, 1))
    tokens = torch.tensor([[4, 5, 6, 7, 4, 5, 2], [6, 7, 2, 1, 1, 1, 1]])

    def gradients():
        encoder.zero_grad()
        memory = encoder.encode(tokens, tree).memory
        (memory[0].square().sum() + memory[1, :3].square().sum()).backward()
        return {name: weight.grad.clone() for name, weight in encoder.named_parameters()}

    stored = gradients()
    monkeypatch.setattr("treesyntax.model.composition.is_long", lambda tree: True)
    computed = gradients()
    assert stored["injections.relation_mask.strengths"].abs().sum() > 0
    for name, gradient in stored.items():
        assert torch.allclose(computed[name], gradient, atol=1e-4, rtol=1e-4), name
