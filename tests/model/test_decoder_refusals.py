"""Methods and targets that a decoder refuses, with what to do instead."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from support.helpers import SPECIALS
from torch import nn

from treesyntax.errors import OptionError
from treesyntax.methods import METHODS
from treesyntax.model.bracket_growth import BRACKETS, growing_trees
from treesyntax.model.decoder import Decoder, KVCache
from treesyntax.model.encoder import EncoderOutput
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.growth import GrowingTrees
from treesyntax.nn.injection import Injection

PADDING = 1


def build(spec: str, linearization: str, symbols: list[str]) -> Decoder:
    config = TransformerConfig(
        d_model=16, heads=4,
        injection=spec.removeprefix("next_slot:"), next_slot=spec.startswith("next_slot:"),
    )  # fmt: skip
    embedding = nn.Embedding(len(symbols), 16, PADDING)
    return Decoder(config, embedding, False, growing_trees(symbols, linearization))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("stack_pe(tree='left')", "would see the future: stack_pe with tree='left' depends on"),
        ("next_slot:relation_mask", "the next slot has no encoding with 'relation_mask'"),
        ("next_slot:none", "the next slot has no encoding with 'none'; add a method"),
    ],
)
def test_methods_that_a_decoder_cannot_use_are_refused(spec: str, message: str):
    with pytest.raises(OptionError, match=message):
        build(spec, "nary_dfs", [*SPECIALS, "a/0"])


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ("relation_mask+pushdown", "pushdown"),
        ("next_slot:stack_pe", "the encoding of the next slot"),
    ],
)
def test_what_needs_slots_is_refused_over_brackets(spec: str, what: str):
    with pytest.raises(
        OptionError, match=f"^{what} needs a target with one token a node.* nary_dfs or"
    ):
        build(spec, BRACKETS, [*SPECIALS, "a", ")"])


def test_a_target_that_grows_no_tree_is_refused():
    chosen = TransformerConfig(d_model=16, heads=4, injection="stack_pe+relative_position")
    message = r"stack_pe\+relative_position needs a target.*--target-linearization nary_dfs or nary_bfs or"
    with pytest.raises(OptionError, match=message):
        Decoder(chosen, nn.Embedding(9, 16, PADDING))
    with pytest.raises(
        OptionError, match="the linearization 'words' grow no tree; those of nary_dfs, "
    ):
        GrowingTrees(SPECIALS, "words")
    Decoder(
        TransformerConfig(d_model=16, heads=4, injection="relative_position"),
        nn.Embedding(9, 16, PADDING),
    )


class ALoss(Injection):
    """A user's, who did not think of decoders."""

    def loss(self, layer, states, tree):
        return states.outputs.square().sum()


def test_a_decoder_refuses_to_leave_out_what_a_method_adds_to_the_loss(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(METHODS, "a_loss", ALoss)
    with pytest.raises(OptionError, match="a_loss adds to the loss of an encoder.*; give it with"):
        build("a_loss", "nary_dfs", [*SPECIALS, "a/0"])


@torch.no_grad()
def test_a_cache_of_other_tokens_is_refused():
    decoder = build("none", "nary_dfs", [*SPECIALS, "a/0"]).eval()
    tokens, source, cache = (
        torch.tensor([[2, 4, 4]]),
        EncoderOutput(torch.ones(1, 2, 16), None),
        KVCache(),
    )
    for step in (1, 2):
        decoder(tokens[:, :step], source, cache)
    for count, used in ((1, cache), (2, cache), (3, KVCache())):
        message = f"the cache holds {used.length} positions, and there are {count} tokens: .* new"
        with pytest.raises(OptionError, match=message):
            decoder(tokens[:, :count], source, used)
    decoder(tokens, source, cache)
    assert cache.length == 3


@pytest.mark.parametrize(
    ("row", "refused"), [([2, 4, 5], False), ([4, 5, 5], True), ([PADDING, 2, 4], True)]
)
@pytest.mark.parametrize("growth", ["nary_dfs", BRACKETS])
def test_a_target_that_does_not_begin_with_the_start_symbol_is_refused(growth, row, refused):
    symbols = ["(a", "b", ")"] if growth == BRACKETS else ["a/2", "b/0"]
    decoder = build("relation_mask", growth, [*SPECIALS, *symbols])
    source = EncoderOutput(torch.ones(1, 2, 16), None)
    message = "begins with padding or a node, .* symbol first.* padding on the right"
    with pytest.raises(OptionError, match=message) if refused else nullcontext():
        decoder(torch.tensor([row]), source)
