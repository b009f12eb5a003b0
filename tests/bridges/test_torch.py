"""Trees in PyTorch's own encoder and in FlexAttention."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pytest
import torch
from support import ROOT
from support.helpers import batch_of
from torch import nn
from torch.nn.attention.flex_attention import flex_attention

import treesyntax as ts
from treesyntax.nn.attention import attend
from treesyntax.nn.injection import hooks_of

TREES = [ts.Tree([-1, 0, 1, 1, 0, 4], list("abcdef")), ts.Tree([-1, 0, 0], list("abc"))]
BATCH = batch_of(TREES)
BIASES = "relation_mask+tree_distance+labelled_relation(labels=4)"
SPEC = f"stack_pe(depth=4)+{BIASES}+random_walk_pairs(powers=3)+relative_depth"
"""An encoding, biases, vectors and features."""
PADDING = torch.tensor([[False] * 7, [False] * 4 + [True] * 3])


def make(batch_first: bool = True, norm_first: bool = False) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(
        16, 4, 24, dropout=0.0, batch_first=batch_first, norm_first=norm_first
    )
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def set_tables(methods: nn.Module, spread: float) -> None:
    torch.manual_seed(1)
    for parameter in methods.parameters():
        nn.init.normal_(parameter, std=spread) if spread else nn.init.zeros_(parameter)


def run(model: nn.Module, source: torch.Tensor, batch_first: bool, **more: object) -> torch.Tensor:
    given = source if batch_first else source.transpose(0, 1)
    output = model(given, src_key_padding_mask=PADDING, **more)
    return (output if batch_first else output.transpose(0, 1))[~PADDING]


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_pytorchs_encoder_with_zero_tables_is_the_untouched_one(batch_first: bool, training: bool):
    encoder = make(batch_first).train(training)
    source = torch.randn(2, 7, 16)
    causal = nn.Transformer.generate_square_subsequent_mask(7)
    each = causal.expand(8, -1, -1)
    masks = ({}, {"mask": causal}, {"mask": causal < 0}, {"mask": each}, {"mask": each < 0})
    with torch.no_grad():
        plain = [run(encoder, source, batch_first, **mask) for mask in masks]
        bridge = ts.TransformerEncoderBridge(encoder, SPEC).train(training)
        set_tables(bridge.injections, 0)
        for mask, expected in zip(masks, plain, strict=True):
            found = run(bridge, source, batch_first, tree=BATCH, **mask)
            assert torch.allclose(found, expected, atol=1e-5)
        set_tables(bridge.injections, 0.5)
        for mask, expected in zip(masks, plain, strict=True):
            found = run(bridge, source, batch_first, tree=BATCH, **mask)
            assert not torch.allclose(found, expected, atol=1e-2)


def test_pytorchs_encoder_computes_what_ours_does():
    """The same weights under fairseq's names give the same output."""
    spec = (
        f"{SPEC}+parent_scaled+hierarchical_accumulation"  # these change it even with zero tables
    )
    bridge = ts.TransformerEncoderBridge(make(norm_first=True), spec).eval()
    set_tables(bridge.injections, 0.5)
    config = ts.TransformerConfig(
        16, 24, 4, 2, injection=spec, normalize_before=True, scale_embedding=False, dropout=0.0
    )
    encoder = ts.Encoder(config, nn.Embedding(20, 16, padding_idx=1)).eval()
    encoder.injections.load_state_dict(bridge.injections.state_dict())
    names = {"linear1": "fc1", "linear2": "fc2", "norm1": "self_attn_layer_norm",
             "norm2": "final_layer_norm", "self_attn.out_proj": "self_attn.out_proj"}  # fmt: skip
    for theirs, ours in zip(bridge.model.layers, encoder.layers, strict=True):
        for name, other in names.items():
            ours.get_submodule(other).load_state_dict(theirs.get_submodule(name).state_dict())
        weights = theirs.self_attn.in_proj_weight.chunk(3)
        for part, weight in zip(("q_proj", "k_proj", "v_proj"), weights, strict=True):
            getattr(ours.self_attn, part).weight.data.copy_(weight)
            nn.init.zeros_(getattr(ours.self_attn, part).bias)  # PyTorch's start at 0
    encoder.layer_norm = nn.Identity()
    tokens = torch.randint(4, 20, (2, 7)).masked_fill(PADDING, 1)
    expected = encoder(tokens, BATCH).memory[~PADDING]
    found = run(bridge, encoder.embed_tokens(tokens), True, tree=BATCH)
    assert torch.allclose(found, expected, atol=1e-5)


def test_gradients_reach_the_tables_and_they_are_saved(tmp_path: Path):
    bridge = ts.TransformerEncoderBridge(make(), SPEC)
    set_tables(bridge.injections, 0.3)
    source = torch.randn(2, 7, 16)
    output = run(bridge, source, True, tree=BATCH)
    (output * torch.randn_like(output)).sum().backward()
    for name, parameter in bridge.injections.named_parameters():
        assert parameter.grad.abs().sum() > 0, name
    assert torch.equal(run(copy.deepcopy(bridge), source, True, tree=BATCH), output)
    pytest.importorskip("safetensors")
    bridge.save(tmp_path)
    loaded = ts.TransformerEncoderBridge.load(make(), tmp_path)
    assert torch.equal(run(loaded, source, True, tree=BATCH), output)


@pytest.mark.parametrize(
    ("spec", "hook"),
    [
        ("relative_depth", "vector_tables"),
        ("parent_scaled", "pair_scale, scales_layer"),
        ("labelled_relation(keys=True)", "vector_tables"),
        ("random_walk_pairs(bias=False)", "vector_tables"),
    ],
)
def test_what_is_no_bias_is_refused_by_flex_attention(spec: str, hook: str):
    """What a method as it was built adds counts, not what its class could add."""
    name = spec.split("(")[0]
    with pytest.raises(ts.OptionError, match=f"the method {name}, .* {hook};"):
        ts.score_mods(ts.compose(spec, 16, 4, 2), BATCH)


def test_what_is_no_encoder_of_pytorchs_own_layers_is_refused():
    class Layer(nn.TransformerEncoderLayer):
        pass

    class Encoder(nn.TransformerEncoder):
        def forward(self, src):
            return src

    own = nn.TransformerEncoder(Layer(16, 4), 2, enable_nested_tensor=False)
    other = Encoder(nn.TransformerEncoderLayer(16, 4), 2, enable_nested_tensor=False)
    for model, fault in (
        (nn.Linear(2, 2), "Linear is no nn.TransformerEncoder"),
        (other, "Encoder has a forward of its own"),
        (own, "Layer may compute something else than nn.TransformerEncoderLayer"),
    ):
        with pytest.raises(ts.OptionError, match=fault):
            ts.TransformerEncoderBridge(model, "relation_mask")  # type: ignore[arg-type]


@pytest.mark.parametrize("change", ["append", "replace"])
def test_a_layer_that_came_after_the_bridge_is_refused(change: str):
    bridge, layer = ts.TransformerEncoderBridge(make(), "relation_mask"), make().layers[0]
    if change == "append":
        bridge.model.layers.append(layer)
    else:
        bridge.model.layers[0] = layer
    with pytest.raises(ts.OptionError, match="into the encoder after its bridge was made"):
        bridge(torch.zeros(2, 7, 16), tree=BATCH)


@pytest.mark.parametrize("as_floats", [False, True])
def test_trees_over_padding_are_refused(as_floats: bool):
    bridge, states = ts.TransformerEncoderBridge(make(), "relation_mask"), torch.zeros(2, 7, 16)

    def mask(padding: torch.Tensor) -> torch.Tensor:
        return torch.zeros(2, 7).masked_fill(padding, -torch.inf) if as_floats else padding

    bridge(states, src_key_padding_mask=mask(PADDING), tree=BATCH)
    with pytest.raises(ts.OptionError, match="padding has a node in the trees"):
        bridge(states, src_key_padding_mask=mask(PADDING.flip(1)), tree=BATCH)


@pytest.mark.parametrize("kind", ["padding", "mask", "both"])
def test_a_token_that_sees_nothing_has_numbers_whatever_the_mask_is_made_of(kind: str):
    """Masks of minus infinity gave nan, and with it each weight's gradient."""
    nothing = torch.tensor([[False] * 7, [True] * 7])  # such as an empty text in a batch
    rows = torch.eye(7, dtype=torch.bool).logical_not().triu()
    rows[3] = True
    hidden = {"src_key_padding_mask": nothing} if kind != "mask" else {}
    hidden |= {"mask": rows} if kind != "padding" else {}
    floats = {
        name: torch.zeros(mask.shape).masked_fill(mask, -torch.inf) for name, mask in hidden.items()
    }
    tree = ts.batch_trees([TREES[0], []], [[*range(6), -1], [-1] * 7])
    bridge = ts.TransformerEncoderBridge(make(), "relation_mask+tree_distance")
    set_tables(bridge.injections, 0.5)
    outputs = [bridge(torch.ones(2, 7, 16), **masks, tree=tree) for masks in (hidden, floats)]
    torch.testing.assert_close(*outputs)
    assert outputs[1].isfinite().all()
    outputs[1][0].sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in bridge.parameters())


@pytest.mark.parametrize("low", [-1e9, torch.finfo(torch.float32).min])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_large_numbers_in_a_mask_stay_numbers_in_half_precision(low: float, dtype: torch.dtype):
    """With padding on the left, a causal mask leaves the first queries nothing to see."""
    bridge = ts.TransformerEncoderBridge(make(), "relation_mask").to(dtype)
    later = torch.ones(7, 7, dtype=torch.bool).triu(1)
    masks = {
        "mask": torch.zeros(7, 7).masked_fill(later, low),
        "src_key_padding_mask": torch.zeros(2, 7).masked_fill(PADDING.flip(1), low),
    }
    tree = batch_of(TREES, left_pad=True)
    assert bridge(torch.ones(2, 7, 16, dtype=dtype), **masks, tree=tree).isfinite().all()


@pytest.mark.parametrize(
    ("masks", "fault"),
    [
        (
            {"src_key_padding_mask": PADDING.long()},
            "src_key_padding_mask has numbers of torch.int64",
        ),
        (
            {"mask": torch.ones(7, 7, dtype=torch.uint8)},
            "mask has numbers of torch.uint8; give bool",
        ),
        ({"src_key_padding_mask": PADDING[:1]}, r"is \[1, 7\]; it must be \[2, 7\]"),
        ({"mask": PADDING[:1]}, r"^mask is \[1, 7\]; it must be \[7, 7\] or \[8, 7, 7\]"),
    ],
)
def test_masks_that_the_encoder_refuses_are_refused_with_trees(masks, fault: str):
    bridge, states = ts.TransformerEncoderBridge(make(), "relation_mask"), torch.zeros(2, 7, 16)
    for model, given in ((bridge.model, {}), (bridge, {"tree": BATCH})):
        with pytest.raises((AssertionError, RuntimeError, ts.OptionError)) as error:
            model(states, **masks, **given)
    assert re.search(fault, str(error.value))


def test_nested_tensors_are_refused():
    rows = [torch.zeros(length, 16) for length in (7, 4)]
    for layout in (torch.strided, torch.jagged):
        nested = torch.nested.nested_tensor(rows, layout=layout)
        with pytest.raises(
            ts.OptionError, match="padded tokens, not with a nested tensor; give src.to"
        ):
            ts.TransformerEncoderBridge(make(), "relation_mask")(nested, tree=BATCH)


def test_an_encoder_that_was_refused_stays_as_it_was():
    """So a misspelt method can be given again."""
    encoder = make()
    with pytest.raises(ts.OptionError, match="unknown method 'relation_maks'"):
        ts.TransformerEncoderBridge(encoder, "relation_maks")
    assert {type(layer) for layer in encoder.layers} == {nn.TransformerEncoderLayer}
    ts.TransformerEncoderBridge(encoder, "relation_mask")


@pytest.mark.parametrize("kind", [{"dtype": torch.float64}, {"device": "meta"}])
def test_methods_are_where_the_encoder_is_and_of_its_type(kind):
    weights = [*ts.TransformerEncoderBridge(make().to(**kind), SPEC).parameters()]
    assert len({(weight.device, weight.dtype) for weight in weights}) == 1


def test_another_attention_in_a_layer_is_refused_rather_than_passed_by():
    """An adapter around it would have no part in the output."""

    class Adapted(nn.MultiheadAttention):
        pass

    bridge = ts.TransformerEncoderBridge(make(), "relation_mask")
    bridge.model.layers[1].self_attn.__class__ = Adapted
    with pytest.raises(ts.OptionError, match="Adapted has replaced the attention of this layer"):
        run(bridge, torch.randn(2, 7, 16), True, tree=BATCH)


@pytest.mark.parametrize("keys", [{"add_zero_attn": True}, {"add_bias_kv": True}])
def test_keys_that_are_no_tokens_are_refused_rather_than_left_out(keys: dict[str, bool]):
    encoder = make()
    encoder.layers[1].self_attn = nn.MultiheadAttention(16, 4, batch_first=True, **keys)
    bridge = ts.TransformerEncoderBridge(encoder, "relation_mask")
    with pytest.raises(ts.OptionError, match="keys that are no tokens"):
        run(bridge, torch.randn(2, 7, 16), True, tree=BATCH)


@pytest.mark.parametrize(("heads", "batch_first"), [(2, True), (8, True), (4, False)])
def test_layers_of_several_sizes_are_refused(heads: int, batch_first: bool):
    """Two heads would take the first two rows of tables for four."""
    encoder = make()
    encoder.layers[1] = nn.TransformerEncoderLayer(16, heads, 24, batch_first=batch_first)
    with pytest.raises(ts.OptionError, match="differ in width, heads or batch_first"):
        ts.TransformerEncoderBridge(encoder, "relation_mask")


@pytest.mark.parametrize(
    "register",
    [
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_full_backward_hook",
        "register_full_backward_pre_hook",
    ],
)
def test_hooks_that_would_never_be_called_are_refused(register: str):
    """Who records activations would record none, and pruned weights would be those of the last step."""
    bridge = ts.TransformerEncoderBridge(make(), "relation_mask")
    x = torch.randn(2, 7, 16)
    called = []
    for module, name in (
        (bridge.model, "the encoder"),
        (bridge.model.layers[1].self_attn, "self_attn"),
    ):
        hook = getattr(module, register)(lambda *_: called.append(1))
        with pytest.raises(
            ts.OptionError, match=f"{name} has a hook, which a bridge does not call"
        ):
            run(bridge, x, True, tree=BATCH)
        hook.remove()
    for module in (bridge, bridge.model.layers[1], bridge.model.layers[1].self_attn.out_proj):
        getattr(module, register)(lambda *_: called.append(1))
    run(bridge, x.requires_grad_(), True, tree=BATCH).sum().backward()
    assert len(called) == 3


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("spec", ["relation_mask", "stack_pe(depth=4)"])
def test_trees_over_other_tokens_are_refused(spec: str, batch_first: bool):
    """Relations of one sentence would be broadcast to both."""
    bridge = ts.TransformerEncoderBridge(make(batch_first), spec)
    source = torch.randn(2, 7, 16)
    for trees, found in ((TREES[:1], [1, 7]), (TREES[1:] * 2, [2, 4])):
        with pytest.raises(
            ts.OptionError,
            match=re.escape(f"trees are over tokens {found}, but the tokens are [2, 7]"),
        ):
            run(bridge, source, batch_first, tree=batch_of(trees))
    for wrong in (TREES[0], TREES, {"parent": source}):
        for refuse in (
            lambda tree: run(bridge, source, batch_first, tree=tree),
            lambda tree: ts.score_mods(bridge.injections, tree),
        ):
            with pytest.raises(
                ts.OptionError, match="a TreeBatch, not a .*; make it with batch_tr"
            ):
                refuse(wrong)


def test_a_hook_that_no_bridge_knows_is_refused(monkeypatch: pytest.MonkeyPatch):
    """A method of tomorrow must not be carried by halves."""
    monkeypatch.setattr(ts.Injection, "rotate_keys", lambda self, tree: None, raising=False)
    monkeypatch.setattr(ts.Injection, "needs_times", False, raising=False)

    class Tomorrow(ts.METHODS["relation_mask"]):  # type: ignore[misc]
        needs_times = True

        def rotate_keys(self, tree):
            return tree

    monkeypatch.setitem(ts.METHODS, "relation_mask", Tomorrow)
    assert {"rotate_keys", "needs_times"} < {*hooks_of(Tomorrow)}
    with pytest.raises(ts.OptionError, match="relation_mask, which uses rotate_keys, needs_times"):
        ts.TransformerEncoderBridge(make(), "relation_mask")


def test_the_score_mod_of_flex_attention_is_our_attention():
    """Relations from coordinates (relation_mask) and from stored ids (the others)."""
    methods = ts.compose(BIASES, 16, 4, 2)
    set_tables(methods, 0.5)
    q, k, v = torch.randn(3, 2, 4, 7, 4)
    mods = ts.score_mods(methods, BATCH)
    with torch.no_grad():
        for layer in range(2):
            expected = attend(q, k, v, None, methods.relate(BATCH)(layer))
            found = flex_attention(q, k, v, score_mod=mods(layer))
            assert torch.allclose(found, expected, atol=1e-5)


def test_gradients_of_the_score_mod_where_flex_attention_has_a_backward_pass(monkeypatch):
    """PyTorch refuses them on a CPU; without its check, its slow form has them."""
    methods = ts.compose("relation_mask+tree_distance", 16, 4, 2)
    set_tables(methods, 0.5)
    q, k, v = torch.randn(3, 2, 4, 7, 4)

    def gradients(attended: torch.Tensor) -> list[torch.Tensor]:
        return list(torch.autograd.grad(attended.square().sum(), [*methods.parameters()]))

    mod = ts.score_mods(methods, BATCH)(1)
    asked = q.clone().requires_grad_()
    with pytest.raises(NotImplementedError, match="backward on CPU"):
        flex_attention(asked, k, v, score_mod=mod)
    monkeypatch.setattr("torch.nn.attention.flex_attention._validate_device", lambda *inputs: None)
    found = gradients(flex_attention(q, k, v, score_mod=mod))
    expected = gradients(attend(q, k, v, None, methods.relate(BATCH)(1)))
    for one, other in zip(found, expected, strict=True):
        assert other.abs().sum() > 0
        assert torch.allclose(one, other, atol=1e-4, rtol=1e-4)


def test_the_worked_examples():
    text = (ROOT / "docs/pytorch.md").read_text("utf-8")
    names: dict[str, object] = {}
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", text, re.S)):
        exec(compile(code, f"block {number} of docs/pytorch.md", "exec"), names)
    assert names["states"].shape == (2, 5, 32)  # type: ignore[attr-defined]
    assert names["attended"].shape == (2, 4, 5, 8)  # type: ignore[attr-defined]
    assert names["turned"].shape == (2, 4, 5, 8)  # type: ignore[attr-defined]
