"""Numbers that processors compute with slowly."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from treesyntax.methods.encodings.stack_pe import StackEncoding
from treesyntax.nn.injection import Site
from treesyntax.nn.kernels.subnormal import without_subnormal, without_subnormal_squares

LEAST = {torch.float32: 1.2e-38, torch.float64: 2.3e-308}
"""The least normal numbers."""


@pytest.mark.parametrize("dtype", LEAST)
def test_only_numbers_from_which_products_are_subnormal_are_zero(dtype: torch.dtype):
    small = LEAST[dtype] * 1e9
    x = torch.tensor([1.0, -small, small / 100, -small / 1e10, 0.0], dtype=dtype)
    assert without_subnormal(x).tolist() == [*x[:2].tolist(), 0, 0, 0]


@pytest.mark.parametrize("dtype", LEAST)
def test_a_gradient_has_no_number_whose_square_is_subnormal(dtype: torch.dtype):
    small = LEAST[dtype] ** 0.5 * 2e3
    given = torch.tensor([1.0, -small, small / 3, -small / 1e9], dtype=dtype)
    x = torch.ones(4, dtype=dtype, requires_grad=True)
    same = without_subnormal_squares(x)
    assert torch.equal(same, x)
    (gradient,) = torch.autograd.grad(same, x, given)
    assert gradient.tolist() == [*given[:2].tolist(), 0, 0]


def subnormal(x: Tensor) -> int:
    """How many of the numbers are."""
    return int(((x != 0) & (x.abs() < LEAST[torch.float32])).sum())


def test_adam_keeps_no_subnormal_number_of_a_stack_of_steps():
    """Powers of 0.3 and less over 32 steps reach 1e-38 and beyond, and their gradients' squares 1e-45."""
    torch.manual_seed(0)
    method = StackEncoding(Site(d_model=16, heads=2, layers=1))
    method.raw.data.uniform_(-0.3, 0.3)
    adam = torch.optim.Adam(method.parameters())
    (method.table() * torch.randn(64, 16) * 1e-4).sum().backward()
    weight = method.projection.weight
    assert (weight.grad == 0).any()
    assert (weight.grad != 0).any()
    adam.step()
    assert subnormal(method.weights()) == 0
    assert [subnormal(x) for x in adam.state[weight].values() if x.dim()] == [0, 0]
