"""Cross-entropy with label smoothing on a CPU: a tile of tokens is read while the cache holds it, and its gradient made
at once.

fairseq's formula, written with PyTorch's operators, makes five tensors of tokens times dictionary, each of which
goes through memory several times: a quarter of a training step at width 128 and 6,000 words. Here there
is none where the logits are a product of features and embeddings, and one, the gradient, where a decoder copies.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

TILE = 2**20
"""Logits that are treated at once: four megabytes, which the largest cache holds."""


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


def projected_loss(
    features: Tensor, weight: Tensor, target: Tensor, smoothing: float, ignored: int
) -> tuple[Tensor, Tensor, Tensor]:
    """:func:`smoothed_loss` of the logits ``features @ weight.T``, which are never there as a whole.

    Under autocast the products are of numbers in bfloat16, those of a model in half precision in its own; everything
    else is in single precision at least.

    Args:
        features: float [N, d].
        weight: float [V, d], the embeddings of the words.
        target: [N], the right words.
        smoothing: e, from 0 up to 1.
        ignored: a word whose tokens do not count: padding.

    Returns:
        The two sums, and how many of the tokens that count have their largest logit where it belongs; only the
        first has a gradient.
    """
    kind = torch.bfloat16 if torch.is_autocast_enabled("cpu") else features.dtype
    exact = torch.promote_types(features.dtype, torch.float32)
    loss, likelihood, hits = _ProjectedLoss.apply(
        features.to(exact), weight.to(exact), target, smoothing, ignored, kind
    )
    return loss, likelihood, hits


def _tile_loss(
    logits: Tensor, right: Tensor, smoothing: float, chances: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Losses and likelihoods [n, 1] and best words [n, 1] of a tile [n, V]; its softmax goes to ``chances``."""
    words = logits.shape[1]
    share = smoothing / (words - 1)
    torch.softmax(logits, 1, out=chances)
    largest, best = logits.max(1, keepdim=True)
    # The largest chance is at least 1 / V, so that its logarithm is exact enough.
    normalizer = largest - chances.gather(1, best).log()
    likelihood = normalizer - logits.gather(1, right)
    of_all = normalizer * words - logits.sum(1, keepdim=True)
    return (1 - smoothing - share) * likelihood + share * of_all, likelihood, best


def _tile_gradient(chances: Tensor, right: Tensor, smoothing: float) -> Tensor:
    """The gradient of the smoothed loss with regard to the logits, made of their softmax in place."""
    share = smoothing / (chances.shape[1] - 1)
    change = torch.full_like(right, smoothing + share - 1, dtype=chances.dtype)
    return chances.sub_(share).scatter_add_(1, right, change)


class _SmoothedLoss(torch.autograd.Function):
    """The gradient is made beside the loss, while its tile is in the cache."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target: Tensor, smoothing: float, ignored: int
    ) -> tuple[Tensor, Tensor]:
        rows = max(TILE // logits.shape[1], 1)
        gradient = torch.empty_like(logits) if ctx.needs_input_grad[0] else None
        sums = logits.new_zeros(2)
        for start in range(0, len(logits), rows):
            tile, right = logits[start : start + rows], target[start : start + rows, None]
            counts = right.ne(ignored).to(logits.dtype)
            chances = torch.empty_like(tile) if gradient is None else gradient[start : start + rows]
            loss, likelihood, _ = _tile_loss(tile, right, smoothing, chances)
            sums += torch.stack([(loss * counts).sum(), (likelihood * counts).sum()])
            if gradient is not None:
                _tile_gradient(chances, right, smoothing)[right[:, 0] == ignored] = 0
        ctx.save_for_backward(gradient)
        total, likelihoods = (of_all.clone() for of_all in sums.unbind())
        ctx.mark_non_differentiable(likelihoods)
        return total, likelihoods

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_loss: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient if of_loss == 1 else gradient * of_loss, None, None, None


class _ProjectedLoss(torch.autograd.Function):
    """Both gradients are summed up tile by tile."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        target: Tensor,
        smoothing: float,
        ignored: int,
        kind: torch.dtype,
    ) -> tuple[Tensor, Tensor, Tensor]:
        counting = target.ne(ignored).nonzero()[:, 0]
        tokens, right = features[counting].to(kind), target[counting, None]
        with torch.autocast("cpu", enabled=False):
            words, learns = weight.to(kind), any(ctx.needs_input_grad)
            of_tokens = features.new_empty(len(tokens), features.shape[1])
            of_words = torch.zeros_like(weight)
            sums, hits = features.new_zeros(2), target.new_zeros(())
            rows = max(TILE // len(weight), 1)
            # Used again by every tile: new memory of this size is slower than what is done in it.
            tile = (min(rows, len(tokens)), len(weight))
            logits, chances = features.new_empty(tile), features.new_empty(tile)
            half = None if kind == features.dtype else features.new_empty(tile, dtype=kind)
            for start in range(0, len(tokens), rows):
                tile_tokens, tile_right = tokens[start : start + rows], right[start : start + rows]
                tile_logits, softmax = logits[: len(tile_tokens)], chances[: len(tile_tokens)]
                product = tile_logits if half is None else half[: len(tile_tokens)]
                torch.mm(tile_tokens, words.t(), out=product)
                if half is not None:
                    tile_logits.copy_(product)
                loss, likelihood, best = _tile_loss(tile_logits, tile_right, smoothing, softmax)
                sums += torch.stack([loss.sum(), likelihood.sum()])
                hits += best.eq(tile_right).sum()
                if learns:
                    gradient = _tile_gradient(softmax, tile_right, smoothing)
                    gradient = gradient if half is None else product.copy_(gradient)
                    of_tokens[start : start + rows] = gradient @ words
                    of_words += gradient.t() @ tile_tokens
        ctx.save_for_backward(counting, of_tokens, of_words)
        ctx.count = len(features)
        total, likelihoods = (of_all.clone() for of_all in sums.unbind())
        ctx.mark_non_differentiable(likelihoods, hits)
        return total, likelihoods, hits

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_loss: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        counting, of_tokens, of_words = ctx.saved_tensors
        if of_loss != 1:
            of_tokens, of_words = of_tokens * of_loss, of_words * of_loss
        of_features = of_tokens.new_zeros(ctx.count, of_tokens.shape[1])
        of_features[counting] = of_tokens
        return of_features, of_words, *[None] * 4
