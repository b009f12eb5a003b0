"""Options of the backbone: layers that share parameters, and the scale of embeddings."""

import math

import pytest
import torch
from support.helpers import batch_of, encoded
from torch import nn

from treesyntax.errors import OptionError
from treesyntax.model.decoder import Decoder, KVCache
from treesyntax.model.encoder import Encoder, EncoderOutput
from treesyntax.model.layers import TransformerConfig, token_positions
from treesyntax.nn.growth import GrowingTrees
from treesyntax.trees.tree import Tree

PADDING = 1
TREES = [Tree([-1, 0, 1, 1, 0], list("abcde")), Tree([-1, 0], list("ab"))]
TOKENS = torch.tensor([[4, 5, 6, 7, 8, 2], [7, 6, 2, 1, 1, 1]])


def encoder(spec="relation_mask+relative_depth+tree_rotation", **options):
    torch.manual_seed(0)
    chosen = TransformerConfig(16, 32, 2, dropout=0.0, injection=spec, **options)
    return Encoder(chosen, nn.Embedding(9, 16, PADDING))


@pytest.mark.parametrize("distinct", [1, 2])
def test_shared_layers_are_copies_of_layers_whose_gradients_are_summed(distinct):
    shared = encoder(layers=4, distinct_layers=distinct)
    for parameter in shared.injections.parameters():
        nn.init.normal_(parameter, std=0.3)
    apart = encoder(layers=4)
    state = shared.state_dict()
    for step in range(4):
        apart.layers[step].load_state_dict(shared.layers[step % distinct].state_dict())
    tables = ["relation_mask.strengths", "relative_depth.key_table", "relative_depth.value_table"]
    with torch.no_grad():
        for name in tables:
            turns = [step % distinct for step in range(4)]
            apart.injections.get_parameter(name).copy_(state[f"injections.{name}"][turns])
        apart.injections["tree_rotation"].load_state_dict(
            shared.injections["tree_rotation"].state_dict()
        )
        apart.embed_tokens.load_state_dict(shared.embed_tokens.state_dict())
    batch = batch_of(TREES)
    outputs = [one.encode(TOKENS, batch).memory for one in (shared, apart)]
    torch.testing.assert_close(*outputs, atol=1e-6, rtol=1e-6)
    for output in outputs:
        output.square().sum().backward()
    summed = sum(layer.fc1.weight.grad for layer in list(apart.layers)[::distinct])
    torch.testing.assert_close(shared.layers[0].fc1.weight.grad, summed, atol=1e-4, rtol=1e-4)
    for name in tables:
        mine, theirs = (one.injections.get_parameter(name).grad for one in (shared, apart))
        theirs = theirs.unflatten(0, (-1, distinct)).sum(0)
        torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-4)


def test_shared_layers_have_the_parameters_of_one():
    count = {distinct: sum(p.numel() for p in encoder(layers=6, distinct_layers=distinct).layers.parameters())
             for distinct in (0, 1, 3)}  # fmt: skip
    assert count[0] == 6 * count[1] == 2 * count[3]
    assert (
        encoder(layers=6).state_dict().keys()
        == encoder(layers=6, distinct_layers=6).state_dict().keys()
    )


@torch.no_grad()
def test_a_decoder_with_shared_layers_caches_each_application():
    tokens, symbols = encoded(TREES, "nary_dfs")
    torch.manual_seed(0)
    chosen = TransformerConfig(
        16, 32, 2, 4, distinct_layers=2, injection="relation_mask+tree_rotation"
    )
    decoder = Decoder(chosen, nn.Embedding(len(symbols), 16, PADDING), False,
                      GrowingTrees(symbols, "nary_dfs")).eval()  # fmt: skip
    source, cache = EncoderOutput(torch.randn(2, 3, 16), None), KVCache()
    full = decoder.decode(tokens, source)
    for step in range(1, tokens.shape[1] + 1):
        last = decoder.decode(tokens[:, :step], source, cache)
        torch.testing.assert_close(last[:, 0], full[:, step - 1], atol=1e-5, rtol=0)
    assert len(cache.layers) == 4
    assert len(decoder.layers) == 2


@pytest.mark.parametrize("distinct", [-1, 4, 12])
def test_layers_that_cannot_be_repeated(distinct):
    with pytest.raises(OptionError, match="cannot be repeated to 6; give a divisor of 6, or 0"):
        TransformerConfig(layers=6, distinct_layers=distinct)


@pytest.mark.parametrize(
    ("options", "token_scale", "place_scale", "std"),
    [
        ({}, 4.0, 1.0, 0.25),
        ({"scale_embedding": False}, 1.0, 1.0, 0.25),
        ({"embedding_scaling": "none"}, 1.0, 1.0, 1.0),
        ({"embedding_scaling": "down"}, 1.0, 0.25, math.sqrt(2 / 16)),
        ({"embedding_scaling": "down", "scale_embedding": False}, 1.0, 0.25, math.sqrt(2 / 16)),
    ],
)
@torch.no_grad()
def test_embeddings_and_positions_are_scaled_as_in_csordas_et_al(
    options, token_scale, place_scale, std
):
    """What enters the first layer; with no layer, it is the output."""
    model = encoder("depth_sibling", layers=0, **options).eval()
    batch = batch_of(TREES)
    real = TOKENS.ne(PADDING)
    place = model.embed_positions(token_positions(TOKENS, PADDING)) + model.injections.encode(batch)
    wanted = token_scale * model.embed_tokens(TOKENS) + place_scale * place
    torch.testing.assert_close(model.encode(TOKENS, batch).memory[real], wanted[real])
    decoder = Decoder(model.settings, nn.Embedding(9, 16, PADDING), trees=GrowingTrees(
        ["<s>", "<pad>", "</s>", "<unk>", "a/0", "b/1", "c/2", "d/0", "e/0"], "nary_dfs")).eval()  # fmt: skip
    target = torch.tensor([[2, 6, 5, 4, 7]])
    tree = decoder.trees.grow(target).tree
    place = decoder.embed_positions(token_positions(target, PADDING)) + decoder.injections.encode(
        tree
    )
    found = decoder.decode(target, EncoderOutput(torch.zeros(1, 1, 16), None))
    torch.testing.assert_close(
        found, token_scale * decoder.embed_tokens(target) + place_scale * place
    )
    assert math.isclose(model.settings.embedding_std, std)


def test_a_scaling_that_does_not_exist():
    with pytest.raises(
        OptionError, match="unknown embedding scaling 'left'; valid are up, none, down"
    ):
        TransformerConfig(embedding_scaling="left")
