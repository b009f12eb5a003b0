"""A training step of each method beside a CPU, where there is no GPU either."""

from __future__ import annotations

import pytest
import torch
from gpu.test_methods import COMPOSITIONS, OFF, SPECS, decoder_step, encoder_step
from support.elsewhere import DEVICE, Elsewhere
from torch import Tensor, nn
from torch._subclasses.fake_tensor import DataDependentOutputException

from treesyntax.model.composition import Composition
from treesyntax.testing.methods import SITE, TREES, _decoders, make_encoder, make_sentences


def expect_a_step(model: nn.Module, loss: Tensor) -> None:
    loss.backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert {tensor.device for tensor in (loss, *gradients)} == {DEVICE}


@pytest.mark.parametrize("spec", SPECS)
def test_a_step_stays_on_its_device_and_reads_nothing_back(spec: str):
    encoders = [] if Composition(spec, SITE).misplaced("encoder") else [make_encoder(spec, **OFF)]
    tokens, batch = make_sentences(TREES)
    decoders = [*_decoders(spec, TREES)]  # ways to grow a tree: with single methods the first
    decoders = decoders if spec in COMPOSITIONS else decoders[:1]
    with Elsewhere() as elsewhere:
        for encoder in encoders:
            step = encoder_step(elsewhere.moved(tokens), elsewhere.moved_trees(batch))
            expect_a_step(encoder, step(elsewhere.moved_model(encoder.train())))
        for _, decoder, targets in decoders:
            step = decoder_step(elsewhere.moved(targets))
            expect_a_step(decoder, step(elsewhere.moved_model(decoder.train())))


def test_what_a_gpu_would_refuse_or_wait_for_raises():
    with Elsewhere() as elsewhere:
        there = elsewhere.moved(torch.ones(3))
        assert (there + 1).device == DEVICE
        with pytest.raises(RuntimeError, match="devices"):
            there + torch.ones(3)
        with pytest.raises(DataDependentOutputException):
            there.sum().item()
