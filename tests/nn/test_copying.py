"""Copying from the source, against the formula written as loops over tokens."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from treesyntax.model.decoder import Decoder, KVCache
from treesyntax.model.encoder import EncoderOutput
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.copying import Copying

PADDING, WORDS = 1, 20
# Source ids 0 to 11; two forms each. 8 has one form only, 9 and 10 none, 4 and 5 the same target.
FORMS = torch.full((2, 12), -1)
FORMS[0, 4:9] = torch.tensor([6, 6, 7, 9, 11])
FORMS[1, 4:8] = torch.tensor([14, 14, 15, 16])
SOURCES = torch.tensor([[4, 9, 5, 6, 4, 2], [7, 8, 2, 1, 1, 1], [9, 10, 9, 2, 1, 1]])


def mixture(copying, logits, features, memory, tokens):
    """p(w) = g_0 softmax(logits)_w + sum over forms and source tokens that are w, by the paper."""
    batch, size, width = features.shape
    rows = []
    for row in range(batch):
        for step in range(size):
            state = features[row, step]
            query = copying.q_proj.weight @ state + copying.q_proj.bias
            score = [
                (query @ (copying.k_proj.weight @ key + copying.k_proj.bias)) / math.sqrt(width)
                for key in memory[row]
            ]
            gates = [torch.exp(part) for part in copying.gate.weight @ state + copying.gate.bias]
            of_forms = []
            for form, gate in zip(copying.copies, gates, strict=True):
                ids = [int(form[token]) for token in tokens[row]]
                weight = {s: torch.exp(score[s]) for s, word in enumerate(ids) if word >= 0}
                if weight:
                    of_forms.append((gate, ids, weight))
            whole = 1 + sum(gate for gate, _, _ in of_forms)
            odds = torch.exp(logits[row, step])
            chances = list(odds / odds.sum() / whole)
            for gate, ids, weight in of_forms:
                for s, part in weight.items():
                    share = part / sum(weight.values())
                    chances[ids[s]] = chances[ids[s]] + gate / whole * share
            rows.append(torch.stack(chances))
    return torch.stack(rows).view(batch, size, -1)


def made(forms=2, dtype=torch.float64):
    torch.manual_seed(3)
    copying = Copying(8, 6, FORMS[:forms]).to(dtype)
    logits, features = torch.randn(3, 4, WORDS, dtype=dtype), torch.randn(3, 4, 8, dtype=dtype)
    memory = torch.randn(3, 6, 6, dtype=dtype)
    inputs = [part.requires_grad_() for part in (3 * logits, 2 * features, memory)]
    return copying, inputs


def gradients(value, copying, inputs):
    torch.manual_seed(5)
    weights = torch.rand_like(value)
    return torch.autograd.grad((value * weights).sum(), [*inputs, *copying.parameters()])


@pytest.mark.parametrize("forms", [1, 2])
def test_values_and_gradients_are_those_of_the_formula(forms):
    copying, inputs = made(forms)
    logits, features, memory = inputs
    mine = copying(logits, features, copying.source(memory, SOURCES))
    slow = mixture(copying, logits, features, memory, SOURCES)
    torch.testing.assert_close(mine.exp().sum(2), torch.ones(3, 4, dtype=mine.dtype))
    torch.testing.assert_close(mine.exp(), slow, rtol=1e-12, atol=1e-14)
    pairs = zip(
        gradients(mine, copying, inputs), gradients(slow.log(), copying, inputs), strict=True
    )
    for mine, slow in pairs:
        torch.testing.assert_close(mine, slow, rtol=1e-10, atol=1e-12)


def test_where_nothing_can_be_copied_the_softmax_is_all():
    copying, (logits, features, memory) = made()
    mine = copying(logits, features, copying.source(memory, SOURCES))
    torch.testing.assert_close(mine[2], logits[2].log_softmax(1))


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_values_and_gradients_are_finite_at_any_size(scale):
    copying, inputs = made(dtype=torch.float32)
    logits, features, memory = inputs
    mine = copying(scale * logits, scale * features, copying.source(memory, SOURCES))
    assert mine.isfinite().all()
    assert all(part.isfinite().all() for part in gradients(mine, copying, inputs))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_gives_log_probabilities_in_single(dtype):
    copying, (logits, features, memory) = made(dtype=torch.float32)
    full = copying(logits, features, copying.source(memory, SOURCES))
    half = copying.to(dtype)
    rounded = half(logits.to(dtype), features.to(dtype), half.source(memory.to(dtype), SOURCES))
    assert rounded.dtype == torch.float32
    torch.testing.assert_close(rounded.exp(), full.exp(), rtol=0, atol=0.03)
    torch.testing.assert_close(rounded.exp().sum(2), torch.ones(3, 4))


def test_under_autocast_the_mixture_is_in_single_precision():
    copying, (logits, features, memory) = made(dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mine = copying(logits, features, copying.source(memory, SOURCES))
    assert mine.dtype == torch.float32
    torch.testing.assert_close(mine.exp().sum(2), torch.ones(3, 4))


@torch.no_grad()
def test_step_by_step_equals_all_at_once_also_after_reordering():
    torch.manual_seed(1)
    settings = TransformerConfig(d_model=8, d_ff=16, heads=2, layers=2)
    decoder = Decoder(settings, nn.Embedding(WORDS, 8, PADDING), copies=FORMS).eval()
    tokens, memory = torch.randint(4, WORDS, (3, 7)), torch.randn(3, 6, 8)
    source = EncoderOutput(memory, SOURCES != PADDING, SOURCES)
    full = decoder.output(decoder.decode(tokens, source), source)
    cache, order = KVCache(), torch.arange(3)
    for step in range(1, 8):
        now = EncoderOutput(memory[order], (SOURCES != PADDING)[order], SOURCES[order])
        states = decoder.decode(tokens[order, :step], now, cache)
        mine = decoder.output(states, now, cache)
        torch.testing.assert_close(mine[:, 0], full[order, step - 1], atol=1e-5, rtol=1e-5)
        if step in (2, 4):
            chosen = torch.tensor([2, 0, 0])
            cache.reorder(chosen)
            order = order[chosen]


def test_a_decoder_that_copies_says_what_it_lacks():
    settings = TransformerConfig(d_model=8, d_ff=16, heads=2, layers=1)
    decoder = Decoder(settings, nn.Embedding(WORDS, 8, PADDING), copies=FORMS)
    with pytest.raises(ValueError, match="has none"):
        decoder.output(torch.zeros(1, 1, 8), EncoderOutput(torch.zeros(1, 2, 8), None))
