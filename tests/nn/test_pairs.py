import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from treesyntax.nn.attention import attend
from treesyntax.nn.pair_bias import PairBias, lookup, total_bias
from treesyntax.nn.pairs import Pairs


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


def test_the_gradient_is_the_sum_over_the_pairs_of_each_code():
    table = torch.randn(2, 4, requires_grad=True)
    codes, weights = random_codes((2, 5, 5), 4), torch.randn(2, 2, 5, 5)
    (lookup(table, codes) * weights).sum().backward()
    for head in range(2):
        for code in range(4):
            expected = weights[:, head][codes == code].sum()
            assert torch.allclose(table.grad[head, code], expected, atol=1e-5)


def test_no_bias_leaves_the_keep_mask_alone():
    keep = torch.tensor([[[[True, False]]]])
    assert total_bias([], keep, torch.float32) is keep
    assert total_bias([], None, torch.float32) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_biases_add_up_and_padding_gets_no_weight(dtype):
    tables, codes = [torch.randn(2, 3), torch.randn(2, 4)], random_codes((1, 2, 2), 3)
    keep = torch.tensor([[[[True, False]]]])
    total = total_bias([PairBias(codes, table) for table in tables], keep, dtype)
    assert total.dtype == dtype
    expected = sum(lookup(table.to(dtype), codes) for table in tables)
    assert torch.equal(total[..., 0], expected[..., 0])
    assert torch.softmax(total - 100, -1)[..., 1].eq(0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("learned", [True, False])
def test_a_row_of_padding_alone_stays_finite(dtype, learned):
    table = torch.randn(1, 3, requires_grad=learned)
    keep = torch.zeros(1, 1, 1, 2, dtype=torch.bool)
    q, k, v = torch.full((3, 1, 1, 2, 4), -9.0, dtype=dtype)
    v.requires_grad_()
    pairs = Pairs([PairBias(random_codes((1, 2, 2), 3), table)])
    output = attend(q, k, v, keep, pairs)
    output.sum().backward()
    assert output.isfinite().all()
    assert v.grad.isfinite().all()
    assert not learned or table.grad.isfinite().all()
