import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from treesyntax.attention import PairBias, lookup, total_bias


def random_codes(shape, classes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, classes, shape, generator=generator).to(torch.uint8)


def test_lookup_reads_the_table_entry_of_each_pair():
    table, codes = torch.randn(3, 5), random_codes((2, 4, 6), 5)
    found = lookup(table, codes)
    for batch in range(2):
        for head in range(3):
            for query in range(4):
                for key in range(6):
                    expected = table[head, int(codes[batch, query, key])]
                    assert found[batch, head, query, key] == expected


def test_gradients_of_the_lookup_first_and_second_order():
    table = torch.randn(2, 4, dtype=torch.float64, requires_grad=True)
    codes = random_codes((2, 3, 3), 4)
    assert gradcheck(lambda t: lookup(t, codes).sin(), (table,))
    assert gradgradcheck(lambda t: lookup(t, codes).sin(), (table,))


def test_the_gradient_is_summed_over_more_pairs_than_one_tile(monkeypatch):
    monkeypatch.setattr("treesyntax.attention.PAIRS_PER_TILE", 7)
    table = torch.randn(2, 4, requires_grad=True)
    codes, weights = random_codes((2, 5, 5), 4), torch.randn(2, 2, 5, 5)
    (lookup(table, codes) * weights).sum().backward()
    expected = torch.zeros(2, 4)
    for batch in range(2):
        for head in range(2):
            expected[head].index_add_(
                0, codes[batch].flatten().long(), weights[batch, head].flatten()
            )
    assert torch.allclose(table.grad, expected, atol=1e-5)


def test_no_bias_leaves_the_keep_mask_alone():
    keep = torch.tensor([[[[True, False]]]])
    assert total_bias([], keep, torch.float32) is keep
    assert total_bias([], None, torch.float32) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_biases_add_up_and_padding_is_minus_infinity(dtype):
    tables, codes = [torch.randn(2, 3), torch.randn(2, 4)], random_codes((1, 2, 2), 3)
    keep = torch.tensor([[[[True, False]]]])
    total = total_bias([PairBias(codes, table) for table in tables], keep, dtype)
    assert total.dtype == dtype
    expected = sum(lookup(table, codes) for table in tables).to(dtype)
    assert torch.equal(total[..., 0], expected[..., 0])
    assert total[..., 1].eq(float("-inf")).all()
