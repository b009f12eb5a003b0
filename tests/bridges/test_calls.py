"""The trees of a bridge are those of the call: in replicas, threads, copies, processes and compiled code."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from reliability.fairseq_jobs import SOAK
from support.bridges.families import (
    FAMILIES,
    SPEC,
    bridge,
    gradients,
    inputs,
    loss_and_gradients,
    plain,
)
from support.bridges.replicas import in_replicas
from support.bridges.tiny_models import BATCH, INPUTS, TOKENS, make
from support.helpers import batch_of
from torch import nn
from torch.utils._pytree import tree_map

import treesyntax as ts
from treesyntax.bridges.hf_attention import LAYER
from treesyntax.bridges.huggingface import HuggingFaceBridge
from treesyntax.bridges.movable import Movable

transformers = pytest.importorskip("transformers")

OTHER = batch_of([ts.Tree([-1, 0, 0, 0, 0, 0], list("abcdef")), ts.Tree([-1, 0, 1], list("abc"))])


def encoder_bridge(spec: str = "stack_pe+relation_mask") -> Any:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 24, batch_first=True, dropout=0.0)
    made = ts.TransformerEncoderBridge(nn.TransformerEncoder(layer, 2), spec)
    for parameter in made.injections.parameters():
        nn.init.normal_(parameter)
    return made.eval()


def encoder_inputs() -> dict[str, Any]:
    torch.manual_seed(2)
    return {"src": torch.randn(2, 7, 16), "src_key_padding_mask": TOKENS.eq(0), "tree": BATCH}


@pytest.mark.parametrize("family", ["BERT", "T5", "GPT-2"])
def test_frozen_methods_in_a_model_that_trains_are_warned_of(
    family: str, caplog: pytest.LogCaptureFixture
):
    """As LoRA leaves them without ``modules_to_save``: they would stay at zero, and seem to be of no use."""
    made, given = bridge(family).train(), inputs(family)
    first, *others = made.injections.parameters()
    for frozen, times in (([], 0), (others, 0), ([first, *others], 1), (made.parameters(), 0)):
        caplog.clear()
        made.requires_grad_(True)
        for parameter in frozen:
            parameter.requires_grad_(False)
        for _ in range(2):
            made(**given)
        said = [record.message for record in caplog.records]
        assert sum("these methods stay as they began" in message for message in said) == times


@pytest.mark.parametrize("family", ["BERT", "T5", "Llama"])
def test_replicas_have_the_trees_of_their_own_rows(family: str):
    """What nn.DataParallel does, on the CPU: one row a replica, and gradients into the one model."""
    made = bridge(family)
    given = inputs(family)
    expected = made(**given).logits
    expected.square().mean().backward()
    wanted = gradients(made)
    found = in_replicas(made, {**given, "tree": BATCH.to_dict()})
    logits = torch.cat([one.logits for one in found])
    assert torch.allclose(logits, expected, atol=1e-6)
    logits.square().mean().backward()
    for name, gradient in gradients(made).items():
        assert torch.allclose(gradient, wanted[name], atol=1e-6), name
    assert wanted[next(name for name in wanted if "strengths" in name)].abs().sum() > 0


def test_replicas_of_pytorchs_encoder_have_the_trees_of_their_own_rows():
    made, given = encoder_bridge(), encoder_inputs()
    found = torch.cat(in_replicas(made, {**given, "tree": BATCH.to_dict()}))
    assert torch.allclose(found, made(**given), atol=1e-6)
    assert not torch.allclose(found, made.model(given["src"]), atol=1e-2)


def test_a_batch_that_data_parallel_cannot_part_is_refused():
    with pytest.raises(ts.OptionError, match=r"nn.DataParallel parts tree=batch.to_dict\(\)"):
        in_replicas(bridge("BERT"), inputs("BERT"))


@pytest.mark.parametrize("kind", ["BERT", "T5", "GPT-2", "encoder"])
def test_threads_do_not_see_the_trees_of_others(kind: str):
    made = encoder_bridge() if kind == "encoder" else bridge(kind)
    given = encoder_inputs() if kind == "encoder" else inputs(kind)
    batches = [BATCH, OTHER]

    def output(tree: object) -> torch.Tensor:
        with torch.no_grad():
            found = made(**{**given, "tree": tree})
        return found if kind == "encoder" else found.logits

    expected = [output(batch) for batch in batches]
    assert not torch.allclose(*expected, atol=1e-3)
    wrong = []

    def work(number: int) -> None:
        for _ in range(15):
            if not torch.equal(output(batches[number]), expected[number]):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("family", ["BERT", "T5", "Llama"])
def test_copies_and_pickles_are_bridges_of_their_own(family: str):
    made, given = bridge(family), inputs(family)
    expected = made(**given).logits
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert type(other) is type(made)
        assert torch.equal(other(**given).logits, expected)
        with torch.no_grad():
            for parameter in other.parameters():
                parameter.zero_()
        assert torch.equal(made(**given).logits, expected)
        # Each takes its own trees, one call within the other's graph.
        mixed = (made(**given).loss + other(**{**given, "tree": OTHER}).loss).detach()
        assert mixed.isfinite()


def test_two_forwards_before_one_backward_have_the_gradients_of_both():
    made, given = bridge("T5"), inputs("T5")
    one, other = given, {**given, "tree": OTHER}
    wanted = [loss_and_gradients(made, each)[1] for each in (one, other)]
    (made(**one).loss + made(**other).loss).backward()
    for name, gradient in gradients(made).items():
        assert torch.allclose(gradient, wanted[0][name] + wanted[1][name], atol=1e-6), name


@pytest.mark.parametrize("family", FAMILIES if SOAK else ["BERT"])
@pytest.mark.parametrize("as_dict", [False, True] if SOAK else [True])
def test_compiled_code_is_the_same_in_every_layer(family: str, as_dict: bool):
    """In training mode layer 0's table was once used in all layers; evaluation was right."""
    torch._dynamo.reset()
    made, given = bridge(family), inputs(family)
    if as_dict:
        given["tree"] = BATCH.to_dict()
    loss, wanted = loss_and_gradients(made, given)
    # The loss of transformers' GPT-2 writes to a log, with a bridge or without.
    compiled = torch.compile(made, backend="aot_eager", fullgraph=family != "GPT-2")
    found, gradient = loss_and_gradients(compiled, given)
    assert torch.allclose(found, loss, atol=1e-6)
    for name, one in wanted.items():
        assert torch.allclose(gradient[f"_orig_mod.{name}"], one, atol=1e-5), name
    strengths = next(one for name, one in wanted.items() if "strengths" in name)
    assert (strengths.flatten(1).abs().amax(1) > 0).all()


def test_compiled_code_of_pytorchs_encoder_is_the_same():
    torch._dynamo.reset()
    made, given = encoder_bridge(), encoder_inputs()
    expected = made(**given)
    expected.square().mean().backward()
    wanted = gradients(made)
    compiled = torch.compile(made, backend="eager", fullgraph=True)
    found = compiled(**given)
    assert torch.allclose(found, expected, atol=1e-5)
    found.square().mean().backward()
    for name, one in gradients(made).items():
        assert torch.allclose(one, wanted[name], atol=1e-5), name


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")
@pytest.mark.parametrize("spec", ["stack_pe", "laplacian", "random_walk"])
def test_quantization_leaves_what_methods_read(spec: str):
    """It replaces linear layers by others, whose weights are no tensors."""
    made, given = bridge("BERT", spec=spec), inputs("BERT")
    smaller = torch.ao.quantization.quantize_dynamic(made, {nn.Linear}, dtype=torch.qint8)
    assert type(smaller.classifier) is not nn.Linear
    assert torch.allclose(smaller(**given).logits, made(**given).logits, atol=0.02)


@pytest.mark.parametrize(
    "spec", ["tree_distance", "stack_pe(tree='left')+relation_mask", "parent_scaled+relative_depth"]
)
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_functions_of_torch_func_are_the_same(spec: str):
    """Gradients of each row, as for influence or privacy, and one sentence under several trees."""
    made, given = encoder_bridge(spec), encoder_inputs()
    given["tree"] = BATCH.to_dict()
    states = {name: weight.detach() for name, weight in made.named_parameters()}

    def loss(states: Any, given: Any) -> torch.Tensor:
        return torch.func.functional_call(made, states, (), given).square().mean()

    gradients_of_states = torch.func.grad(loss)(states, given)
    made(**given).square().mean().backward()
    for name, gradient in gradients(made).items():
        assert torch.allclose(gradients_of_states[name], gradient, atol=1e-6), name

    rows = tree_map(lambda tensor: tensor.unsqueeze(1), given)
    by_row = torch.vmap(torch.func.grad(loss), (None, 0))(states, rows)
    for row in range(2):
        alone = torch.func.grad(loss)(states, tree_map(lambda x, row=row: x[row], rows))
        for name, gradient in alone.items():
            assert torch.allclose(by_row[name][row], gradient, atol=1e-6), name

    trees = [BATCH.to_dict(), OTHER.to_dict()]
    several = {name: torch.stack([tree[name] for tree in trees]) for name in trees[0]}
    outputs = torch.vmap(lambda tree: made(**{**given, "tree": tree}))(several)
    for output, tree in zip(outputs, trees, strict=True):
        assert torch.allclose(output, made(**{**given, "tree": tree}), atol=1e-6)


@pytest.mark.parametrize("family", ["BERT", "T5", "Llama"])
def test_torch_func_has_the_gradients_of_a_model_of_transformers(family: str):
    made, given = bridge(family, spec="tree_distance"), inputs(family)
    states = {name: weight.detach() for name, weight in made.named_parameters()}
    gradients_of_states = torch.func.grad(
        lambda x: torch.func.functional_call(made, x, (), given).loss
    )(states)
    for name, gradient in loss_and_gradients(made, given)[1].items():
        assert torch.allclose(gradients_of_states[name], gradient, atol=1e-6), name


def process(rank: int, folder: str) -> None:
    """One of two processes of DistributedDataParallel: its row's gradients are averaged with the other's."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2
    )
    made = nn.parallel.DistributedDataParallel(bridge("BERT"))
    given = inputs("BERT")
    tree = {name: part[rank : rank + 1] for name, part in given.pop("tree").to_dict().items()}
    own = {name: part[rank : rank + 1] for name, part in given.items()}
    made(**own, tree=tree).logits.square().mean().backward()
    torch.save(
        {name: one.grad for name, one in made.module.named_parameters()}, f"{folder}/{rank}.pt"
    )
    torch.distributed.destroy_process_group()
    # The model's reducer holds the group until it is freed, which then may wait for ever for a thread that waits
    # for Python.
    os._exit(0)


def test_two_processes_average_the_gradients_of_their_trees(tmp_path: Path):
    """Two rows of seven columns each, so the mean over both is the mean of the two means."""
    start = torch.multiprocessing.start_processes
    start(process, (str(tmp_path),), nprocs=2, start_method="fork")
    made, given = bridge("BERT"), inputs("BERT")
    made(**given).logits.square().mean().backward()
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        for name, parameter in made.named_parameters():
            if parameter.grad is not None:
                assert torch.allclose(found[name], parameter.grad, atol=1e-6), name


def test_what_calls_a_part_without_trees_is_refused_and_not_without_them():
    """Missing trees never mean none: neither in a stack of layers nor in an attention."""
    made = bridge("T5")
    for call in (
        lambda: made(input_ids=TOKENS, labels=TOKENS),
        lambda: made.generate(TOKENS, max_new_tokens=2),
        lambda: made.get_encoder()(TOKENS),
        lambda: made.encoder(input_ids=TOKENS),
    ):
        with pytest.raises(ts.OptionError, match="needs trees; give tree="):
            call()
    states = torch.zeros(2, 7, 16)
    for layer in range(2):
        attention = made.encoder.block[layer].layer[0].SelfAttention
        assert getattr(attention, LAYER) == layer
        with pytest.raises(ts.OptionError, match="the trees were lost on the way to T5Attention"):
            attention(states)
    assert made.decoder(TOKENS, encoder_hidden_states=states).last_hidden_state.isfinite().all()


def test_another_attention_is_refused_rather_than_without_trees():
    made = bridge("BERT")
    made.set_attn_implementation("eager")
    with pytest.raises(ts.OptionError, match="its attention was set to eager"):
        made(**inputs("BERT"))
    made.set_attn_implementation("treesyntax")
    assert made(**inputs("BERT")).loss.isfinite()


@pytest.mark.parametrize("family", ["BERT", "Llama", "T5"])
@pytest.mark.parametrize("change", ["attention", "layer", "copy"])
def test_an_attention_that_came_after_the_bridge_is_refused(family: str, change: str):
    """It has no number of a layer, so it would be without trees."""
    model, given, other = plain(family), inputs(family), plain(family)
    made = HuggingFaceBridge(model, SPEC)
    stack = {"BERT": "bert.encoder.layer", "Llama": "model.layers", "T5": "encoder.block"}[family]
    path = {"BERT": "attention.self", "Llama": "self_attn", "T5": "layer.0.SelfAttention"}[family]
    layers, others = made.get_submodule(stack), other.get_submodule(stack)
    if change == "attention":
        layers[1].set_submodule(path, others[1].get_submodule(path))
    else:
        layers.append(others[1] if change == "layer" else copy.deepcopy(layers[1]))
        made.config.num_hidden_layers = 3
    with pytest.raises(ts.OptionError, match="into the model after its bridge was made"):
        made(**given)
    if change == "attention":
        model(**{name: part for name, part in given.items() if name != "tree"})


def test_an_attention_of_the_same_configuration_is_refused_in_compiled_code_too():
    made, given = bridge("BERT"), inputs("BERT")
    layer = made.bert.encoder.layer[1].attention
    layer.self = type(layer.self)(made.config, layer_idx=1)
    # To trace the whole model takes a quarter of a minute, and what refuses is in this attention.
    (made if SOAK else layer.self).compile(backend="eager")
    with pytest.raises(ts.OptionError, match="into the model after its bridge was made"):
        made(**given)


def test_attention_to_another_model_has_no_trees():
    config = plain("GPT-2").config
    config.add_cross_attention = True
    made = HuggingFaceBridge(transformers.GPT2LMHeadModel(config), "tree_distance")
    assert (
        made(**inputs("GPT-2"), encoder_hidden_states=torch.ones(2, 3, 16)).logits.isfinite().all()
    )


def test_a_head_that_keeps_its_trees_for_itself_is_refused():
    model = make("Bert")

    class Narrow(type(model)):
        def forward(self, input_ids=None, attention_mask=None):
            return super().forward(input_ids=input_ids, attention_mask=attention_mask)

    model.__class__ = Narrow
    with pytest.raises(ts.OptionError, match="Narrow takes no further arguments"):
        HuggingFaceBridge(model, SPEC)


def test_a_model_spread_over_devices_is_refused():
    accelerate = pytest.importorskip("accelerate")
    model = plain("BERT")
    accelerate.hooks.add_hook_to_module(model, accelerate.hooks.ModelHook())
    with pytest.raises(ts.OptionError, match="was replaced, as accelerate does over several"):
        HuggingFaceBridge(model, SPEC)
    made = accelerate.cpu_offload(bridge("BERT"), "cpu")
    with pytest.raises(
        ts.OptionError, match="the methods are on meta, but the tokens on cpu; keep"
    ):
        made(**inputs("BERT"))


def test_the_model_itself_goes_on_without_trees_and_takes_them_if_given():
    model = plain("BART")
    given = inputs("BART")
    batch = given.pop("tree")
    expected = model(**given).logits
    made = HuggingFaceBridge(model, SPEC).eval()
    for parameter in made.injections.parameters():
        nn.init.normal_(parameter)
    assert torch.allclose(model(**given).logits, expected, atol=1e-6)
    assert torch.equal(model(**given, tree=batch).logits, made(**given, tree=batch).logits)
    assert model.generate(**INPUTS, max_new_tokens=2).shape[0] == 2
    assert isinstance(made, HuggingFaceBridge)
    assert not isinstance(model, HuggingFaceBridge)


WAYS = [
    ("compile", "before", "model"),
    ("compile", "after", "model"),
    ("compile", "after", "bridge"),
    ("forward", "after", "model"),
    ("forward", "after", "bridge"),
]


@pytest.mark.parametrize(
    ("family", "way", "when", "which"),
    [
        (family, *way)  # compiling T5 takes a quarter of a minute
        for family in ("BERT", *(["Llama", "T5"] if SOAK else []))
        for way in WAYS
    ],
)
def test_a_forward_that_was_compiled_or_wrapped_is_not_the_others(
    family: str, way: str, when: str, which: str
):
    """They share attributes, so also a compiled call and a forward that accelerate or Trainer put in."""
    model, given = plain(family), inputs(family)
    batch = given.pop("tree")
    expected = [model(**given).logits, bridge(family)(**given, tree=batch).logits]
    if when == "before":
        model.compile(backend="eager")
    made = HuggingFaceBridge(model, SPEC).eval()
    torch.manual_seed(1)
    for parameter in made.injections.parameters():
        nn.init.normal_(parameter, std=0.5)
    changed = model if which == "model" else made
    if way == "forward":
        changed.forward = torch.compile(changed.forward, backend="eager")
    elif when == "after":
        changed.compile(backend="eager")
    assert torch.allclose(made(**given, tree=batch).logits, expected[1], atol=1e-6)
    assert torch.allclose(model(**given).logits, expected[0], atol=1e-6)
    assert torch.allclose(model(**given, tree=batch).logits, expected[1], atol=1e-6)
    with pytest.raises(ts.OptionError, match="needs trees; give tree="):
        made(**given)


@pytest.mark.parametrize(("kind", "strict"), [(dict, False), (Movable, False), (Movable, True)])
def test_an_exported_bridge_takes_other_trees_than_those_of_its_example(kind: Any, strict: bool):
    """Both as a plain dict and as the collator gives them."""
    made, given = bridge("BERT"), inputs("BERT")
    given["tree"] = kind(BATCH.to_dict())
    exported = torch.export.export(made, (), given, strict=strict).module()
    other = {**given, "tree": kind({**given["tree"], "parent": OTHER.parent})}
    assert torch.allclose(exported(**other).logits, made(**other).logits, atol=1e-6)
    assert not torch.allclose(exported(**given).logits, exported(**other).logits, atol=1e-3)


# The test above has a strict export.
@pytest.mark.parametrize("strict", [False, True] if SOAK else [False])
def test_an_exported_bridge_with_one_bias_has_its_gradients(strict: bool):
    made, given = bridge("BERT", spec="tree_distance"), inputs("BERT")
    given["tree"] = BATCH.to_dict()
    expected = loss_and_gradients(made, given)
    exported = torch.export.export(made, (), given, strict=strict).module()
    loss = exported(**given).loss
    assert torch.allclose(loss, expected[0], atol=1e-6)
    loss.backward()
    parameters = dict(exported.named_parameters())
    for name, gradient in expected[1].items():
        assert torch.allclose(parameters[name].grad, gradient, atol=1e-6), name
