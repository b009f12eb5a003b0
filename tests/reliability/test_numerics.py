"""No NaN and no infinity, whatever the trees, the parameters and the precision."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest
import torch
from reliability.fairseq_jobs import SOAK, causal_methods, flags_of, losses, train
from support.helpers import batch_of
from torch import nn

from treesyntax.methods import METHODS
from treesyntax.model.decoder import Decoder
from treesyntax.model.encoder import Encoder
from treesyntax.model.layers import TransformerConfig
from treesyntax.nn.growth import GrowingTrees
from treesyntax.nn.injection import Injection, methods_of
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.tree import Tree

PADDING, END, LONGEST = 1, 2, 64
SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
SPECS = [*METHODS, "everything"]
# Alone in the type with the smallest range; all together in every type.
TYPED = [(spec, dtype) for spec in SPECS for dtype in DTYPES
         if SOAK or spec == "everything" or dtype == torch.float16]  # fmt: skip
CHAIN = Tree([node - 1 for node in range(60)], ["a"] * 60)
STAR = Tree([-1] + [0] * 60, ["a"] * 61)
# As many tokens, with the mark, as there are positions.
COMB = Tree([-1] + [node - 2 + node % 2 for node in range(1, LONGEST - 1)], ["a"] * (LONGEST - 1))
SOURCES = [
    Tree([], []),  # an empty source is its end mark alone
    Tree([-1], ["a"]),  # one node
    CHAIN,  # deeper than any stack, table or clip
    STAR,  # more children than branches
    COMB,
    Tree([], []),  # made a row of padding alone below
]
TARGETS = [Tree([-1], ["b"]), STAR, CHAIN, Tree([-1, 0], ["a", "b"]), COMB, Tree([-1], ["a"])]
EXTREMES = (None, -50.0, 50.0)


def named(spec: str, side: str) -> str:
    if spec == "everything" and side == "encoder":
        # The end mark is all that relation_mask's strengths of 50 leave a token to see. Where it is
        # hidden, their gradient is exp(50) times another, and its square leaves the range of fp32.
        return "+".join(name for name in methods_of(side) if name != "transformer_grammar")
    if spec == "everything":
        return "+".join(causal_methods())
    return spec if spec in (methods_of(side) if side == "encoder" else causal_methods()) else "none"


class Model(nn.Module):
    """Encoder and decoder, with parameters of methods at one value, or as they start."""

    def __init__(
        self, spec: str, value: float | None, linearization: str, symbols: list[str]
    ) -> None:
        super().__init__()
        torch.manual_seed(0)

        def settings(side: str) -> TransformerConfig:
            return TransformerConfig(
                d_model=16, d_ff=32, heads=2, layers=2, injection=named(spec, side), dropout=0.1,
                attention_dropout=0.1, learned_positions=True, positions="absolute",
                max_positions=LONGEST, next_slot=side == "decoder" and spec == "everything",
            )  # fmt: skip

        self.encoder = Encoder(settings("encoder"), nn.Embedding(20, 16, PADDING))
        target = nn.Embedding(len(symbols), 16, PADDING)
        self.decoder = Decoder(
            settings("decoder"), target, True, GrowingTrees(symbols, linearization)
        )
        alone = spec != "everything"
        for method in (*self.encoder.injections.methods, *self.decoder.injections.methods):
            # Ten methods at once with every number at 50 leave the range of fp16 in q·k itself;
            # together, only what is added to the logits is set.
            adds_biases = type(method).bias_table is not Injection.bias_table
            for parameter in method.parameters() if alone or adds_biases else ():
                if value is not None:
                    nn.init.constant_(parameter, value)

    def forward(self, tokens, trees, targets):
        source = self.encoder.encode(tokens, trees)
        return self.decoder.output_projection(self.decoder.decode(targets, source))


def hard_sources() -> tuple[torch.Tensor, object]:
    tokens = torch.full((len(SOURCES), LONGEST), PADDING)
    for row, tree in zip(tokens, SOURCES, strict=True):
        row[: len(tree)] = torch.arange(len(tree)) % 16 + 4
        row[len(tree)] = END
    tokens[-1] = PADDING
    return tokens, batch_of(SOURCES, width=LONGEST)


def hard_targets(linearization: str) -> tuple[torch.Tensor, list[str]]:
    lines = [get_linearization(linearization).tokens(tree) for tree in TARGETS]
    symbols = [*SPECIALS, *sorted({symbol for line in lines for symbol in line})]
    tokens = torch.full((len(lines), LONGEST), PADDING)
    for row, line in zip(tokens, lines, strict=True):
        row[: len(line) + 1] = torch.tensor([END, *map(symbols.index, line)])
    return tokens, symbols


@pytest.mark.parametrize(("spec", "dtype"), TYPED, ids=str)
@pytest.mark.parametrize("value", EXTREMES)
def test_hard_trees_train_with_finite_numbers(spec, value, dtype):
    linearization = "nary_bfs" if value is None else "lcrs_dfs"
    targets, symbols = hard_targets(linearization)
    model = Model(spec, value, linearization, symbols).to(dtype)
    logits = model(*hard_sources(), targets)
    assert logits.dtype == dtype
    assert logits.isfinite().all()
    loss = nn.functional.cross_entropy(
        logits[:, :-1].float().flatten(0, 1), targets[:, 1:].flatten()
    )
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
    norm = nn.utils.get_total_norm([p.grad.float() for p in model.parameters()])
    assert norm.isfinite()


@pytest.mark.parametrize("spec", SPECS if SOAK else ["everything"])
@pytest.mark.parametrize("value", EXTREMES)
def test_autocast_to_bf16_is_finite(spec, value):
    targets, symbols = hard_targets("nary_dfs")
    model = Model(spec, value, "nary_dfs", symbols)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(*hard_sources(), targets)
    assert logits.isfinite().all()
    logits.float().square().mean().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize(("spec", "dtype"), TYPED, ids=str)
@torch.no_grad()
def test_evaluation_of_a_batch_of_nothing_but_padding_or_end_marks_is_finite(spec, dtype):
    model = Model(spec, None, "nary_dfs", [*SPECIALS, "a/0"]).to(dtype).eval()
    for mark in (PADDING, END):
        tokens = torch.full((2, 1), mark)
        assert model(tokens, batch_of([Tree([], [])] * 2), tokens).isfinite().all()


STEPS = 200 if SOAK else 10
TRAINED = ["everything", *METHODS] if SOAK else ["everything"]
BANDS = {"fp16": 0.02, "bf16": 0.05}
"""Largest difference from fp32, as a share of it, of the mean loss of the last tenth of steps."""
HALF = {"fp16": ["--fp16", "--fp16-no-flatten-grads"], "bf16": ["--bf16"]}


@pytest.mark.parametrize("spec", TRAINED)
def test_training_in_half_precision_tracks_fp32(spec, data: Path, tmp_path: Path):
    """fairseq's own --fp16 (with loss scaling) and --bf16, parameters kept in fp32 by its optimiser."""
    flags = [
        *flags_of(spec), "--optimizer", "adam", "--lr", 0.001, "--dropout", 0.1,
        "--batch-size", 32 if SOAK else 8, "--max-update", STEPS, "--clip-norm", 1,
    ]  # fmt: skip

    def end(name: str, *more: str) -> float:
        found = losses(train(data / "nary_bfs", tmp_path / name, *flags, *more))
        assert len(found) >= STEPS - 3, "steps skipped by the loss scaler"
        return statistics.fmean(found[-max(len(found) // 10, 2) :])

    full = end("fp32")
    for name, band in BANDS.items():
        half = end(name, *HALF[name])
        print(f"{spec} {name}: fp32 {full:.4f}, half {half:.4f}, {half / full - 1:+.2%}")
        assert half == pytest.approx(full, rel=band)
