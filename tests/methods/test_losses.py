"""Losses from trees, against their formulas written as loops over tokens in double precision."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import batch_of, stored
from support.strategies import trees

from treesyntax.errors import OptionError
from treesyntax.methods.losses.parent_head import parent_tokens
from treesyntax.model.composition import Composition
from treesyntax.nn.injection import METHODS, LayerStates, Site
from treesyntax.nn.tree_batch import collate
from treesyntax.testing.methods import PADDING, TREES
from treesyntax.testing.methods import make_encoder as build
from treesyntax.testing.methods import make_sentences as sentences
from treesyntax.trees.tree import Tree

LOSSES = [name for name in METHODS if METHODS[name].training_only]
OF_ATTENTION = ["distance_head", "parent_head"]
OPTIONS = "(layer=2, heads=3, weight=0.7)"


def path_length(tree, one, other):
    """Edges between two nodes, by their ancestors."""
    chains = []
    for node in (one, other):
        chain = [node]
        while tree.parents[chain[-1]] >= 0:
            chain.append(int(tree.parents[chain[-1]]))
        chains.append(chain)
    return min(
        chains[0].index(node) + chains[1].index(node) for node in chains[0] if node in chains[1]
    )


def parent_loss(tree, weights, first):
    total = 0.0
    for node in range(len(tree)):
        parent = int(tree.parents[node]) if node else 0
        total = total - weights[first + node, first + parent].log()
    return total


def distance_loss(tree, weights, first):
    total = 0.0
    for one in range(len(tree)):
        falling = [math.exp(-path_length(tree, one, other)) for other in range(len(tree))]
        for other, part in enumerate(falling):
            wanted = part / sum(falling)
            given = weights[first + one, first + other]
            total = total + wanted * (math.log(wanted) - given.log())
    return total


ORACLES = {"parent_head": parent_loss, "distance_head": distance_loss}


def attention_of(layer, x, real, bias):
    """The weights [H, T, T] of a sentence, from the projections."""
    heads = layer.self_attn.heads
    query = layer.self_attn_layer_norm(x) if layer.settings.normalize_before else x
    q, k = (
        part(query).unflatten(1, (heads, -1))
        for part in (layer.self_attn.q_proj, layer.self_attn.k_proj)
    )
    logits = torch.einsum("ihd,jhd->hij", q, k) / math.sqrt(q.shape[2]) + bias
    return logits.masked_fill(~real, -1e30).softmax(2)


def slow_loss(name, encoder, inputs, tokens, forest, left_pad, bias):
    layer = encoder.layers[1]
    total = 0.0
    for row, tree in enumerate(forest):
        weights = attention_of(layer, inputs[row], tokens[row] != PADDING, bias[row])
        first = tokens.shape[1] - 1 - len(tree) if left_pad else 0
        for head in range(3):
            total = total + 0.7 * ORACLES[name](tree, weights[head], first)
    return total


@pytest.fixture
def _double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("name", OF_ATTENTION)
@pytest.mark.parametrize("left_pad", [False, True])
@given(forest=st.lists(trees(max_nodes=9), min_size=1, max_size=3), before=st.booleans())
@settings(deadline=None, max_examples=15)
def test_values_and_gradients_are_those_of_the_formula(name, left_pad, forest, before):
    encoder = build(f"{name}{OPTIONS}+tree_distance", dropout=0.0, normalize_before=before).train()
    tokens, batch = sentences(forest, left_pad)
    seen = []
    encoder.layers[1].register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    mine = encoder.encode(tokens, batch).loss
    lengths = encoder.injections["tree_distance"].relation_ids(batch).long()
    bias = encoder.injections["tree_distance"].table[:, lengths].transpose(0, 1)
    slow = slow_loss(name, encoder, seen[0], tokens, forest, left_pad, bias)
    torch.testing.assert_close(mine, slow, rtol=1e-10, atol=1e-10)
    wanted = list(encoder.parameters())
    gradients = [
        torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True)
        for loss in (mine, slow)
    ]
    assert sum(one is not None for one in gradients[0]) > 10
    for one, other in zip(*gradients, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", OF_ATTENTION)
def test_pairs_that_a_mask_forbids_are_left_out(name):
    """Each token sees its parent and itself alone, but for the last one, whose parent it does not see."""
    chain = Tree([-1, 0, 1, 2], list("abcd"))
    tokens, batch = sentences([chain])
    seen = torch.tensor([[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]])
    encoder = build(name)
    width = tokens.shape[1]
    logits = torch.randn(1, 1, width, width, requires_grad=True)
    mask = torch.full((width, width), -5000.0)
    mask[:4, :4] = mask[:4, :4].masked_fill(seen.bool(), 0)
    log_weights = (logits + mask).log_softmax(3)
    nothing = torch.zeros(1, width, 1)
    states = LayerStates(nothing, lambda heads: log_weights[:, :heads], nothing)
    loss = encoder.injections[name].loss(0, states, batch)
    log = log_weights[0, 0]
    near, far = 1 / (1 + math.exp(-1)), math.exp(-1) / (1 + math.exp(-1))
    wanted = {
        "parent_head": -(log[0, 0] + log[1, 0] + log[2, 1]),
        "distance_head": sum(
            near * (math.log(near) - log[i, i]) + far * (math.log(far) - log[i, i - 1])
            for i in (1, 2)
        ),
    }
    torch.testing.assert_close(loss, wanted[name])
    loss.backward()
    assert logits.grad.isfinite().all()
    assert logits.grad[0, 0, 1, 0] != 0


@pytest.mark.parametrize("name", LOSSES)
def test_the_output_stays_that_of_the_plain_transformer_bit_for_bit(name):
    plain, supervised = build("none", dropout=0.1), build(name, dropout=0.1)
    tokens, batch = sentences(TREES)
    for training in (False, True):
        outputs = []
        for encoder in (plain, supervised):
            torch.manual_seed(4)
            outputs.append(encoder.train(training).encode(tokens, batch))
        assert torch.equal(outputs[0].memory, outputs[1].memory)
        assert outputs[0].loss is None
        assert (outputs[1].loss is not None) == training


@pytest.mark.parametrize("name", LOSSES)
def test_after_training_no_tree_is_needed(name):
    tokens, batch = sentences(TREES)
    encoder = build(name)
    assert torch.equal(encoder.encode(tokens, None).memory, encoder.encode(tokens, batch).memory)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("recompute", [False, True])
def test_batches_add_up_and_recomputed_activations_change_nothing(name, recompute):
    encoder = build(f"{name}{OPTIONS}", dropout=0.0, recompute=recompute).train()
    whole = encoder.encode(*sentences(TREES)).loss
    whole.backward()
    mine = {
        key: part.grad.clone() for key, part in encoder.named_parameters() if part.grad is not None
    }
    encoder.zero_grad()
    tokens, _ = sentences(TREES)
    total = 0.0
    for row, tree in enumerate(TREES):
        loss = encoder.encode(tokens[row : row + 1, : len(tree) + 1], batch_of([tree])).loss
        loss.backward()
        total += loss.item()
    assert whole.item() == pytest.approx(total, rel=1e-5)
    for key, part in encoder.named_parameters():
        if key in mine:
            torch.testing.assert_close(mine[key], part.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_in_half_precision_the_loss_is_single(name, dtype):
    tokens, batch = sentences(TREES)
    encoder = build(name, dropout=0.0).train()
    full = encoder.encode(tokens, batch).loss
    half = encoder.to(dtype).encode(tokens, batch).loss
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(full.item(), rel=0.03)


def test_a_parent_of_several_tokens_is_its_first_and_without_tokens_none():
    tree = Tree([-1, 0, 1, 1, 0], list("abcde"))
    batch = collate([stored(tree, [2, 0, 0, 3, 4])], 6)
    assert parent_tokens(batch).tolist() == [[-1, 1, 1, -1, 1, -1]]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("options", ["layer=0", "layer=3", "heads=0", "heads=5", "weight=0.0"])
def test_arguments_out_of_range_are_refused(name, options):
    with pytest.raises(OptionError, match="a layer of 1 to 2, 1 to 4 heads and a weight above 0"):
        Composition(f"{name}({options})", Site(16, 4, 2))


@pytest.mark.parametrize("name", OF_ATTENTION)
def test_training_moves_the_heads_onto_the_tree(name):
    encoder = build(name, dropout=0.0).train()
    tokens, batch = sentences(TREES)
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    first = encoder.encode(tokens, batch).loss.item()
    for _ in range(40):
        optimizer.zero_grad()
        encoder.encode(tokens, batch).loss.backward()
        optimizer.step()
    assert encoder.encode(tokens, batch).loss.item() < 0.3 * first
