"""What all bridges refuse: trees over other tokens, and a second bridge."""

from __future__ import annotations

import copy
import re

import pytest
import torch
from support.bridges.tiny_models import (
    BATCH,
    INPUTS,
    TOKENS,
    TREES,
    encoded,
    inputs_for,
    make,
    set_tables,
)
from support.helpers import batch_of
from torch import nn

import treesyntax as ts
from treesyntax.bridges.huggingface import HuggingFaceBridge


@pytest.mark.parametrize("name", ["Bert", "ModernBert", "T5", "Bart"])
@pytest.mark.parametrize("spec", ["relation_mask", "relative_depth", "stack_pe(depth=4)"])
def test_trees_over_other_tokens_are_refused(name: str, spec: str):
    """Relations of one sentence would be broadcast to all, also where embeddings get nothing."""
    bridge = HuggingFaceBridge(make(name), spec).eval()
    plain = encoded(bridge.model, name)
    for trees, found in ((TREES[:1], [1, 7]), (TREES[1:] * 2, [2, 4]), (TREES + TREES, [4, 7])):
        with pytest.raises(
            ts.OptionError,
            match=re.escape(f"trees are over tokens {found}, but the tokens are [2, 7]"),
        ):
            encoded(bridge, name, tree=batch_of(trees))
    with pytest.raises(ts.OptionError, match=r"over tokens \[1, 7\], but the tokens are \[2, 7\]"):
        embedded = bridge.model.get_input_embeddings()(TOKENS)
        given = {**inputs_for(name), "inputs_embeds": embedded}
        bridge(**{key: given[key] for key in given if key != "input_ids"}, tree=batch_of(TREES[:1]))
    assert torch.equal(encoded(bridge.model, name), plain)


@pytest.mark.parametrize("tree", [TREES[0], TREES, {"parent": TOKENS}, {}])
def test_what_is_no_batch_of_trees_is_refused(tree: object):
    bridge = HuggingFaceBridge(make("Bert"), "relation_mask")
    with pytest.raises(
        ts.OptionError, match=f"a TreeBatch, not a {type(tree).__name__}; make it with batch_trees"
    ):
        bridge(**INPUTS, tree=tree)


def test_a_batch_that_cannot_be_used_leaves_the_model_as_it_was():
    bridge = HuggingFaceBridge(make("Bert"), "relation_mask+labelled_relation").eval()
    with pytest.raises(ts.OptionError, match="needs the labels of nodes"):
        bridge(**INPUTS, tree=ts.batch_trees(TREES, width=7))
    assert encoded(bridge.model, "Bert").isfinite().all()


@pytest.mark.parametrize("name", ["Bert", "T5", "Bart"])
def test_a_second_bridge_over_a_model_is_refused(name: str):
    """It would take the place of the first one in silence; the first goes on as it was."""
    model = make(name)
    bridge = HuggingFaceBridge(model, "relation_mask").eval()
    set_tables(bridge, 0.5)
    before = encoded(bridge, name, tree=BATCH)
    for spec in ("tree_distance", "relation_mask"):
        with pytest.raises(
            ts.OptionError, match=r"has a bridge with relation_mask already; load .* joined by \+"
        ):
            HuggingFaceBridge(model, spec)
    assert torch.equal(encoded(bridge, name, tree=BATCH), before)
    copied = copy.deepcopy(bridge)
    assert torch.equal(encoded(copied, name, tree=BATCH), before)
    with pytest.raises(ts.OptionError, match="has a bridge with relation_mask already"):
        HuggingFaceBridge(copied.model, "tree_distance")


def test_a_bridge_over_a_head_and_one_over_its_base_are_two():
    model = make("Bert", "ForTokenClassification")
    HuggingFaceBridge(model.bert, "relation_mask")
    with pytest.raises(ts.OptionError, match="this BertForTokenClassification has a bridge with"):
        HuggingFaceBridge(model, "tree_distance")


def test_a_second_bridge_over_pytorchs_encoder_is_refused():
    layer = nn.TransformerEncoderLayer(16, 4, 24, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    ts.TransformerEncoderBridge(encoder, "relation_mask")
    with pytest.raises(ts.OptionError, match="this TransformerEncoder has a bridge with relation"):
        ts.TransformerEncoderBridge(encoder, "tree_distance")


def test_trees_within_trees_leave_the_outer_ones_in_place():
    bridge = HuggingFaceBridge(make("Bert"), "relation_mask+stack_pe(depth=4)").eval()
    set_tables(bridge, 0.5)
    other = batch_of([ts.Tree([-1, 0, 0, 0, 0, 0], list("abcdef")), TREES[1]])
    with bridge.over(BATCH) as model:
        before = encoded(model, "Bert")
        within = encoded(bridge, "Bert", tree=other)
        assert not torch.allclose(within, before)
        assert torch.equal(encoded(model, "Bert"), before)


def test_each_forward_over_the_same_trees_has_gradients_and_sees_updates():
    bridge = HuggingFaceBridge(make("Bert"), "relation_mask+stack_pe(depth=4)")
    set_tables(bridge, 0.5)
    with bridge.over(BATCH) as model:
        before = encoded(model, "Bert")
        for _ in range(2):
            encoded(model, "Bert").square().sum().backward()
        with torch.no_grad():
            bridge.injections["stack_pe"].projection.weight.add_(0.5)
        assert not torch.allclose(encoded(model, "Bert"), before)


@pytest.mark.parametrize("name", ["Bert", "ModernBert", "T5", "Bart"])
def test_attention_weights_are_refused_rather_than_empty(name: str):
    bridge = HuggingFaceBridge(make(name), "relation_mask").eval()
    with pytest.raises(ts.OptionError, match="gives no attention weights"):
        bridge(**inputs_for(name), tree=BATCH, output_attentions=True)


@pytest.mark.parametrize("kind", ["transformers", "pytorch"])
def test_code_of_torch_jit_which_has_no_trees_of_a_call_is_refused(kind: str):
    if kind == "pytorch":
        layer = nn.TransformerEncoderLayer(16, 4, 24, batch_first=True)
        bridge, given = (
            ts.TransformerEncoderBridge(nn.TransformerEncoder(layer, 1), "relation_mask"),
            torch.randn(2, 7, 16),
        )
    else:
        bridge, given = HuggingFaceBridge(make("Bert"), "relation_mask"), TOKENS
    with pytest.raises(
        ts.OptionError, match=r"torch.jit.trace would keep the trees of its example"
    ):
        torch.jit.trace(lambda x: bridge(x, tree=BATCH), (given,))
    for module in (bridge, nn.Sequential(bridge)):
        with pytest.raises(ts.OptionError, match=r"torch.jit.script cannot compile a bridge"):
            torch.jit.script(module)
