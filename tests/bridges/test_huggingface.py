"""Trees in the models of transformers: tiny ones, made from configurations on the spot."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from support.bridges.families import FAMILIES, bridge, plain
from support.bridges.tiny_models import (
    BATCH,
    INPUTS,
    MODELS,
    SIZES,
    T5,
    TOKENS,
    TREES,
    encoded,
    make,
    set_tables,
)
from support.helpers import batch_of
from torch import nn

import treesyntax as ts
from treesyntax.bridges.huggingface import HuggingFaceBridge

transformers = pytest.importorskip("transformers")

ALL = "stack_pe(depth=4)+relation_mask+relative_depth+random_walk_pairs(powers=3)"


@pytest.mark.parametrize("name", MODELS)
def test_with_zero_tables_it_is_the_untouched_model(name: str):
    """A strength s adds -exp(s) to all pairs, which is the same for all: no change either."""
    model = make(name)
    with torch.no_grad():
        plain = encoded(model, name)
        bridge = HuggingFaceBridge(model, ALL).eval()
        set_tables(bridge, 0)
        assert torch.allclose(encoded(bridge, name, tree=BATCH), plain, atol=1e-5)
        set_tables(bridge, 0.5)
        assert not torch.allclose(encoded(bridge, name, tree=BATCH), plain, atol=1e-2)
        assert torch.equal(encoded(bridge.model, name), encoded(model, name))
        assert torch.allclose(
            encoded(model, name), plain, atol=1e-5
        )  # the model alone is as it was


@pytest.mark.parametrize("gradients", [False, True])
@pytest.mark.parametrize("spec", ["relation_mask", ALL])
@pytest.mark.parametrize(("name", "head"), [("Bert", "Model"), ("T5", "EncoderModel")])
def test_with_zero_tables_nothing_changes_under_any_mask(
    name: str, head: str, spec: str, gradients: bool
):
    """With gradients a CPU takes another way for one table; a mask may differ from head to head."""
    torch.manual_seed(2)
    real = INPUTS["attention_mask"].bool()[:, None, None]
    by_head = (torch.rand(2, 4, 7, 7) < 0.6).logical_or(torch.eye(7).bool()) & real
    by_pair = by_head[:, :1]
    model = make(name, head)
    masks = (INPUTS["attention_mask"], by_pair, by_head)

    def states(of: nn.Module, mask: torch.Tensor, **tree: ts.TreeBatch) -> torch.Tensor:
        output = of(input_ids=TOKENS, attention_mask=mask, **tree).last_hidden_state
        return output[INPUTS["attention_mask"].bool()]

    with torch.set_grad_enabled(gradients):
        plain = [states(model, mask) for mask in masks]
        bridge = HuggingFaceBridge(model, spec).eval()
        set_tables(bridge, 0)
        found = [states(bridge, mask, tree=BATCH) for mask in masks]
    assert not torch.allclose(plain[1], plain[2], atol=1e-3)
    for number, (one, other) in enumerate(zip(found, plain, strict=True)):
        assert torch.allclose(one, other, atol=1e-5), f"mask {number}"


@pytest.mark.parametrize("name", MODELS)
def test_gradients_reach_every_table_of_every_layer(name: str):
    bridge = HuggingFaceBridge(make(name), ALL)
    set_tables(bridge, 0.3)
    states = encoded(bridge, name, tree=BATCH)
    (states * torch.randn_like(states)).sum().backward()
    for where, parameter in bridge.injections.named_parameters():
        assert parameter.grad is not None, where
        layers = parameter.grad if parameter.dim() > 1 and len(parameter) == 2 else [parameter.grad]
        assert all(part.abs().sum() > 0 for part in layers), where
    assert all(one.grad is not None for one in bridge.model.get_input_embeddings().parameters())


@pytest.mark.parametrize("name", ["Bert", "T5", "ModernBert"])
def test_each_bias_is_in_its_layer_and_head(name: str):
    """Against transformers' own attention with the same numbers in a mask of four dimensions."""
    model = make(name)
    plain = copy.deepcopy(model)
    bridge = HuggingFaceBridge(model, "relation_mask").eval()
    set_tables(bridge, 0)
    with torch.no_grad():
        bridge.injections["relation_mask"].strengths[0, 2, 3:] = 2.0
    (term,) = bridge.injections.relate(BATCH)(0)
    bias = term.bias[:, term.ids.long()].transpose(0, 1) + 1
    real = INPUTS["attention_mask"].bool()[:, None, None]
    first = bias.masked_fill(~real, -1e9).contiguous()
    rest = torch.zeros_like(first).masked_fill(~real, -1e9)
    paths = {
        "Bert": "encoder.layer.{}.attention.self", "ModernBert": "layers.{}.attn",
        "T5": "encoder.block.{}.layer.0.SelfAttention",
    }  # fmt: skip
    for layer, mask in enumerate((first, rest)):

        def replace(module, args, kwargs, mask=mask):
            key = "mask" if "mask" in kwargs else "attention_mask"
            window = kwargs.get(key)
            window = 0 if window is None else torch.zeros(()).masked_fill(~window, -1e9)
            if len(args) > 1:
                return (args[0], mask, *args[2:]), kwargs
            return args, {**kwargs, key: mask + window}

        plain.get_submodule(paths[name].format(layer)).register_forward_pre_hook(
            replace, with_kwargs=True
        )
    with torch.no_grad():
        expected, found = encoded(plain, name), encoded(bridge, name, tree=BATCH)
        assert torch.allclose(found, expected, atol=1e-5)
        assert not torch.allclose(found, encoded(model, name), atol=1e-3)


def test_the_tree_of_a_sentence_changes_this_sentence_alone():
    bridge = HuggingFaceBridge(make("Bert"), ALL).eval()
    set_tables(bridge, 0.5)
    flat = batch_of([ts.Tree([-1, 0, 0, 0, 0, 0], list("abcdef")), TREES[1]])
    first, second = (bridge(**INPUTS, tree=one).last_hidden_state for one in (BATCH, flat))
    assert not torch.allclose(first[0], second[0], atol=1e-3)
    assert torch.equal(first[1], second[1])
    alone = bridge(input_ids=TOKENS[1:, :4], tree=batch_of(TREES[1:])).last_hidden_state[0]
    assert torch.allclose(alone, first[1, :4], atol=1e-5)


def test_values_are_accumulated_over_the_tree():
    """A method that maps values: the tree matters, and the gradient reaches its parameters."""
    bridge = HuggingFaceBridge(make("Bert"), "hierarchical_accumulation")
    set_tables(bridge, 0.3)
    states = encoded(bridge.eval(), "Bert", tree=BATCH)
    (states * torch.randn_like(states)).sum().backward()
    assert all(one.grad.abs().sum() > 0 for one in bridge.injections.parameters())
    flat = batch_of([ts.Tree([-1, 0, 0, 0, 0, 0], list("abcdef")), TREES[1]])
    assert not torch.allclose(states, encoded(bridge, "Bert", tree=flat), atol=1e-3)


def test_a_copy_of_a_bridge_is_one_of_its_own():
    bridge = HuggingFaceBridge(make("Bert"), ALL).eval()
    set_tables(bridge, 0.5)
    copied = copy.deepcopy(bridge)
    before = encoded(bridge, "Bert", tree=BATCH)
    assert torch.equal(encoded(copied, "Bert", tree=BATCH), before)
    set_tables(copied, 0)
    assert not torch.allclose(encoded(copied, "Bert", tree=BATCH), before, atol=1e-2)
    assert torch.equal(encoded(bridge, "Bert", tree=BATCH), before)


def test_embeddings_in_place_of_tokens_get_the_same_encodings():
    bridge = HuggingFaceBridge(make("Bert"), "stack_pe(depth=4)").eval()
    embedded = bridge.model.get_input_embeddings()(TOKENS)
    given = {"inputs_embeds": embedded, "attention_mask": INPUTS["attention_mask"]}
    of_tokens, of_embeddings = bridge(**INPUTS, tree=BATCH), bridge(**given, tree=BATCH)
    assert torch.allclose(of_tokens.last_hidden_state, of_embeddings.last_hidden_state, atol=1e-6)


def test_a_decoder_that_shares_embeddings_gets_no_encodings():
    """Encodings of two tokens more than the target has would not even fit."""
    bridge = HuggingFaceBridge(make("Bart", "ForConditionalGeneration"), "stack_pe(depth=4)").eval()
    with bridge.over(BATCH.to_dict()) as model:
        written = model.generate(**INPUTS, max_new_tokens=3, num_beams=2, do_sample=False)
    assert len(written) == 2
    loss = bridge(**INPUTS, labels=TOKENS[:, :3].contiguous(), tree=BATCH.to_dict()).loss
    loss.backward()
    assert bridge.injections["stack_pe"].raw.grad.abs().sum() > 0


def test_saved_and_loaded_beside_the_model(tmp_path: Path):
    bridge = HuggingFaceBridge(make("Bert", "ForTokenClassification"), ALL).eval()
    set_tables(bridge, 0.5)
    bridge.model.save_pretrained(tmp_path)
    bridge.save(tmp_path)
    model = transformers.BertForTokenClassification.from_pretrained(tmp_path)
    loaded = HuggingFaceBridge.load(model, tmp_path).eval()
    assert loaded.spec == ALL
    assert torch.equal(loaded(**INPUTS, tree=BATCH).logits, bridge(**INPUTS, tree=BATCH).logits)

    wide = transformers.BertModel(transformers.BertConfig(**{**SIZES, "hidden_size": 32}))
    with pytest.raises(ts.OptionError, match="is of a model with d_model=16, heads=4, layers=2"):
        HuggingFaceBridge.load(wide, tmp_path)
    with pytest.raises(ts.InputError, match="cannot be read"):
        HuggingFaceBridge.load(make("Bert"), tmp_path / "nowhere")
    (tmp_path / "treesyntax.safetensors").write_bytes(b"not a file of tensors")
    with pytest.raises(ts.InputError, match="cannot be read"):
        HuggingFaceBridge.load(make("Bert"), tmp_path)


def test_what_a_bridge_cannot_carry_is_refused_by_name():
    with pytest.raises(
        ts.OptionError, match="linearized acts through the text; write the brackets"
    ):
        HuggingFaceBridge(make("Bert"), "tree_distance+linearized")
    with pytest.raises(ts.OptionError, match="pushdown is for a decoder alone; a bridge leads"):
        HuggingFaceBridge(make("Bert"), "pushdown")
    with pytest.raises(
        ts.OptionError, match="T5Model cannot carry the method rotary, which uses node_map"
    ):
        HuggingFaceBridge(make("T5"), "relation_mask+rotary")
    with pytest.raises(ts.OptionError, match="uses loss; treesyntax finetune trains with tree_reg"):
        HuggingFaceBridge(make("Bert"), "tree_reg")
    wide_heads = transformers.T5Model(transformers.T5Config(**{**T5, "d_kv": 5}))
    with pytest.raises(
        ts.OptionError, match="cannot carry the method relative_depth, which uses vec"
    ):
        HuggingFaceBridge(wide_heads, "relation_mask+relative_depth")
    with pytest.raises(ts.OptionError, match="the method labelled_relation, which uses vec"):
        HuggingFaceBridge(wide_heads, "labelled_relation(values=True)")
    with pytest.raises(ts.OptionError, match="no bridge into opt; there are bridges into bert"):
        HuggingFaceBridge(
            transformers.OPTModel(
                transformers.OPTConfig(vocab_size=8, hidden_size=8, num_attention_heads=2, ffn_dim=8,
                                       num_hidden_layers=1, word_embed_proj_dim=8)
            ),
            "relation_mask",
        )  # fmt: skip
    with pytest.raises(ts.OptionError, match="no bridge into deberta-v2: its attention is its own"):
        HuggingFaceBridge(
            transformers.DebertaV2Model(transformers.DebertaV2Config(**SIZES)), "relation_mask"
        )
    decoder = transformers.BertModel(transformers.BertConfig(**SIZES, is_decoder=True))
    with pytest.raises(ts.OptionError, match="BertModel is a decoder"):
        HuggingFaceBridge(decoder, "relation_mask")
    bridge = HuggingFaceBridge(make("Bert"), ALL)
    with pytest.raises(ts.OptionError, match="needs trees; give tree="):
        bridge(**INPUTS)
    with pytest.raises(ts.OptionError, match=r"over tokens \[2, 4\], but the tokens are \[2, 7\]"):
        bridge(**INPUTS, tree=batch_of([TREES[1]] * 2))
    choices = HuggingFaceBridge(make("GPT2", "DoubleHeadsModel"), "tree_distance")
    with pytest.raises(ts.OptionError, match=r"tokens of two dimensions.* not with \[1, 2, 7\]"):
        choices(TOKENS[None], mc_token_ids=torch.tensor([[6, 3]]), tree=BATCH)
    own = torch.zeros(2, 4, 7, 7)
    with pytest.raises(ts.OptionError, match="need a boolean attention mask"):
        bridge(input_ids=TOKENS, attention_mask=own, tree=BATCH)


@pytest.mark.parametrize("spec", ["labelled_relation", "random_walk_pairs(values=False)"])
def test_wide_heads_take_methods_that_are_biases_as_built(spec: str):
    torch.manual_seed(0)
    model = transformers.T5Model(transformers.T5Config(**{**T5, "d_kv": 5})).eval()
    plain = encoded(model, "T5")
    bridge = HuggingFaceBridge(model, spec).eval()
    set_tables(bridge, 0)
    assert torch.allclose(encoded(bridge, "T5", tree=BATCH), plain, atol=1e-5)
    set_tables(bridge, 0.5)
    states = encoded(bridge, "T5", tree=BATCH)
    assert not torch.allclose(states, plain, atol=1e-2)
    (states * torch.randn_like(states)).sum().backward()
    assert all(one.grad.abs().sum() > 0 for one in bridge.injections.parameters())


@pytest.mark.parametrize("family", FAMILIES)
def test_device_dtype_and_num_parameters_are_those_of_a_model(family: str):
    untouched, made = plain(family), bridge(family)
    methods = sum(parameter.numel() for parameter in made.injections.parameters())
    assert made.num_parameters() == untouched.num_parameters() + methods
    assert (made.device, made.dtype) == (untouched.device, untouched.dtype)
    made.requires_grad_(False).injections.requires_grad_(True)
    assert made.num_parameters(only_trainable=True) == methods
    moved = made.to("meta", torch.bfloat16)
    assert (moved.device.type, moved.dtype) == ("meta", torch.bfloat16)
    assert {one.device.type for one in moved.injections.buffers()} <= {"meta"}
    assert {one.dtype for one in moved.injections.parameters()} == {torch.bfloat16}


def test_a_method_that_needs_no_tree_needs_none():
    bridge = HuggingFaceBridge(make("Bert"), "relative_position(clip=2)").eval()
    assert bridge(**INPUTS).last_hidden_state.shape == (2, 7, 16)
