import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck

from treesyntax.attention import attend


def inputs(dtype=torch.float64, queries=4, keys=5):
    torch.manual_seed(0)
    shapes = [(2, 3, queries, 6), (2, 3, keys, 6), (2, 3, keys, 6), (2, 3, queries, keys)]
    return tuple(torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes)


def plain(q, k, v, bias, kept=None):
    weights = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + bias, -1)
    return (weights if kept is None else weights * kept) @ v


def test_a_learned_bias_gives_the_formula_and_its_gradients():
    tensors = inputs()
    assert torch.allclose(attend(*tensors), plain(*tensors))
    assert gradcheck(attend, tensors)


def test_gradients_with_dropout_are_those_of_the_weights_that_were_kept():
    q, k, v, bias = inputs()

    def dropped():
        torch.manual_seed(7)
        return attend(q, k, v, bias, 0.4)

    torch.manual_seed(7)
    _, kept = torch.native_dropout(torch.ones(6, 4, 5, dtype=torch.float64), 0.4, True)
    expected = plain(q, k, v, bias, kept.view(2, 3, 4, 5) / 0.6)
    assert torch.allclose(dropped(), expected)
    assert not torch.allclose(dropped(), plain(q, k, v, bias))
    grads = torch.randn_like(expected)
    mine = torch.autograd.grad(dropped(), (q, k, v, bias), grads)
    theirs = torch.autograd.grad(expected, (q, k, v, bias), grads)
    for ours, reference in zip(mine, theirs, strict=True):
        assert torch.allclose(ours, reference)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_training_and_evaluation_agree_in_every_precision(dtype):
    q, k, v, bias = inputs(dtype)
    trained = attend(q, k, v, bias)
    with torch.no_grad():
        evaluated = attend(q, k, v, bias)
    tolerance = {torch.float32: 1e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}[dtype]
    assert trained.dtype == dtype
    assert torch.allclose(trained, evaluated, atol=tolerance)


def test_without_a_learned_bias_it_is_pytorchs_kernel():
    q, k, v, _ = inputs()
    keep = torch.rand(2, 1, 1, 5) > 0.3
    keep[..., 0] = True
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
    assert torch.equal(attend(q, k, v, keep), expected)
    assert torch.equal(attend(q, k, v, None), F.scaled_dot_product_attention(q, k, v))
