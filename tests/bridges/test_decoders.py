"""Trees over the prefix of decoders: every layout generates as it should, and what cannot be is refused."""

from __future__ import annotations

import pytest
import torch
from support.bridges.families import PROMPT_TREES, PROMPTS, SPEC, bridge, inputs, plain, prompts
from support.bridges.tiny_models import BATCH, DECODERS, TOKENS, TREES, make, set_tables

import treesyntax as ts
from treesyntax.bridges.huggingface import HuggingFaceBridge

transformers = pytest.importorskip("transformers")

OPTIONS = {
    "max_new_tokens": 6, "do_sample": False, "eos_token_id": None, "pad_token_id": 0,
    "return_dict_in_generate": True, "output_logits": True,
}  # fmt: skip


@pytest.mark.parametrize("name", DECODERS)
def test_windows_caches_and_padding_on_the_left_make_no_difference(name: str):
    """A window of four tokens forgets a part of the tree, and its cache the keys of it."""
    made = HuggingFaceBridge(make(name, "LMHeadModel" if name == "GPT2" else "ForCausalLM"), SPEC)
    set_tables(made, 0.5)
    given = {"input_ids": PROMPTS, "attention_mask": PROMPTS.ne(0).long()}
    found = made.generate(**given, tree=PROMPT_TREES, **OPTIONS)
    without = made.generate(**given, tree=PROMPT_TREES, **OPTIONS, use_cache=False)
    tree = ts.batch_trees(TREES[1:], [[0, 1, 2, -1]])
    alone = made.generate(PROMPTS[1:, 3:], tree=tree, **OPTIONS)
    plain = made.generate(**given, tree=ts.TreeBatch.without_trees(PROMPTS), **OPTIONS)
    for step, logits in enumerate(found.logits):
        assert torch.allclose(logits, without.logits[step], atol=1e-6)
        assert torch.allclose(logits[1], alone.logits[step][0], atol=1e-6)
    assert not torch.allclose(found.logits[0], plain.logits[0], atol=1e-4)


@pytest.mark.parametrize("family", ["Llama", "GPT-2"])
def test_embeddings_lookups_and_assistants_give_what_tokens_do(family: str):
    made, given = bridge(family), prompts(family)
    expected = made.generate(**given, **OPTIONS).sequences
    others = {name: given[name] for name in ("attention_mask", "tree")}
    embedded = made.get_input_embeddings()(PROMPTS)
    assert torch.equal(
        made.generate(inputs_embeds=embedded, **others, **OPTIONS).sequences, expected[:, 7:]
    )
    alone = {"input_ids": PROMPTS[:1], "tree": ts.batch_trees(TREES[:1], [[*range(6), -1]])}
    bare = made.generate(inputs_embeds=embedded[:1], tree=alone["tree"], **OPTIONS)
    assert torch.equal(bare.sequences, expected[:1, 7:])
    for helper in (
        {"prompt_lookup_num_tokens": 2},
        {"assistant_model": HuggingFaceBridge(plain(family), "")},
    ):
        assert torch.equal(made.generate(**alone, **OPTIONS, **helper).sequences, expected[:1])
    with pytest.raises(ts.OptionError, match="an assistant model gets the trees too"):
        made.generate(**alone, **OPTIONS, assistant_model=plain(family))


@pytest.mark.parametrize("family", ["T5", "BART"])
def test_what_the_encoder_made_over_trees_needs_them_no_more(family: str):
    made, given = bridge(family), prompts(family)
    encoded = made.get_encoder()(**given)
    mask = given["attention_mask"]
    found = made.generate(encoder_outputs=encoded, attention_mask=mask, **OPTIONS).sequences
    assert torch.equal(found, made.generate(**given, **OPTIONS).sequences)


@pytest.mark.parametrize("family", ["Llama", "GPT-2"])
def test_what_comes_after_a_prefix_changes_nothing_in_it(family: str):
    made, given = bridge(family), prompts(family)
    with torch.no_grad():
        before = made(**given).logits
        tree = ts.TreeBatch(
            PROMPT_TREES.parent,
            PROMPT_TREES.branch,
            torch.nn.functional.pad(PROMPT_TREES.token_node, (0, 3), value=-1),
        )
        tokens = torch.nn.functional.pad(PROMPTS, (0, 3), value=9)
        mask = torch.nn.functional.pad(given["attention_mask"], (0, 3), value=1)
        after = made(input_ids=tokens, attention_mask=mask, tree=tree).logits[:, :7]
    real = given["attention_mask"].bool()
    assert torch.allclose(before[real], after[real], atol=1e-6)


def test_what_a_decoder_cannot_carry_is_refused_by_name():
    with pytest.raises(ts.OptionError, match="the method hierarchical_accumulation, which uses va"):
        HuggingFaceBridge(make("Llama", "ForCausalLM"), "hierarchical_accumulation")
    with pytest.raises(ts.OptionError, match="cannot carry the method rotary, which uses node_map"):
        HuggingFaceBridge(make("GPT2"), "rotary")
    config = transformers.Gemma2Config(**{**DECODERS["Gemma2"], "attn_logit_softcapping": 50.0})
    with pytest.raises(ts.OptionError, match=r"gemma2 caps its logits \(attn_logit_softcapping\)"):
        HuggingFaceBridge(transformers.Gemma2ForCausalLM(config), "relation_mask")
    wide = transformers.GemmaConfig(**{**DECODERS["Gemma"], "head_dim": 8})
    with pytest.raises(ts.OptionError, match="the method relative_depth, which uses vector_tables"):
        HuggingFaceBridge(transformers.GemmaForCausalLM(wide), "relative_depth")
    assert HuggingFaceBridge(transformers.GemmaForCausalLM(wide), "relation_mask")


@pytest.mark.parametrize("name", ["Llama", "Mistral"])
def test_a_static_cache_is_refused(name: str):
    made = HuggingFaceBridge(make(name, "ForCausalLM"), "relation_mask").eval()
    with pytest.raises(ts.OptionError, match=r"a cache that grows \(DynamicCache, the default\)"):
        made.generate(
            PROMPTS, tree=PROMPT_TREES, cache_implementation="static", max_new_tokens=2,
            pad_token_id=0,
        )  # fmt: skip


def test_continuous_batching_is_refused_as_it_has_no_trees():
    with pytest.raises(ts.OptionError, match="generate_batch hands no trees on"):
        bridge("Llama").generate_batch([[4, 5, 6], [4, 5]], max_new_tokens=2)


@pytest.mark.parametrize("name", ["T5", "Llama"])
def test_guidance_without_the_prompt_is_refused(name: str):
    made = bridge(name)
    config = transformers.GenerationConfig(guidance_scale=1.5)
    for option in ({"guidance_scale": 1.5}, {"generation_config": config}):
        with pytest.raises(
            ts.OptionError, match="guidance_scale calls the model without the prompt"
        ):
            made.generate(**prompts(name), **option, max_new_tokens=2, pad_token_id=0)
    assert len(made.generate(**prompts(name), guidance_scale=1.0, max_new_tokens=2, pad_token_id=0))


@pytest.mark.parametrize("family", ["Llama", "GPT-2", "T5", "BERT"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_trees_over_padding_are_refused(family: str, side: str):
    tokens, tree = (PROMPTS, BATCH) if side == "left" else (TOKENS, PROMPT_TREES)
    mask = {"attention_mask": tokens.ne(0).long()}
    made = bridge(family)
    labels = {"labels": tokens} if family == "T5" else {}
    with pytest.raises(ts.OptionError, match="padding has a node in the trees: they are padded on"):
        made(input_ids=tokens, tree=tree, **mask, **labels)
    if family == "BERT":
        return
    for given in (mask, {}):  # the mask is that of the padding
        for beams in (1, 2):
            with pytest.raises(ts.OptionError, match="padding has a node in the trees"):
                made.generate(
                    tokens, tree=tree, **given, max_new_tokens=2, pad_token_id=0, num_beams=beams
                )


@pytest.mark.parametrize("family", ["Llama", "GPT-2"])
def test_trees_over_fewer_tokens_than_a_prompt_are_refused(family: str):
    """A tokenizer may have put a token before the words, of which the trees know nothing."""
    made, given = bridge(family), prompts(family)
    narrow = ts.batch_trees(TREES)
    embedded = made.get_input_embeddings()(PROMPTS)
    for prompt in ({"input_ids": PROMPTS}, {"inputs_embeds": embedded}):
        for options in ({}, {"use_cache": False}, {"past_key_values": transformers.DynamicCache()}):
            with pytest.raises(
                ts.OptionError, match=r"tokens \[2, 6\], but the tokens are \[2, 7\]"
            ):
                made.generate(
                    **prompt, **options, attention_mask=given["attention_mask"], tree=narrow,
                    max_new_tokens=2, pad_token_id=0,
                )  # fmt: skip


@pytest.mark.parametrize("family", ["Llama", "GPT-2"])
def test_a_second_turn_goes_on_over_the_trees_of_the_first(family: str):
    made, given = bridge(family), prompts(family)
    first = made.generate(**given, **OPTIONS)
    mask = torch.nn.functional.pad(given["attention_mask"], (0, 6), value=1)
    again = {"input_ids": first.sequences, "attention_mask": mask, "tree": given["tree"]}
    second = made.generate(**again, past_key_values=first.past_key_values, **OPTIONS)
    whole = made.generate(**given, **{**OPTIONS, "max_new_tokens": 12})
    assert torch.equal(second.sequences, whole.sequences)
    with pytest.raises(ts.OptionError, match="padding has a node in the trees"):
        made.generate(**{**again, "tree": BATCH}, past_key_values=whole.past_key_values, **OPTIONS)


def test_checkpointing_that_loses_gradients_is_refused_where_it_is_turned_on():
    made = bridge("BERT").train()
    with pytest.raises(ts.OptionError, match="needs use_reentrant=False"):
        made.activation_checkpointing_enable({"use_reentrant": True})
    model = plain("BERT")
    model.activation_checkpointing_enable({"use_reentrant": True})
    with pytest.raises(ts.OptionError, match="needs use_reentrant=False"):
        HuggingFaceBridge(model, SPEC)
    made.activation_checkpointing_enable({"use_reentrant": False})
    made(**inputs("BERT")).loss.backward()
    made.activation_checkpointing_disable()


def test_trees_of_one_input_do_not_see_each_other():
    """A pair of sentences, a tree each: another second tree leaves pairs of the first one as they are."""
    made = HuggingFaceBridge(make("Bert"), "relation_mask").eval()
    set_tables(made, 0.5)
    tokens = torch.tensor([[2, 4, 5, 6, 3, 7, 8, 9, 3]])
    nodes = [[-1, 0, 1, 2, -1, 3, 4, 5, -1]]
    flat, deep = ts.Tree([-1, 0, 0], list("abc")), ts.Tree([-1, 0, 1], list("abc"))
    batches = [ts.batch_trees([[flat, other]], nodes) for other in (flat, deep)]
    first, second = (made.injections.relate(batch)(0)[0].ids[0] for batch in batches)
    assert torch.equal(first[:5, :5], second[:5, :5])
    assert not torch.equal(first[5:8, 5:8], second[5:8, 5:8])
    assert (first[1:4, 5:8] == first[0, 0]).all()  # as of a token without a node
    with torch.no_grad():
        outputs = [made(input_ids=tokens, tree=batch).last_hidden_state for batch in batches]
    assert not torch.allclose(*outputs, atol=1e-4)


@pytest.mark.parametrize("family", ["GPT-2", "Llama"])
def test_beams_of_a_prompt_padded_on_the_left_are_those_of_the_prompt_alone(family: str):
    made, given = bridge(family), prompts(family)
    options = {"max_new_tokens": 4, "num_beams": 3, "eos_token_id": None, "pad_token_id": 0}
    both = made.generate(**given, **options)
    alone = {name: given[name][1:, 3:] for name in ("input_ids", "attention_mask")}
    tree = given["tree"]
    tree = ts.TreeBatch(tree.parent[1:], tree.branch[1:], tree.token_node[1:, 3:])
    assert torch.equal(made.generate(**alone, tree=tree, **options)[0], both[1, 3:])
