"""The loss with label smoothing against its formula, written out token by token."""

import math

import pytest
import torch

from treesyntax.nn.kernels import smoothed_loss as module
from treesyntax.nn.kernels.smoothed_loss import projected_loss, smoothed_loss

PADDING = 1


def by_hand(logits, target, smoothing):
    """Sums over tokens that are not padding, of e/(V-1) for each wrong word and 1-e for the right one."""
    losses, likelihoods = [], []
    for row, right in zip(logits, target.tolist(), strict=True):
        if right == PADDING:
            continue
        costs = [-(one - torch.logsumexp(row, 0)) for one in row]
        share = smoothing / (len(costs) - 1)
        wrong = sum(cost for word, cost in enumerate(costs) if word != right)
        losses.append((1 - smoothing) * costs[right] + share * wrong)
        likelihoods.append(costs[right])
    return sum(losses), sum(likelihoods)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("tile", [1, 100, module.TILE])
def test_values_and_gradients_are_those_of_the_formula(smoothing, tile, monkeypatch):
    monkeypatch.setattr(module, "TILE", tile)
    torch.manual_seed(1)
    logits = (torch.randn(23, 17, dtype=torch.float64) * 4).requires_grad_()
    target = torch.randint(17, (23,))
    target[[0, 5, 22]] = PADDING
    loss, likelihood = smoothed_loss(logits, target, smoothing, PADDING)
    wanted, wanted_likelihood = by_hand(logits, target, smoothing)
    torch.testing.assert_close(loss, wanted)
    torch.testing.assert_close(likelihood, wanted_likelihood.detach())
    for factor in (1.0, -2.5):
        (found,) = torch.autograd.grad(loss * factor, logits, retain_graph=True)
        (right,) = torch.autograd.grad(wanted * factor, logits, retain_graph=True)
        torch.testing.assert_close(found, right)
    with torch.no_grad():
        torch.testing.assert_close(
            smoothed_loss(logits, target, smoothing, PADDING)[0], loss.detach()
        )


def test_only_padding_and_no_tokens_give_zero():
    logits = torch.randn(4, 6, requires_grad=True)
    loss, likelihood = smoothed_loss(logits, torch.full((4,), PADDING), 0.1, PADDING)
    assert loss.item() == likelihood.item() == 0
    assert not torch.autograd.grad(loss, logits)[0].any()
    assert smoothed_loss(torch.empty(0, 6), torch.empty(0).long(), 0.1, PADDING)[0].item() == 0


def test_logits_far_apart_stay_finite():
    logits = torch.tensor([[1e4, 0.0, -1e4], [-1e4, -1e4, 3.0]], requires_grad=True)
    loss, likelihood = smoothed_loss(logits, torch.tensor([2, 0]), 0.1, PADDING)
    assert math.isclose(likelihood.item(), 3e4 + 3, rel_tol=1e-5)
    assert torch.isfinite(torch.autograd.grad(loss, logits)[0]).all()


def of_features(kind=torch.float64):
    torch.manual_seed(1)
    features, weight = torch.randn(23, 5, dtype=kind), torch.randn(17, 5, dtype=kind)
    target = torch.randint(17, (23,))
    target[[0, 5, 22]] = PADDING
    return [features.requires_grad_(), weight.requires_grad_()], target


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("tile", [1, 100, module.TILE])
def test_of_features_they_are_those_of_the_formula_too(smoothing, tile, monkeypatch):
    monkeypatch.setattr(module, "TILE", tile)
    given, target = of_features()
    logits = given[0] @ given[1].t()
    loss, likelihood, hits = projected_loss(*given, target, smoothing, PADDING)
    wanted, wanted_likelihood = by_hand(logits, target, smoothing)
    torch.testing.assert_close(loss, wanted)
    torch.testing.assert_close(likelihood, wanted_likelihood.detach())
    right = [
        word != PADDING and row.index(max(row)) == word
        for row, word in zip(logits.tolist(), target.tolist(), strict=True)
    ]
    assert int(hits) == sum(right)
    for factor in (1.0, -2.5):
        found = torch.autograd.grad(loss * factor, given, retain_graph=True)
        for one, other in zip(
            found, torch.autograd.grad(wanted * factor, given, retain_graph=True), strict=True
        ):
            torch.testing.assert_close(one, other)
    with torch.no_grad():
        found = projected_loss(*given, target, smoothing, PADDING)
    torch.testing.assert_close(found[0], loss.detach())


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16, torch.float16])
def test_under_autocast_and_in_half_precision_products_are_rounded_and_sums_are_not(kind):
    given, target = of_features(torch.float32)
    half = torch.bfloat16 if kind == torch.float32 else kind
    rounded = [one.detach().to(half).double().requires_grad_() for one in given]
    wanted, _ = by_hand(rounded[0] @ rounded[1].t(), target, 0.1)
    asked = [one.detach().to(kind).requires_grad_() for one in given]
    with torch.autocast("cpu", torch.bfloat16, enabled=kind == torch.float32):
        loss, _, _ = projected_loss(*asked, target, 0.1, PADDING)
    exact, _ = by_hand(given[0] @ given[1].t(), target, 0.1)
    assert loss.dtype == torch.float32
    # Products are rounded to eight bits, one by one; the sum over tokens evens it out.
    torch.testing.assert_close(loss.double(), wanted.detach(), rtol=2e-3, atol=0)
    assert loss.item() != pytest.approx(exact.item(), rel=1e-7)
    for found, right in zip(
        torch.autograd.grad(loss, asked), torch.autograd.grad(wanted, rounded), strict=True
    ):
        assert found.dtype == kind
        torch.testing.assert_close(found.double(), right, rtol=0.05, atol=0.02)


def test_features_of_padding_alone_have_no_gradient():
    given, target = of_features()
    loss, likelihood, hits = projected_loss(*given, torch.full_like(target, PADDING), 0.1, PADDING)
    assert loss.item() == likelihood.item() == hits.item() == 0
    assert not any(one.any() for one in torch.autograd.grad(loss, given))


def test_what_is_only_logged_holds_no_graph():
    """Logs sum it up over updates: with a graph each update would stay in memory."""
    logits = torch.randn(4, 6, requires_grad=True)
    target = torch.tensor([2, 0, 3, 5])
    loss, likelihood = smoothed_loss(logits, target, 0.1, PADDING)
    assert (loss.requires_grad, likelihood.requires_grad) == (True, False)
    weight = torch.randn(6, 3, requires_grad=True)
    loss, *logged = projected_loss(torch.randn(4, 3, requires_grad=True), weight, target, 0.1, PADDING)  # fmt: skip
    assert loss.requires_grad
    assert not any(number.requires_grad for number in logged)
