"""Attention with methods in transformers' models against the formulas, pair by pair in double precision."""

from __future__ import annotations

import copy
import importlib
from typing import Any

import pytest
import torch
from support.bridges.families import FAMILIES, SPEC, bridge, inputs, plain
from support.bridges.tiny_models import DECODERS, TREES, make, set_tables
from support.oracles import ancestors, relation
from torch import Tensor, nn

from treesyntax.bridges.huggingface import HuggingFaceBridge

transformers = pytest.importorskip("transformers")

STACKS = {
    "BERT": "bert", "RoBERTa": "roberta", "ModernBERT": "model", "T5": "encoder",
    "BART": "model.encoder", "GPT-2": "transformer", "Llama": "model",
}  # fmt: skip
NODES = [[*range(6), None], [*range(3), *[None] * 4]]
"""The node of each token of the two sentences."""
CLIP = 2


def literal_states(model: Any, stack_path: str, methods: Any, given: dict[str, Any]) -> Tensor:
    """The logits of a model whose stack has attention written out, over the trees of the sentences.

    A pair (i, j) of a head gets ``q_i (k_j + a_ij) s + b_ij`` and the value ``v_j + c_ij``.
    """
    stack = model.get_submodule(stack_path)
    layers = {id(part): part.layer_idx for part in stack.modules() if is_attention(part)}
    names = list(methods["relation_mask"].masks.names)
    strengths, depths = methods["relation_mask"].strengths, methods["relative_depth"]

    def attention(module, query, key, value, attention_mask, scaling=None, **options):
        own = options.get("position_bias")
        groups = query.shape[1] // key.shape[1]
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        rows, heads, width, _ = query.shape
        output = torch.zeros_like(query)
        layer = layers.get(id(module))
        for b in range(rows):
            for h in range(heads):
                for i in range(width):
                    logits, values = [], []
                    for j in range(key.shape[2]):
                        k, v = key[b, h // groups, j], value[b, h // groups, j]
                        bias = torch.zeros((), dtype=query.dtype)
                        if layer is not None:
                            bias, a, c = pair(b, h, i, j, layer)
                            k, v = k + a, v + c
                        if own is not None:
                            bias = bias + own[b if len(own) > 1 else 0, h, i, j]
                        masked = attention_mask is not None and not mask_of(
                            attention_mask, b, h, i, j
                        )
                        if masked or (attention_mask is None and module.is_causal and j > i):
                            bias = bias - 1e300
                        logits.append(query[b, h, i] @ k * scale + bias)
                        values.append(v)
                    output[b, h, i] = torch.softmax(torch.stack(logits), 0) @ torch.stack(values)
        return output.transpose(1, 2), None

    def pair(b, h, i, j, layer):
        tree, first, second = TREES[b], NODES[b][i], NODES[b][j]
        nothing = torch.zeros(depths.key_table.shape[-1], dtype=strengths.dtype)
        if first is None or second is None:
            return -torch.ones((), dtype=strengths.dtype), nothing, nothing
        number = names.index(relation(tree, first, second, i, j))
        difference = len(ancestors(tree, second)) - len(ancestors(tree, first))
        row = min(max(difference, -CLIP), CLIP) + CLIP
        return (
            -strengths[layer, h, number].exp(),
            depths.key_table[layer, row], depths.value_table[layer, row],
        )  # fmt: skip

    def encode(module, args, output):
        tables = methods["depth_sibling"].depth_table, methods["depth_sibling"].sibling_table
        total = output.clone()
        for b, nodes in enumerate(NODES):
            for i, node in enumerate(nodes):
                if node is not None:
                    depth = len(ancestors(TREES[b], node))
                    total[b, i] += tables[0][depth] + tables[1][int(TREES[b].branches[node])]
        return total

    masks = importlib.import_module("transformers.masking_utils")
    transformers.AttentionInterface.register("literal", attention)
    transformers.AttentionMaskInterface.register("literal", masks.sdpa_mask)
    model.set_attn_implementation("literal")
    handle = stack.get_input_embeddings().register_forward_hook(encode)
    try:
        with torch.no_grad():
            return model(**given).logits
    finally:
        handle.remove()


def is_attention(part: nn.Module) -> bool:
    return hasattr(part, "layer_idx") and "Attention" in type(part).__name__


def mask_of(mask: Tensor, b: int, h: int, i: int, j: int) -> Tensor:
    return mask[b, h if mask.shape[1] > 1 else 0, i if mask.shape[2] > 1 else 0, j]


@pytest.mark.parametrize("family", FAMILIES)
def test_three_methods_are_their_formulas_in_every_family(family: str):
    """A bias, vectors on keys and values, and an encoding, together and in both layers."""
    model = plain(family).double()
    untouched = copy.deepcopy(model)
    made = HuggingFaceBridge(model, SPEC).eval()
    set_tables(made, 0.5)
    given = inputs(family)
    batch = given.pop("tree")
    with torch.no_grad():
        found = made(**given, tree=batch).logits
        alone = untouched(**given).logits
    expected = literal_states(untouched, STACKS[family], made.injections, given)
    real = given["attention_mask"].bool()
    assert (found - expected)[real].abs().max() < 1e-12
    assert (found - alone)[real].abs().max() > 1e-5  # BART starts with small weights


@pytest.mark.parametrize("name", DECODERS)
def test_with_zero_tables_a_decoder_is_the_untouched_model(name: str):
    head = "LMHeadModel" if name == "GPT2" else "ForCausalLM"
    model = make(name, head)
    given = inputs("Llama")
    batch = given.pop("tree")
    real = given["attention_mask"].bool()
    with torch.no_grad():
        expected = model(**given).logits
        made = HuggingFaceBridge(model, SPEC)
        set_tables(made, 0)
        assert torch.allclose(made(**given, tree=batch).logits[real], expected[real], atol=1e-6)
        # It goes on without trees.
        assert torch.allclose(model(**given).logits[real], expected[real], atol=1e-6)
        set_tables(made, 0.5)
        assert not torch.allclose(made(**given, tree=batch).logits[real], expected[real], atol=1e-3)


@pytest.mark.parametrize("family", FAMILIES)
def test_with_zero_tables_every_family_is_the_untouched_model(family: str):
    given = inputs(family)
    batch = given.pop("tree")
    with torch.no_grad():
        expected = plain(family)(**given)
        found = bridge(family, 0)(**given, tree=batch)
    real = given["attention_mask"].bool()
    assert torch.allclose(found.logits[real], expected.logits[real], atol=1e-6)
    assert torch.allclose(found.loss, expected.loss, atol=1e-6)
