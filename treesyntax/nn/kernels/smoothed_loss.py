"""Cross-entropy with label smoothing on a CPU: a tile of rows is read once, and its gradient made at once.

fairseq's formula, written with PyTorch's operators, makes five tensors of tokens times dictionary, each of which
goes through memory several times: a quarter of a training step at width 128 and 6,000 words. Here there
is one, the gradient.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

TILE = 2**17
"""Logits that are treated at once: half a megabyte, which a core's cache holds."""


def smoothed_loss(
    logits: Tensor, target: Tensor, smoothing: float, ignored: int
) -> tuple[Tensor, Tensor]:
    """The sums of the smoothed loss and of the negative log-likelihood over tokens.

    The smoothed loss of a token is (1 - e - e/(V - 1)) times its negative log-likelihood and e/(V - 1) times the
    sum of those of all words: 1 - e for the right word, e shared by the others (fairseq's
    ``label_smoothed_nll_loss``; Szegedy et al. 2016, section 7, shares e among all words).

    Args:
        logits: float [N, V].
        target: [N], the right words.
        smoothing: e, from 0 up to 1.
        ignored: a word whose tokens do not count: padding.

    Returns:
        Two scalars; only the first has a gradient.
    """
    loss, likelihood = _SmoothedLoss.apply(logits, target, smoothing, ignored)
    return loss, likelihood


class _SmoothedLoss(torch.autograd.Function):
    """The gradient is made beside the loss, while its tile is in the cache."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target: Tensor, smoothing: float, ignored: int
    ) -> tuple[Tensor, Tensor]:
        words = logits.shape[1]
        share = smoothing / (words - 1)
        rows = max(TILE // words, 1)
        gradient = torch.empty_like(logits) if ctx.needs_input_grad[0] else None
        tile = logits.new_empty(rows, words)
        sums = logits.new_zeros(2)
        for start in range(0, len(logits), rows):
            part, right = logits[start : start + rows], target[start : start + rows, None]
            counts = right.ne(ignored).to(logits.dtype)
            chances = tile[: len(part)] if gradient is None else gradient[start : start + rows]
            torch.softmax(part, 1, out=chances)
            # The largest is at least 1 / V, so that its logarithm is exact enough.
            normalizer = part.amax(1, keepdim=True) - chances.amax(1, keepdim=True).log()
            likelihood = normalizer - part.gather(1, right)
            of_all = normalizer * words - part.sum(1, keepdim=True)
            smoothed = (1 - smoothing - share) * likelihood + share * of_all
            sums += torch.stack([(smoothed * counts).sum(), (likelihood * counts).sum()])
            if gradient is not None:
                chances.sub_(share).scatter_add_(
                    1, right, torch.full_like(counts, smoothing + share - 1)
                )
                chances[right[:, 0] == ignored] = 0
        ctx.save_for_backward(gradient)
        loss, likelihood = sums.unbind()
        ctx.mark_non_differentiable(likelihood)
        return loss.clone(), likelihood.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient if of_loss == 1 else gradient * of_loss, None, None, None
