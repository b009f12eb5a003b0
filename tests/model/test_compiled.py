"""``torch.compile`` with dynamic shapes: the same values and gradients on batches of other lengths."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from reliability.fairseq_jobs import SOAK, causal_methods
from support.helpers import batch_of, encoded
from torch import Tensor, nn

from treesyntax.methods import METHODS
from treesyntax.model.decoder import Decoder
from treesyntax.model.encoder import Encoder, EncoderOutput
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.growth import GrowingTrees
from treesyntax.trees.tree import Tree

BACKEND = "inductor" if SOAK else "eager"  # which traces, and generates no code
LENGTHS = (5, 9)


def settings(spec: str) -> TransformerConfig:
    return TransformerConfig(d_model=16, d_ff=16, heads=2, layers=1, injection=spec, dropout=0.0)


def trees(size: int) -> list[Tree]:
    return [Tree([-1, *(i - 1 if i % 3 else 0 for i in range(1, size))], list("abcabcabc")[:size]),
            Tree([-1, 0], list("ab"))]  # fmt: skip


def agree(module: nn.Module, run: Callable[..., Tensor], batches: list[tuple]) -> None:
    """A compiled function and the function itself give the same, and the same gradients."""
    torch._dynamo.reset()
    compiled = torch.compile(run, dynamic=True, backend=BACKEND)
    for batch in batches:
        found = []
        for function in (run, compiled):
            module.zero_grad()
            states = function(*batch)
            states.square().sum().backward()
            gradients = [p.grad.clone() for p in module.parameters() if p.grad is not None]
            found.append((states.detach(), gradients))
        (states, gradients), (others, other_gradients) = found
        assert torch.allclose(states, others, atol=1e-5)
        assert len(gradients) == len(other_gradients) > 10
        for one, other in zip(gradients, other_gradients, strict=True):
            assert torch.allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("spec", METHODS if SOAK else ["relation_mask+relative_depth"])
def test_an_encoder_compiles(spec: str):
    torch.manual_seed(1)
    encoder = Encoder(settings(spec), nn.Embedding(16, 16, 1)).eval()

    def batch(size: int) -> tuple:
        tokens = torch.randint(4, 16, (2, size + 1))
        tokens[1, 3:] = 1
        return tokens, batch_of(trees(size))

    agree(encoder, lambda *words: encoder.encode(*words).memory, list(map(batch, LENGTHS)))


@pytest.mark.parametrize("spec", causal_methods() if SOAK else ["relative_position"])
def test_a_decoder_compiles(spec: str):
    torch.manual_seed(1)
    inputs = [encoded(trees(size), "nary_dfs") for size in LENGTHS]
    symbols = max((names for _, names in inputs), key=len)
    growing = GrowingTrees(symbols, "nary_dfs")
    decoder = Decoder(settings(spec), nn.Embedding(len(symbols), 16, 1), trees=growing).eval()

    def batch(tokens: Tensor) -> tuple:
        return tokens, torch.randn(2, 3, 16)

    def run(tokens: Tensor, memory: Tensor) -> Tensor:
        return decoder.decode(tokens, EncoderOutput(memory, None))

    agree(decoder, run, [batch(tokens) for tokens, _ in inputs])
