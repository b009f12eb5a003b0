import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck, gradgradcheck

from treesyntax.nn.attention import attend
from treesyntax.nn.pair_bias import PairBias, lookup
from treesyntax.nn.pair_vectors import PairVectors, merged
from treesyntax.nn.pairs import Pairs, attend_literally

CODES = torch.randint(0, 3, (2, 4, 5), generator=torch.Generator().manual_seed(4))


def inputs(dtype=torch.float64):
    """q, k, v and a bias table, a key and a value table of three codes."""
    torch.manual_seed(0)
    shapes = [(2, 3, 4, 6), (2, 3, 5, 6), (2, 3, 5, 6), (3, 3), (3, 6), (3, 6)]
    return tuple(torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes)


SCALE = torch.rand(2, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(4))


def ours(q, k, v, table, keys, values, dropout=0.0, keep=None):
    pairs = Pairs([PairBias(CODES, table)], [PairVectors(CODES, keys, values)], [SCALE])
    return attend(q, k, v, keep, pairs, dropout)


def literal(q, k, v, table, keys, values, kept=None, keep=None):
    """The formulas with a vector for every pair."""
    logits = torch.einsum("bhqd,bhqkd->bhqk", q, k.unsqueeze(2) + keys[CODES].unsqueeze(1))
    logits = logits * SCALE.unsqueeze(1) / q.shape[-1] ** 0.5 + lookup(table, CODES)
    if keep is not None:
        logits = logits.masked_fill(~keep, float("-inf"))
    weights = torch.softmax(logits, -1)
    weights = weights if kept is None else weights * kept
    return torch.einsum("bhqk,bhqkd->bhqd", weights, v.unsqueeze(2) + values[CODES].unsqueeze(1))


def test_biases_and_vectors_give_the_formula_and_its_gradients():
    tensors = inputs()
    assert torch.allclose(ours(*tensors), literal(*tensors))
    assert gradcheck(ours, tensors)


def test_gradients_can_be_differentiated_again_with_dropout_too():
    q, k, v, *tables = (x.detach()[..., :2].requires_grad_() for x in inputs())
    tables[0] = torch.randn(3, 3, dtype=torch.float64, requires_grad=True)

    def dropped(*tensors):
        torch.manual_seed(7)
        return ours(*tensors, dropout=0.3)

    assert gradgradcheck(dropped, (q, k, v, *tables))


def test_weights_made_again_give_the_gradients_of_those_that_were_kept(monkeypatch):
    tensors = inputs()

    def gradients():
        torch.manual_seed(7)
        return torch.autograd.grad(ours(*tensors, dropout=0.3).sin().sum(), tensors)

    kept = gradients()
    monkeypatch.setattr("treesyntax.nn.cpu_kernel.KEPT_WEIGHTS", 0)
    assert all(torch.equal(mine, other) for mine, other in zip(gradients(), kept, strict=True))


@pytest.mark.parametrize("sides", [(True, True), (True, False), (False, True)])
def test_two_sets_of_vectors_are_one_set_of_their_sums(sides):
    """Merged or not, whatever sides they have; Omote et al. 2019 call it dep+rel."""
    q, k, v, _, keys, values = inputs()
    other = torch.randint(0, 2, (1, 4, 5), generator=torch.Generator().manual_seed(9))
    first = PairVectors(CODES, keys, values if sides[0] else None)
    second = PairVectors(other, keys[:2] if sides[1] else None, values[1:])
    together = merged([first, second], most=6)
    assert len(together) == 1
    assert len(merged([first, second], most=5)) == 2
    apart = attend_literally(q, k, v, None, Pairs(vectors=[first, second]), None)
    assert torch.allclose(attend_literally(q, k, v, None, Pairs(vectors=together), None), apart)


@pytest.mark.parametrize("cached", [1, 20, 40, 60, 1000])
@pytest.mark.parametrize("with_bias", [True, False])
def test_chunks_change_nothing(monkeypatch, cached, with_bias):
    q, k, v, table, keys, values = inputs()
    biases = [PairBias(CODES, table)] if with_bias else []
    per_head = keys.repeat(3, 1, 1) * torch.tensor([1.0, 2.0, 3.0]).view(3, 1, 1)
    pairs = Pairs(biases, [PairVectors(CODES, per_head, values)])
    keep = torch.rand(2, 1, 1, 5) > 0.3
    keep[..., 0] = True
    monkeypatch.setattr("treesyntax.nn.cpu_kernel.CACHED_WEIGHTS", 1 << 21)
    whole = attend(q, k, v, keep, pairs)
    monkeypatch.setattr("treesyntax.nn.cpu_kernel.CACHED_WEIGHTS", cached)
    assert torch.allclose(attend(q, k, v, keep, pairs), whole)


def test_padding_is_kept_out():
    tensors = inputs()
    keep = torch.tensor([True, True, False, True, False]).expand(2, 1, 1, 5)
    assert torch.allclose(ours(*tensors, keep=keep), literal(*tensors, keep=keep))


def test_gradients_with_dropout_are_those_of_the_weights_that_were_kept():
    tensors = inputs()

    def dropped():
        torch.manual_seed(7)
        return ours(*tensors, dropout=0.4)

    torch.manual_seed(7)
    _, kept = torch.native_dropout(torch.ones(2, 3, 4, 5, dtype=torch.float64), 0.4, True)
    expected = literal(*tensors, kept / 0.6)
    assert torch.allclose(dropped(), expected)
    assert not torch.allclose(dropped(), literal(*tensors))
    grads = torch.randn_like(expected)
    mine = torch.autograd.grad(dropped(), tensors, grads)
    theirs = torch.autograd.grad(expected, tensors, grads)
    for found, reference in zip(mine, theirs, strict=True):
        assert torch.allclose(found, reference)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_training_and_evaluation_agree_in_every_precision(dtype):
    q, k, v, table, *_ = inputs(dtype)
    pairs = Pairs([PairBias(CODES, table)])
    trained = attend(q, k, v, None, pairs)
    with torch.no_grad():
        evaluated = attend(q, k, v, None, pairs)
    tolerance = {torch.float32: 1e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}[dtype]
    assert trained.dtype == dtype
    assert torch.allclose(trained, evaluated, atol=tolerance)


def test_without_methods_it_is_pytorchs_kernel():
    q, k, v, *_ = inputs()
    keep = torch.rand(2, 1, 1, 5) > 0.3
    keep[..., 0] = True
    expected = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
    assert torch.equal(attend(q, k, v, keep), expected)
    assert torch.equal(attend(q, k, v, None), F.scaled_dot_product_attention(q, k, v))
