"""What all bridges refuse: trees that are not over the tokens of the model."""

from __future__ import annotations

import re

import pytest
import torch
from support.bridges.tiny_models import INPUTS, TOKENS, TREES, encoded, inputs_for, make
from support.helpers import batch_of

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
            match=re.escape(f"trees are over {found} tokens, but the model reads [2, 7]"),
        ):
            encoded(bridge, name, tree=batch_of(trees))
    with pytest.raises(ts.OptionError, match=r"over \[1, 7\] tokens, but the model reads \[2, 7\]"):
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
        bridge(**INPUTS, tree=ts.batch_trees(TREES, width=9))
    assert encoded(bridge.model, "Bert").isfinite().all()
