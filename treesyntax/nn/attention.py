"""The one attention of the toolkit: it chooses how it is computed.

PyTorch's fused kernel where it can: it knows no vectors of pairs and no scales, and on a CPU it has
no gradient of a bias and no dropout (half precision keeps its kernel, whose sums are of 32 bits). Long
inputs on a GPU take FlexAttention where the methods allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.nn.devices import attention_type, full_precision, is_transformed
from treesyntax.nn.dropout import Dropout
from treesyntax.nn.kernels.flex import flex_attend
from treesyntax.nn.kernels.lookup import padding_bias
from treesyntax.nn.node_maps import NodeMap
from treesyntax.nn.pairs import PairTerm, attend_to_pairs, of_all_heads, pair_logits, total_bias


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None,
    terms: Sequence[PairTerm] = (),
    dropout: float = 0.0,
    unmapped: Tensor | None = None,
) -> Tensor:
    """Scaled dot-product attention.

    Args:
        q: [B, H, Q, d].
        k: [B, G, K, d]; each of the G heads serves H / G neighbouring ones of ``q`` (Ainslie et al. 2023).
        v: [B, G, K, d].
        mask: attention mask, bool that broadcasts to [B, H, Q, K], True = attend; None for all.
        terms: what methods add.
        dropout: probability of dropping an attention weight.
        unmapped: [B, H, Q, d], queries before any :class:`~treesyntax.nn.node_maps.NodeMap`, which the vectors
            that terms add to keys meet: a vector belongs to a pair and is not turned by either node; None
            where ``q`` is not mapped.

    Returns:
        [B, H, Q, d].

    Raises:
        OptionError: for a bias of methods that were made for another number of heads.
    """
    for term in terms:  # of more heads, the first rows would be read
        if term.bias is not None and len(term.bias) != q.shape[1]:
            raise OptionError(
                f"the methods are of {len(term.bias)} heads, but the queries have {q.shape[1]}; make them with as many"
            )
    kind = attention_type(q.device)
    if kind == torch.float32:
        with full_precision(q.device):
            # Heads beside each other are copied apart here, not once more where they are multiplied.
            q, k, v = (x.to(kind, memory_format=torch.contiguous_format) for x in (q, k, v))
            unmapped = unmapped if unmapped is None else unmapped.float()
            return attend(q, k, v, mask, terms, dropout, unmapped)
    if kind is not None:
        # Queries that were turned have 32 bits, but are multiplied in half precision, which biases must fit.
        q, k, v = (x.to(kind) for x in (q, k, v))
        unmapped = unmapped if unmapped is None else unmapped.to(kind)
    if mask is not None:
        mask = mask[(None,) * (q.dim() - mask.dim())]
    for term in terms:
        if term.value_map is not None:
            v = term.value_map(of_all_heads(v, q.shape[1]))
    computed = any(callable(term.ids) for term in terms)
    fused = all(term.keys is term.values is term.scale is None for term in terms)
    biases = [bias for term in terms for bias in (term.bias, term.logits) if bias is not None]
    learned = any(bias.requires_grad for bias in biases)
    slow = (learned and torch.is_grad_enabled() and not q.is_cuda) or is_transformed()
    drops = dropout > 0 and q.device.type == "cpu" and q.dtype in (torch.float32, torch.float64)
    if (not fused or slow or drops) and not computed:
        return attend_to_pairs(q, k, v, mask, terms, dropout, unmapped)
    k, v = of_all_heads(k, q.shape[1]), of_all_heads(v, q.shape[1])
    if computed:
        return flex_attend(q, k, v, mask, terms)
    bias = total_bias(terms, q)
    if bias is not None:
        mask = bias if mask is None else bias.masked_fill(~mask, padding_bias(q.dtype))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)


@dataclass
class KeyValues:
    """Projected keys and values, [B, H, K, d] each."""

    keys: Tensor
    values: Tensor

    def reorder(self, order: Tensor) -> KeyValues:
        """The rows ``order`` of the batch, as beam search picks them."""
        return KeyValues(self.keys.index_select(0, order), self.values.index_select(0, order))


class Attention(nn.Module):
    """Multi-head attention (Vaswani et al. 2017, section 3.2.2) with fairseq's parameter names.

    Args:
        d_model: width of queries and output, divisible by ``heads``.
        heads: number of heads H.
        dropout: on attention weights, in training.
        d_key: width of the attended sequence, where it differs.
    """

    def __init__(self, d_model: int, heads: int, dropout: float, d_key: int | None = None) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = Dropout(dropout)
        self.k_proj = nn.Linear(d_key or d_model, d_model)
        self.v_proj = nn.Linear(d_key or d_model, d_model)
        self.q_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)
        # fairseq's initialisation: the three input projections count as one stacked matrix.
        gain = 2**-0.5 if d_key in (None, d_model) else 1.0
        for projection in (self.k_proj, self.v_proj, self.q_proj):
            nn.init.xavier_uniform_(projection.weight, gain=gain)
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)

    def _split(self, projected: Tensor) -> Tensor:
        return projected.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def project(self, attended: Tensor, node_map: NodeMap | None = None) -> KeyValues:
        """Keys, mapped by their nodes, and values of a sequence [B, K, d_key]."""
        keys, values = self._split(self.k_proj(attended)), self._split(self.v_proj(attended))
        return KeyValues(keys if node_map is None else node_map(keys), values)

    def forward(
        self,
        query: Tensor,
        memory: KeyValues,
        mask: Tensor | None,
        terms: Sequence[PairTerm] = (),
        node_map: NodeMap | None = None,
    ) -> Tensor:
        """Attend from [B, Q, d_model] to what :meth:`project` made; the rest as in :func:`attend`."""
        dropout = self.dropout.rate if self.dropout.on else 0.0
        queries, unmapped = self._split(self.q_proj(query)), None
        if node_map is not None:
            queries, unmapped = node_map(queries), queries
        attended = attend(queries, memory.keys, memory.values, mask, terms, dropout, unmapped)
        return self.out_proj(attended.transpose(1, 2).flatten(2))

    def log_weights(
        self,
        query: Tensor,
        mask: Tensor | None,
        terms: Sequence[PairTerm],
        node_map: NodeMap | None,
        heads: int,
    ) -> Tensor:
        """Logarithms [B, h, T, T] of the weights of the first ``heads`` heads of self-attention.

        They are computed for these heads alone, in single precision at least and without dropout;
        the rest as in :meth:`forward`.
        """
        # A map may differ from head to head.
        mapped = heads if node_map is None else self.heads
        size = mapped * self.q_proj.out_features // self.heads
        exact = torch.promote_types(query.dtype, torch.float32)
        q, k = (
            F.linear(query, projection.weight[:size], projection.bias[:size])
            .unflatten(2, (mapped, -1))
            .transpose(1, 2)
            .to(exact)
            for projection in (self.q_proj, self.k_proj)
        )
        unmapped = q[:, :heads]
        if node_map is not None:
            q, k = node_map(q)[:, :heads], node_map(k)[:, :heads]
        with full_precision(query.device):
            head_terms = [term.of_heads(heads) for term in terms]
            return pair_logits(q, k, mask, head_terms, unmapped).log_softmax(3)
