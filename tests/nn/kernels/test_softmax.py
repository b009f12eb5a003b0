"""The softmax of short rows is PyTorch's."""

import pytest
import torch

from treesyntax.nn.kernels.lookup import padding_bias
from treesyntax.nn.kernels.softmax import LANES, softmax


@pytest.mark.parametrize("size", [1, 2, LANES - 1, LANES, LANES + 1, 40])
@pytest.mark.parametrize("hidden", ["none", "some", "a whole row"])
def test_values_and_gradients_are_pytorchs(size, hidden):
    torch.manual_seed(size)
    logits = torch.randn(3, 2, size) * 5
    if hidden != "none":
        logits[0, 1, size // 2 if hidden == "some" else 0 :] = padding_bias(torch.float32)
    logits.requires_grad_()
    found, wanted = softmax(logits), torch.softmax(logits, -1)
    assert found.shape == wanted.shape
    torch.testing.assert_close(found, wanted)
    weight = torch.randn(logits.shape)
    torch.testing.assert_close(
        *(torch.autograd.grad((one * weight).sum(), logits)[0] for one in (found, wanted))
    )
