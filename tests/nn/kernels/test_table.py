"""The kernel for one learned bias against its formula."""

import math

import pytest
import torch
from torch import Tensor

from treesyntax.nn.kernels import table as kernel
from treesyntax.nn.kernels.lookup import padding_bias
from treesyntax.nn.kernels.table import attend_with_table

HIDDEN = padding_bias(torch.float64)


def by_formula(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    ids: Tensor,
    table: Tensor,
    own: Tensor | None = None,
) -> Tensor:
    logits = torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[3] ** 0.5
    logits = logits + table[:, ids.long()].transpose(0, 1) + (0 if own is None else own)
    allowed = torch.ones_like(logits) if mask is None else mask.expand_as(logits)
    # Where nothing is allowed it is the mean of all, for want of anything else.
    nothing = ~allowed.any(-1, keepdim=True)
    weights = torch.where(nothing, 1, logits.exp() * allowed)
    return torch.einsum("bhij,bhjd->bhid", weights / weights.sum(-1, keepdim=True), v)


def inputs(batch: int, queries: int, keys: int, size: int) -> list[Tensor]:
    torch.manual_seed(batch * 100 + keys)
    # As heads are split: not contiguous.
    q, k, v = (
        torch.randn(batch, n, 2, 3, dtype=torch.float64).transpose(1, 2)
        for n in (queries, keys, keys)
    )
    table = torch.randn(2, size, dtype=torch.float64)
    return [one.requires_grad_() for one in (q, k, v, table)]


@pytest.fixture(params=[False, True], ids=["at once", "tiles"])
def tiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch):
    """Whether sentences go by tiles of two queries and less."""
    if request.param:
        for size in ("WHOLE_BATCH", "TILE", "NARROW"):
            monkeypatch.setattr(kernel, size, 20)
        monkeypatch.setattr(kernel, "LEAST_QUERIES", 2)
    return request.param


@pytest.mark.parametrize("size", [0, 1, 5, 40])
@pytest.mark.parametrize("masked", ["", "keys", "window", "a row of nothing"])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("own", ["", "one for all", "each its own", "fixed"])
@pytest.mark.parametrize("keys", [7, 8], ids=["one by one", "two by two"])
def test_values_and_gradients_are_those_of_the_formula(
    tiled: bool,
    size: int,
    masked: str,
    shared: bool,
    own: str,
    keys: int,
    monkeypatch: pytest.MonkeyPatch,
):
    """Size 0 stands for no table at all. An even number of keys is looked up two by two."""
    monkeypatch.setattr(kernel, "WEIGHTS_A_SUM", 0.01)
    given = inputs(3, 6, keys, max(size, 1))
    ids = torch.randint(max(size, 1), (1 if shared else 3, 6, keys)).to(torch.uint8)
    mask = None
    if masked:
        mask = torch.ones(3, 1, 1 if masked == "keys" else 6, keys, dtype=torch.bool)
        mask[1, ..., 4:] = False
    if masked == "window":
        mask = mask & torch.ones(6, keys, dtype=torch.bool).tril(2).triu(-2)
    if masked == "a row of nothing":
        mask[2, :, 3] = False
    weight = torch.randn(3, 2, 6, 3, dtype=torch.float64)
    q, k, v, table = given
    logits = None
    if own:
        logits = torch.randn(1 if own == "one for all" else 3, 2, 6, keys, dtype=torch.float64)
    if logits is not None and own != "fixed":
        given.append(logits.requires_grad_())
    if not size:
        table = given.pop(3).detach().zero_()
    by_id = (ids, table) if size else (None, None)
    whole = None if mask is None else mask.expand(3, 1, 6, keys)
    parts = kernel.tiles(given[0], given[1], whole, None)
    assert sum(len(tiles) for _, tiles in parts) == (9 if tiled else 1)
    found = attend_with_table(q, k, v, mask, *by_id, HIDDEN, model_logits=logits)
    wanted = by_formula(q, k, v, mask, ids, table, logits)
    torch.testing.assert_close(found, wanted)
    for one, other in zip(
        torch.autograd.grad((found * weight).sum(), given),
        torch.autograd.grad((wanted * weight).sum(), given),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_heads_that_share_keys_are_those_with_copies_of_them(tiled: bool):
    q, k, v, table = inputs(3, 6, 8, 5)
    k, v = (x[:, :1].detach().requires_grad_() for x in (k, v))
    ids = torch.randint(5, (3, 6, 8), dtype=torch.uint8)
    mask = torch.ones(6, 8, dtype=torch.bool).tril(2)[None, None]
    weight = torch.randn(3, 2, 6, 3, dtype=torch.float64)
    outputs = [
        attend_with_table(q, *keys, mask, ids, table, HIDDEN)
        for keys in ((k, v), (k.expand(-1, 2, -1, -1), v.expand(-1, 2, -1, -1)))
    ]
    torch.testing.assert_close(*outputs)
    gradients = [torch.autograd.grad((x * weight).sum(), (q, k, v, table)) for x in outputs]
    torch.testing.assert_close(*gradients)


def test_layers_share_a_plan_until_ids_or_mask_change_in_place():
    q, k, v, table = inputs(1, 4, 6, 3)
    ids, mask = torch.randint(3, (1, 4, 6)), torch.ones(1, 1, 4, 6, dtype=torch.bool)
    for change in (lambda: None, lambda: ids.fill_(1), lambda: mask[..., 2:].fill_(False)):
        change()
        found = attend_with_table(q, k, v, mask, ids, table, HIDDEN)
        torch.testing.assert_close(found, by_formula(q, k, v, mask, ids, table))


def test_a_tile_leaves_out_keys_that_none_of_its_queries_may_see():
    q = torch.zeros(2, 4, 512, 64)
    causal = torch.ones(512, 512, dtype=torch.bool).tril().expand(2, 1, -1, -1)
    height = kernel.NARROW // (4 * 512)
    firsts = range(0, 512, height)
    bands = [slice(first, first + height) for first in firsts]
    rows = [slice(0, 1), slice(1, 2)]
    expected = [(band, slice(0, band.stop)) for band in bands]
    assert kernel.tiles(q, q, causal, None) == [(row, expected) for row in rows]
    window = causal & torch.ones(512, 512, dtype=torch.bool).triu(-100)
    expected = [(band, slice(max(band.start - 100, 0), band.stop)) for band in bands]
    assert kernel.tiles(q, q, window, None) == [(row, expected) for row in rows]
    empty = causal.clone()
    empty[1, 0, 3] = False  # such a query sees all keys
    everything = [(slice(0, 512), slice(0, 512))]  # in one tile, as it would leave out nothing
    assert kernel.tiles(q, q, empty, ~empty.any(-1)) == [(row, everything) for row in rows]
    assert kernel.tiles(q, q, None, None) == [(row, everything) for row in rows]
    padding = torch.ones(2, 1, 512, 512, dtype=torch.bool)
    padding[1, ..., 301:] = False
    ends = [everything, [(slice(0, 512), slice(0, 302))]]
    assert kernel.tiles(q, q, padding, None) == [*zip(rows, ends, strict=True)]


@pytest.mark.parametrize("keeps", [True, False])
def test_long_sentences_keep_weights_once_or_not_and_are_exact(
    keeps: bool, monkeypatch: pytest.MonkeyPatch
):
    """Autograd would keep five tensors of that size. Of very long ones not even one is kept."""
    monkeypatch.setattr(kernel, "KEPT", 2 * 512 * 512 - (not keeps))
    kept: list[int] = []
    q, k, v = (torch.randn(1, 2, 512, 8, dtype=torch.float64, requires_grad=True) for _ in "qkv")
    ids = torch.randint(5, (1, 512, 512), dtype=torch.uint8)
    table = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)

    def pack(x: Tensor) -> Tensor:
        if x.is_floating_point() or x.is_complex():
            kept.append(x.numel())
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        found = attend_with_table(q, k, v, None, ids, table, HIDDEN)
    others = 3 * q.numel() + 2 * 4 * 6**2  # pairs of ids, hidden keys among them, in four slots
    assert sum(kept) == 2 * ids.numel() * keeps + others
    logits = q @ k.transpose(2, 3) / 8**0.5 + table[:, ids[0].long()]
    expected = logits.softmax(3) @ v
    weight = torch.randn_like(found)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    for one, other in zip(
        torch.autograd.grad((found * weight).sum(), (q, k, v, table)),
        torch.autograd.grad((expected * weight).sum(), (q, k, v, table)),
        strict=True,
    ):
        torch.testing.assert_close(one, other, atol=1e-11, rtol=0)


def test_the_gradient_is_that_of_small_steps(tiled: bool):
    q, k, v, table = inputs(2, 4, 5, 3)
    ids = torch.randint(3, (2, 4, 5))
    mask = torch.ones(2, 1, 4, 5, dtype=torch.bool).tril()
    torch.autograd.gradcheck(
        lambda *args: attend_with_table(*args[:3], mask, ids, args[3], HIDDEN), (q, k, v, table)
    )


def test_a_bias_far_below_the_others_hides_a_pair():
    q, k, v, _ = inputs(1, 1, 2, 1)
    table = torch.tensor([[0.0, -1e6]] * 2, dtype=torch.float64, requires_grad=True)
    found = attend_with_table(q, k, v, None, torch.tensor([[[0, 1]]]), table, HIDDEN)
    torch.testing.assert_close(found, v[:, :, :1])
    found.sum().backward()
    assert table.grad is not None
    assert all(math.isfinite(one) for one in table.grad.flatten().tolist())


def test_dropped_weights_pass_nothing_on(tiled: bool):
    """With values that are unit vectors the output is the weights, dropped or scaled up."""
    q, k, _, table = inputs(2, 4, 5, 3)
    ids, v = torch.randint(3, (2, 4, 5)), torch.eye(5, dtype=torch.float64).expand(2, 2, 5, 5)
    whole = attend_with_table(q, k, v, None, ids, table, HIDDEN)
    torch.manual_seed(1)
    found = attend_with_table(q, k, v, None, ids, table, HIDDEN, dropout=0.4)
    factor = (found != 0) / 0.6
    assert 0 < (factor == 0).sum() < factor.numel()
    torch.testing.assert_close(found, whole * factor)
    weight = torch.randn(found.shape, dtype=torch.float64)
    for one, other in zip(
        torch.autograd.grad((found * weight).sum(), (q, k, table)),
        torch.autograd.grad((whole * factor * weight).sum(), (q, k, table)),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_no_sentences_of_any_length_have_gradients():
    q = torch.zeros(0, 2, 512, 8, dtype=torch.float64, requires_grad=True)
    table = torch.zeros(2, 5, dtype=torch.float64, requires_grad=True)
    ids = torch.zeros(0, 512, 512, dtype=torch.uint8)
    attend_with_table(q, q, q, None, ids, table, HIDDEN).sum().backward()
    assert table.grad is not None
    assert not table.grad.any()


def test_nothing_is_remembered_of_tensors_for_inference():
    """Changes in place of theirs cannot be seen, so work on ids and masks is done anew."""
    with torch.inference_mode():
        q, ids = torch.randn(1, 2, 4, 4), torch.randint(0, 3, (1, 4, 4))
        table = torch.randn(2, 3)
        attend_with_table(q, q, q, None, ids, table, padding_bias(q.dtype))
        ids.copy_((ids + 1) % 3)
        after = attend_with_table(q, q, q, None, ids, table, padding_bias(q.dtype))
        expected = attend_with_table(q, q, q, None, ids.clone(), table, padding_bias(q.dtype))
    torch.testing.assert_close(after, expected, rtol=0, atol=0)
