"""The parts of a training step that are not matrix products, as ratios to PyTorch's and fairseq's, on a GPU where there is one.

Dropout of a layer's output, the softmax of attention over a short sentence, and the loss with label smoothing
from features (with the product that makes its logits), forward and backward; the step of Adam; and the batch that
is made of sentence pairs, always on the CPU.

    OMP_NUM_THREADS=1 python benchmarks/small_parts.py
    python benchmarks/small_parts.py --tokens 2048 --width 512 --words 32000
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from fairseq.data import language_pair_dataset
from fairseq.optim.adam import Adam
from timing import medians, print_ratios

from fairseq_plugins.collation import all_at_once
from fairseq_plugins.training.updates import in_one_pass
from treesyntax.nn.dropout import drop
from treesyntax.nn.kernels.smoothed_loss import projected_loss
from treesyntax.nn.kernels.softmax import softmax

SMOOTHING, PADDING, RATE = 0.1, 1, 0.3


def dropout_steps(tokens: int, width: int) -> dict[str, Callable[[], object]]:
    """Forward and backward of dropout."""
    x = torch.randn(tokens, width, requires_grad=True)
    gradient = torch.randn(tokens, width)
    return {
        "PyTorch's": lambda: torch.autograd.grad(F.dropout(x, RATE), x, gradient),
        "ours": lambda: torch.autograd.grad(drop(x, RATE), x, gradient),
    }


def softmax_steps(tokens: int, length: int) -> dict[str, Callable[[], object]]:
    """Forward and backward of the weights of four heads."""
    x = torch.randn(4 * tokens // length, length, length, requires_grad=True)
    gradient = torch.randn(x.shape)
    return {
        "PyTorch's": lambda: torch.autograd.grad(torch.softmax(x, -1), x, gradient),
        "ours": lambda: torch.autograd.grad(softmax(x), x, gradient),
    }


def loss_steps(tokens: int, width: int, words: int) -> dict[str, Callable[[], object]]:
    """Forward and backward of the loss, from features."""
    features = torch.randn(tokens, width, requires_grad=True)
    weight = torch.randn(words, width, requires_grad=True)
    target = torch.randint(words, (tokens,))

    def theirs() -> object:
        found = F.log_softmax(F.linear(features, weight), -1)
        loss, _ = label_smoothed_nll_loss(found, target, SMOOTHING, PADDING)
        return torch.autograd.grad(loss, (features, weight))

    def ours() -> object:
        loss = projected_loss(features, weight, target, SMOOTHING, PADDING)[0]
        return torch.autograd.grad(loss, (features, weight))

    def half() -> object:
        with torch.autocast(features.device.type, torch.bfloat16):
            loss = projected_loss(features, weight, target, SMOOTHING, PADDING)[0]
        return torch.autograd.grad(loss, (features, weight))

    return {"fairseq's": theirs, "ours": ours, "ours, --amp": half}


def adam_steps(parameters: int, width: int) -> dict[str, Callable[[], object]]:
    """A step of Adam over square matrices."""
    fairseqs = getattr(Adam.step, "__wrapped__", Adam.step)
    actions: dict[str, Callable[[], object]] = {}
    for name, step in (("fairseq's", fairseqs), ("ours", in_one_pass(fairseqs))):
        weights = [torch.nn.Parameter(torch.randn(width, width)) for _ in range(parameters)]
        for weight in weights:
            weight.grad = torch.randn(width, width)
        optimizer = Adam(weights, lr=0.001, betas=(0.9, 0.98))
        fairseqs(optimizer)  # which makes the moments
        actions[name] = partial(step, optimizer)
    return actions


def collation_steps(tokens: int, length: int) -> dict[str, Callable[[], object]]:
    """The batch of sentence pairs of up to twice the length."""
    theirs = getattr(language_pair_dataset.collate, "__wrapped__", language_pair_dataset.collate)

    def sentence() -> torch.Tensor:
        return torch.randint(3, 50, (int(torch.randint(1, 2 * length, ())),))

    with torch.device("cpu"):
        pairs = [
            {"id": row, "source": sentence(), "target": sentence()}
            for row in range(tokens // length)
        ]

    def make(collate: Callable[..., object]) -> object:
        with torch.device("cpu"):
            return collate(pairs, PADDING, 2)

    return {"fairseq's": partial(make, theirs), "ours": partial(make, all_at_once(theirs))}


def main() -> None:
    """Print a table for each part."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=4096, help="of a batch")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--words", type=int, default=6000, help="of the dictionary")
    parser.add_argument("--length", type=int, default=14, help="of the sentences")
    parser.add_argument(
        "--parameters", type=int, default=100, help="tensors that Adam goes through"
    )
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
    for title, steps in (
        ("dropout", dropout_steps(options.tokens, options.width)),
        ("softmax", softmax_steps(options.tokens, options.length)),
        ("loss", loss_steps(options.tokens, options.width, options.words)),
        ("adam", adam_steps(options.parameters, options.width)),
        ("collation", collation_steps(options.tokens, options.length)),
    ):
        print_ratios(title, medians(steps, options.repeats), next(iter(steps)))


if __name__ == "__main__":
    main()
