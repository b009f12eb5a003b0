"""What methods add to pairs of tokens: tables read by the relation id of a pair.

The literal formulas of Shaw et al. (2018, Eqs. 3-4) hold a vector for every pair, [Q, K, d]. But
there are only R different vectors: q·(k + a) = q·k + q·a, where q·a is one of R numbers a query;
and the values' part is a sum of R vectors, each weighted by the attention that all pairs of its
relation id get together. A bias is one of R numbers a head in the same way (one lookup instead of
the nine dense masks of McDonald & Chiang 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from treesyntax.nn.devices import is_transformed
from treesyntax.nn.dropout import drop
from treesyntax.nn.kernels.derivatives import is_wanted_twice
from treesyntax.nn.kernels.lookup import clamped, padding_bias, read_table, sums_by_id
from treesyntax.nn.kernels.softmax import softmax
from treesyntax.nn.kernels.table import attend_with_table
from treesyntax.nn.kernels.tables import Table, attend_with_tables, pays

RelationOf = Callable[[Tensor, Tensor, Tensor], Tensor]
"""The relation id of one pair from sentence, query position and key position, all scalars."""

STORED_WEIGHTS = 1 << 26
"""Most attention weights of a layer that are stored for the backward pass. Beyond, they are computed
again, for about a third more time; then memory grows with n, not with n squared."""

TILE = 1 << 22
"""Attention weights computed at once where they are not stored."""


@dataclass(frozen=True)
class PairTerm:
    """What one method adds to the pairs of one layer.

    All terms together are ``softmax((q·(k + keys[id])) scale / sqrt(d) + bias[h, id]) (v + values[id])``,
    with sums over terms and products of scales.

    Attributes:
        ids: relation ids, integers [B or 1, Q, K] from 0 to R - 1; or a function of a pair, for
            :mod:`treesyntax.nn.kernels.flex`; None where nothing is read by them.
        bias: float [H, R], added to the logits of each head.
        keys: float [R, d], or [H, R, d] with a table per head, added to the keys.
        values: the same, added to the values.
        scale: float [B or 1, Q, K], a fixed factor of the logits before biases.
        features: float [B or 1, R, Q, K], in place of ids: a pair gets the sum of all rows of the
            tables, each times its number.
        value_map: what makes the values [B, H, K, d] others, before all else.
        logits: float [B or 1, H, Q, K], added as they are: a bias that a model has of its own.
    """

    ids: Tensor | RelationOf | None = None
    bias: Tensor | None = None
    keys: Tensor | None = None
    values: Tensor | None = None
    scale: Tensor | None = None
    features: Tensor | None = None
    value_map: Callable[[Tensor], Tensor] | None = None
    logits: Tensor | None = None

    def of_queries(self, rows: slice) -> PairTerm:
        """The part of some queries."""
        ids, scale = (None if x is None else x[:, rows] for x in (self.stored_ids, self.scale))
        features, logits = (
            None if x is None else x[:, :, rows] for x in (self.features, self.logits)
        )
        return PairTerm(ids, self.bias, self.keys, self.values, scale, features, logits=logits)

    def of_heads(self, count: int) -> PairTerm:
        """The part of the first heads."""
        bias = None if self.bias is None else self.bias[:count]
        keys, values = (
            table if table is None or table.dim() == 2 else table[:count]
            for table in (self.keys, self.values)
        )
        return PairTerm(self.ids, bias, keys, values, self.scale, self.features)

    @property
    def size(self) -> int:
        """Number R of relation ids."""
        tables = (self.keys, self.values, None if self.bias is None else self.bias.unsqueeze(2))
        return next((table.shape[-2] for table in tables if table is not None), 0)

    @property
    def is_bias(self) -> bool:
        """Whether a bias by relation id is all that it adds."""
        return self._has_only("ids", "bias")

    @property
    def is_logits(self) -> bool:
        """Whether logits as they are are all that it adds."""
        return self._has_only("logits")

    def _has_only(self, *names: str) -> bool:
        others = {field.name for field in fields(self)} - {*names}
        return all(getattr(self, name) is None for name in others)

    @property
    def is_table(self) -> bool:
        """Whether all that it adds is read by stored relation ids."""
        only = self._has_only("ids", "bias", "keys", "values")
        return only and self.stored_ids is not None

    @property
    def is_value_map(self) -> bool:
        """Whether a map of values is all that it adds, so nothing to pairs."""
        return self._has_only("value_map")

    @property
    def stored_ids(self) -> Tensor | None:
        """Relation ids as a tensor, None where there are none."""
        return self.ids if isinstance(self.ids, Tensor) else None

    def read(self, by_id: Tensor, shape: torch.Size) -> Tensor:
        """[B, H, Q, R] read at the pairs of a tensor of shape [B, H, Q, K]."""
        if self.features is None:
            return read_table(by_id, self.index(shape))
        return torch.einsum(
            "bhqr,brqk->bhqk", by_id, self.features.to(by_id.dtype).expand(len(by_id), -1, -1, -1)
        )

    def sums(self, weights: Tensor) -> Tensor:
        """[B, H, Q, K] summed to [B, H, Q, R]; the transpose of :meth:`read`."""
        if self.features is None:
            assert self.values is not None
            return sums_by_id(weights, self.index(weights.shape), self.values.shape[-2])
        return torch.einsum(
            "bhqk,brqk->bhqr",
            weights,
            self.features.to(weights.dtype).expand(len(weights), -1, -1, -1),
        )

    def index(self, shape: torch.Size) -> Tensor:
        """Relation ids as an index of a tensor [B, H, Q, …]."""
        assert isinstance(self.ids, Tensor)
        return self.ids.long().unsqueeze(1).expand(*shape[:3], -1)


def merged(terms: Sequence[PairTerm], most: int) -> list[PairTerm]:
    """The same sums with fewer ids to look up: one id for two where no more than ``most`` come of it.

    A pair with the ids a and b gets ``keys[a] + other_keys[b]``, so two terms are one term with a
    row for each (a, b).
    """
    merged_terms: list[PairTerm] = []
    for term in (
        summand for summand in terms if not summand.is_value_map
    ):  # values are mapped before
        last = merged_terms[-1] if merged_terms else term
        extras = [extra for x in (last, term) for extra in (x.scale, x.features, x.logits)]
        apart = last is term or any(extra is not None for extra in extras)
        if apart or last.size * term.size > min(most, torch.iinfo(torch.int16).max):
            merged_terms.append(term)
        else:
            merged_terms[-1] = _product(last, term)
    return merged_terms


def _product(first: PairTerm, second: PairTerm) -> PairTerm:
    assert isinstance(first.ids, Tensor)
    assert isinstance(second.ids, Tensor)
    wide = torch.uint8 if first.size * second.size <= 256 else torch.int16
    ids = first.ids.to(wide) * second.size + second.ids.to(wide)

    def summed(first_table: Tensor | None, second_table: Tensor | None, dim: int) -> Tensor | None:
        if first_table is not None:
            first_table = first_table.repeat_interleave(second.size, dim)
        if second_table is None:
            return first_table
        second_table = torch.cat([second_table] * first.size, dim)
        return second_table if first_table is None else first_table + second_table

    keys, values = summed(first.keys, second.keys, -2), summed(first.values, second.values, -2)
    return PairTerm(ids, summed(first.bias, second.bias, -1), keys, values)


def of_all_heads(x: Tensor, heads: int) -> Tensor:
    """Keys or values [B, H, K, d] of which each may serve several neighbouring heads of queries."""
    return x if x.shape[1] == heads else x.repeat_interleave(heads // x.shape[1], 1)


def total_bias(terms: Sequence[PairTerm], like: Tensor) -> Tensor | None:
    """The sum of all biases, [B or 1, H, Q, K] for queries [B, H, Q, d], or None."""
    total = None
    for term in terms:
        bias = None if term.logits is None else term.logits.to(like.dtype)
        if term.bias is None:
            pass
        elif term.features is not None:
            table, features = clamped(term.bias, like.dtype), term.features.to(like.dtype)
            bias = torch.einsum("hr,brqk->bhqk", table, features)
        elif term.stored_ids is not None:
            shape = torch.Size((len(term.stored_ids), *like.shape[1:3], term.bias.shape[1]))
            by_id = clamped(term.bias, like.dtype)[None, :, None].expand(shape)
            bias = read_table(by_id, term.index(shape))
        if bias is not None:
            total = bias if total is None else total + bias
    return total


def pair_weights(
    q: Tensor,
    k: Tensor,
    mask: Tensor | None,
    terms: Sequence[PairTerm],
    unmapped: Tensor | None = None,
) -> Tensor:
    """Attention weights [B, H, Q, K], the softmax of :func:`pair_logits`."""
    return softmax(pair_logits(q, k, mask, terms, unmapped))


def pair_logits(
    q: Tensor,
    k: Tensor,
    mask: Tensor | None,
    terms: Sequence[PairTerm],
    unmapped: Tensor | None = None,
) -> Tensor:
    """Logits [B, H, Q, K] by the formula of :class:`PairTerm`.

    Shapes and arguments as in :func:`treesyntax.nn.attention.attend`.
    """
    add, multiply, hide = Tensor.add_, Tensor.mul_, Tensor.masked_fill_
    if is_transformed():  # vmap over trees alone cannot write into logits that have no tree yet
        add, multiply, hide = Tensor.add, Tensor.mul, Tensor.masked_fill
    scale = q.shape[-1] ** -0.5
    q, unmapped = q * scale, None if unmapped is None else unmapped * scale
    logits = q @ k.transpose(2, 3)
    for term in terms:
        if term.keys is not None:
            asking = q if unmapped is None else unmapped
            by_id = asking @ term.keys.to(q.dtype).transpose(-1, -2)
            logits = add(logits, term.read(by_id, logits.shape))
    for term in terms:
        if term.scale is not None:
            logits = multiply(logits, term.scale.to(q.dtype).unsqueeze(1))
    bias = total_bias(terms, q)
    if bias is not None:
        logits = add(logits, bias)
    if mask is not None:
        logits = hide(logits, ~mask, padding_bias(q.dtype))
    return logits


def attend_to_pairs(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    terms: Sequence[PairTerm],
    dropout: float,
    unmapped: Tensor | None = None,
) -> Tensor:
    """Attention with what methods add, by the formula of :class:`PairTerm`.

    Shapes and arguments as in :func:`treesyntax.nn.attention.attend`.
    """
    terms = merged(terms, most=k.shape[2])
    by_query = len(q) * q.shape[1] * k.shape[2]
    # What is computed again keeps hooks, which torch.func does not know.
    if by_query * q.shape[2] <= STORED_WEIGHTS or is_transformed():
        return _attend(q, k, v, mask, terms, dropout, unmapped)

    def some(rows: slice) -> Tensor:
        mask_rows = mask if mask is None or mask.shape[2] == 1 else mask[:, :, rows]
        row_terms = [term.of_queries(rows) for term in terms]
        plain = None if unmapped is None else unmapped[:, :, rows]
        arguments = (q[:, :, rows], k, v, mask_rows, row_terms, dropout, plain)
        return checkpoint(_attend, *arguments, use_reentrant=False)

    step = max(TILE // by_query, 1)
    return torch.cat([some(slice(row, row + step)) for row in range(0, q.shape[2], step)], 2)


def _one_table(
    terms: Sequence[PairTerm],
) -> tuple[Tensor | None, Tensor | None, Tensor | None] | None:
    """Relation ids, their biases and a model's own logits, if they are all that is added."""
    biases = [term for term in terms if not term.is_logits]
    logits = [term.logits for term in terms if term.logits is not None]
    if len(biases) > 1 or len(logits) > 1:
        return None
    model_logits = logits[0] if logits else None
    if not biases:
        return None, None, model_logits
    ids, bias = biases[0].stored_ids, biases[0].bias
    return (ids, bias, model_logits) if biases[0].is_bias and ids is not None else None


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    terms: Sequence[PairTerm],
    dropout: float,
    unmapped: Tensor | None,
) -> Tensor:
    table = None if mask is not None and mask.shape[1] > 1 else _one_table(terms)
    fits = q.device.type == "cpu" and q.dtype in (torch.float32, torch.float64)
    once = not is_wanted_twice()
    if (
        table and fits and once and not torch.compiler.is_exporting()
    ):  # its gradient is not in an exported graph
        ids, bias, model_logits = table
        bias = bias if bias is None else clamped(bias, q.dtype)
        model_logits = model_logits if model_logits is None else model_logits.to(q.dtype)
        hidden = padding_bias(q.dtype)
        return attend_with_table(q, k, v, mask, ids, bias, hidden, dropout, model_logits)
    k, v = of_all_heads(k, q.shape[1]), of_all_heads(v, q.shape[1])
    if once and pays(q, k) and all(term.is_table for term in terms):
        return _attend_by_tables(q, k, v, mask, terms, dropout, unmapped)
    weights = pair_weights(q, k, mask, terms, unmapped)
    if dropout:
        weights = drop(weights, dropout)
    output = weights @ v
    for term in terms:
        if term.values is not None:
            output = output + term.sums(weights) @ term.values.to(weights.dtype)
    return output


def _attend_by_tables(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    terms: Sequence[PairTerm],
    dropout: float,
    unmapped: Tensor | None,
) -> Tensor:
    """The same by a kernel that keeps the weights alone."""
    scale = q.shape[-1] ** -0.5
    q, asking = q * scale, (q if unmapped is None else unmapped) * scale
    tables = []
    for term in terms:
        assert isinstance(term.ids, Tensor)
        by_id = None if term.bias is None else clamped(term.bias, q.dtype)[None, :, None]
        if term.keys is not None:
            on_keys = asking @ term.keys.to(q.dtype).transpose(-1, -2)
            by_id = on_keys if by_id is None else on_keys + by_id
        summed = 0 if term.values is None else term.values.shape[-2]
        tables.append(Table(term.ids, by_id, summed))
    hidden = padding_bias(q.dtype)
    output, sums = attend_with_tables(q, k, v, mask, tables, hidden, dropout)
    for term, weights in zip(terms, sums, strict=True):
        if weights is not None and term.values is not None:
            output = output + weights @ term.values.to(weights.dtype)
    return output
