"""Second derivatives of attention with methods: right, or refused, but never without some of their terms."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from treesyntax.errors import OptionError
from treesyntax.nn.attention import attend
from treesyntax.nn.pairs import PairTerm

IDS = torch.tensor([[0, 1, 2], [1, 0, 2], [2, 1, 0]]).expand(2, -1, -1)
MASK = torch.tensor([[True, True, True], [True, True, False]])[:, None, None]


@pytest.fixture(params=["one table", "several tables"])
def several(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether there are two tables, as the kernel for large inputs reads them."""
    monkeypatch.setattr("treesyntax.nn.kernels.tables.MANY", 1)
    return request.param == "several tables"


def inputs(several: bool) -> list[Tensor]:
    torch.manual_seed(0)
    tables = [(2, 3), (3, 4)] if several else [(2, 3)]
    shapes = [*[(2, 2, 3, 4)] * 3, *tables]
    return [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]


def attended(q: Tensor, k: Tensor, v: Tensor, bias: Tensor, keys: Tensor | None = None) -> Tensor:
    return attend(q, k, v, MASK, [PairTerm(IDS, bias=bias, keys=keys)])


def test_a_second_derivative_is_refused_where_it_would_lack_terms(several: bool):
    given = inputs(several)
    loss = attended(*given).pow(3).sum()
    with pytest.raises(OptionError, match=r"within torch.nn.attention.sdpa_kernel"):
        torch.autograd.grad(loss, given, create_graph=True)
    loss = attended(*given).pow(3).sum()
    assert all(gradient.isfinite().all() for gradient in torch.autograd.grad(loss, given))


def test_a_second_derivative_is_that_of_finite_differences(several: bool):
    with sdpa_kernel(SDPBackend.MATH):
        assert torch.autograd.gradgradcheck(attended, inputs(several))


def test_with_and_without_second_derivatives_the_output_is_the_same(several: bool):
    given = inputs(several)
    with sdpa_kernel(SDPBackend.MATH):
        expected = attended(*given)
    assert torch.allclose(attended(*given), expected, atol=1e-12)
