"""A training step of each method on a GPU: that of the CPU, without a number read back to the host."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from treesyntax.methods import METHODS
from treesyntax.model.composition import Composition
from treesyntax.model.encoder import Encoder, EncoderOutput
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.tree_batch import TreeBatch
from treesyntax.testing.methods import (
    PADDING,
    SITE,
    TREES,
    VOCABULARY,
    _decoders,
    make_encoder,
    make_sentences,
)

COMPOSITIONS = (
    "stack_pe+relation_mask+relative_depth",
    "relative_position+relation_mask+tree_rotary",
)
SPECS = [*METHODS, *COMPOSITIONS]
WAITS = {
    "laplacian": "torch.linalg.eigh reads back whether it converged",
    "tree_rotation": "torch.linalg.matrix_exp reads back how large the matrices are",
}
"""Methods that wait once a batch, docs/costs.md."""
OFF = {"dropout": 0.0, "attention_dropout": 0.0}
Step = Callable[[nn.Module, torch.device], Tensor]


@contextmanager
def no_number_is_read_back(device: torch.device) -> Iterator[None]:
    """Any call that waits for the GPU is an error."""
    if device.type != "cuda":
        yield
        return
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def moved(batch: TreeBatch, device: torch.device) -> TreeBatch:
    return TreeBatch(**{k: v.to(device) for k, v in batch.to_dict().items()}, check=False)


def encoder_step(tokens: Tensor, batch: TreeBatch) -> Callable[[Encoder], Tensor]:
    weights = torch.linspace(-1, 1, SITE.d_model, device=tokens.device)

    def step(encoder: Encoder) -> Tensor:
        output = encoder(tokens, batch)
        loss = (output.memory * weights).square().mean()
        return loss if output.loss is None else loss + output.loss / tokens.numel()

    return step


def decoder_step(tokens: Tensor) -> Callable[[Any], Tensor]:
    memory = torch.linspace(-1, 1, len(tokens) * 5 * SITE.d_model, device=tokens.device)
    memory = memory.view(len(tokens), 5, SITE.d_model)
    real = torch.ones(len(tokens), 5, dtype=torch.bool, device=tokens.device)

    def step(decoder: Any) -> Tensor:
        return decoder(tokens, EncoderOutput(memory, real)).log_softmax(-1).square().mean()

    return step


def gradients(model: nn.Module, loss: Tensor) -> dict[str, Tensor]:
    loss.backward()
    found = {n: p.grad.cpu() for n, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return {"loss": loss.detach().cpu(), **found}


def expect_the_same(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        scale = max(1e-3, value.abs().max().item())
        assert (found[name] - value).abs().max().item() <= 2e-3 * scale, name


def steps_of(spec: str, device: torch.device) -> Iterator[tuple[nn.Module, Callable, Callable]]:
    """A model on the CPU, and the loss there and on the GPU: of an encoder, and of each decoder."""
    if not Composition(spec, SITE).misplaced("encoder"):
        tokens, batch = make_sentences(TREES)
        there = encoder_step(tokens.to(device), moved(batch, device))
        yield make_encoder(spec, **OFF).train(), encoder_step(tokens, batch), there
    for _, decoder, tokens in _decoders(spec, TREES):
        yield decoder.train(), decoder_step(tokens), decoder_step(tokens.to(device))


@pytest.mark.parametrize("spec", SPECS)
def test_loss_and_gradients_are_those_of_the_cpu(spec: str, device: torch.device):
    for model, here, there in steps_of(spec, device):
        torch.manual_seed(7)
        wanted = gradients(model, here(model))
        torch.manual_seed(7)
        on_gpu = copy.deepcopy(model).to(device)
        if _draws(model, here):
            continue
        expect_the_same(gradients(on_gpu, there(on_gpu)), wanted)


def _draws(model: nn.Module, loss: Callable[[Any], Tensor]) -> bool:
    """Whether a method draws numbers in training, which another device draws otherwise."""
    with torch.no_grad():
        torch.manual_seed(1)
        first = loss(model)
        torch.manual_seed(2)
        return not torch.equal(first, loss(model))


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("precision", ["single", "bfloat16"])
def test_a_step_waits_for_nothing(
    spec: str, precision: str, device: torch.device, request: pytest.FixtureRequest
):
    if spec in WAITS and device.type == "cuda":
        request.applymarker(pytest.mark.xfail(reason=WAITS[spec], strict=True))
    for model, _, there in steps_of(spec, device):
        on_gpu = model.to(device)
        optimizer = torch.optim.Adam(on_gpu.parameters(), capturable=device.type == "cuda")
        half = torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")
        train(there, on_gpu, optimizer, half)  # kernels are loaded the first time
        with no_number_is_read_back(device):
            losses = [train(there, on_gpu, optimizer, half) for _ in range(3)]
        assert all(loss.isfinite() for loss in losses)
        assert losses[-1] != losses[0]


def train(
    loss_of: Callable, model: nn.Module, optimizer: torch.optim.Optimizer, precision: torch.autocast
) -> Tensor:
    """One update; the loss before it."""
    with precision:
        loss = loss_of(model)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


@pytest.mark.parametrize("spec", SPECS)
def test_dropout_and_recomputed_activations(spec: str, device: torch.device):
    """What a method draws at random is drawn again the same where activations are computed again."""
    if Composition(spec, SITE).misplaced("encoder"):
        pytest.skip("for decoders alone")
    tokens, batch = make_sentences(TREES)
    step, found = encoder_step(tokens.to(device), moved(batch, device)), []
    for recompute in (False, True):
        encoder = make_encoder(spec, recompute=recompute, dropout=0.2, attention_dropout=0.2)
        encoder.train().to(device)
        torch.manual_seed(5)
        found.append(gradients(encoder, step(encoder)))
    expect_the_same(*found)


LONG = 2304


@pytest.mark.parametrize("spec", ["relation_mask", "relation_mask+stack_pe(depth=3)"])
def test_long_inputs_without_a_tensor_of_pairs(
    spec: str, device: torch.device, monkeypatch: pytest.MonkeyPatch
):
    """Ids computed in the kernel give the output and the gradients of stored ones, and take less memory."""
    if device.type == "cpu":
        pytest.skip("needs a CUDA GPU")
    from treesyntax.trees.tree import Tree

    parents = [-1, *(max(node - 1 - node % 7, 0) for node in range(1, LONG - 1))]
    tokens, batch = make_sentences([Tree(parents, ["a"] * len(parents))])
    options = TransformerConfig(
        d_model=64, heads=4, layers=1, d_ff=64, injection=spec, dropout=0.0, attention_dropout=0.0
    )
    torch.manual_seed(0)
    encoder = Encoder(options, nn.Embedding(VOCABULARY, 64, PADDING)).to(device).train()
    for name, parameter in encoder.named_parameters():
        if name.startswith("injections"):
            nn.init.normal_(parameter, std=0.3)
    given, trees = tokens.to(device), moved(batch, device)
    found, peaks = [], []
    for long in (False, True):
        if not long:
            monkeypatch.setattr("treesyntax.model.composition.is_long", lambda tree: False)
        else:
            monkeypatch.undo()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        found.append(gradients(encoder, encoder(given, trees).memory.square().mean()))
        peaks.append(torch.cuda.max_memory_allocated())
    for name, value in found[0].items():
        scale = max(1e-3, value.abs().max().item())
        assert (found[1][name] - value).abs().max().item() <= 1e-2 * scale, name
    assert peaks[1] < peaks[0]
