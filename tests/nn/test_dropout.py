"""Dropout on a CPU against what it promises: shares, scale, independence, seeds."""

import pytest
import torch

from treesyntax.nn.dropout import STEPS, Dropout, drop


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.3, 0.5, 0.9])
def test_a_share_of_the_values_is_dropped_and_the_others_are_scaled(rate):
    torch.manual_seed(1)
    count = 400_003  # no multiple of the values that share a random number
    found = drop(torch.ones(count, dtype=torch.float64), rate)
    kept = found != 0
    torch.testing.assert_close(found[kept], torch.full((int(kept.sum()),), 1 / (1 - rate)).double())
    deviation = (rate * (1 - rate) / count) ** 0.5
    assert abs((~kept).double().mean().item() - rate) < 4.5 * deviation + 1 / STEPS


def test_neighbours_and_whole_tensors_are_dropped_independently():
    torch.manual_seed(1)
    one, other = ((drop(torch.ones(500, 400), 0.3) == 0).double() for _ in range(2))
    for a, b in (
        (one[:, :-1], one[:, 1:]),
        (one[:, :-2], one[:, 2:]),
        (one[:, :-3], one[:, 3:]),
        (one[:-1], one[1:]),
        (one, other),
    ):
        assert abs((a * b).mean().item() - 0.09) < 0.004


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_gradient_is_that_of_the_kept_values(dtype):
    x = torch.randn(3, 5, 7).to(dtype).requires_grad_()
    found = drop(x, 0.4)
    assert found.dtype == dtype
    weight = torch.randn(3, 5, 7).to(dtype)
    (gradient,) = torch.autograd.grad((found * weight).sum(), x)
    torch.testing.assert_close(gradient, weight * (found != 0) / 0.6)


def test_a_seed_gives_the_same_values():
    x = torch.randn(50, 30)
    torch.manual_seed(3)
    first = drop(x, 0.2)
    torch.manual_seed(3)
    assert torch.equal(first, drop(x, 0.2))
    assert not torch.equal(first, drop(x, 0.2))


def test_rates_at_the_ends_and_tensors_without_values():
    x = torch.randn(20, 30)
    assert torch.equal(drop(x, 0.0), x)
    assert torch.equal(drop(x, 1.0), torch.zeros(20, 30))
    assert drop(torch.empty(0, 4), 0.3).shape == (0, 4)


def test_a_module_drops_in_training_and_where_it_is_retained():
    module, x = Dropout(0.5), torch.ones(100)
    assert (module(x) == 0).any()
    module.eval()
    assert torch.equal(module(x), x)
    module.retained = True
    assert (module(x) == 0).any()
