"""Copying from the source: a pointer-generator on top of a decoder."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from treesyntax.nn.devices import full_precision
from treesyntax.trees.copies import NO_COPY


@dataclass
class CopySource:
    """What can be copied of a batch of sources of S tokens, in F forms each.

    Attributes:
        keys: [B, S, d_model].
        ids: LongTensor [B, F, S], target ids, 0 where there is none.
        copyable: bool [B, F, S], whether there is one.
        same: bool [B, F, S, S], whether two tokens have the same target id.
        first: bool [B, F, S], whether no earlier token has the same target id.
    """

    keys: Tensor
    ids: Tensor
    copyable: Tensor
    same: Tensor
    first: Tensor

    def reorder(self, order: Tensor) -> CopySource:
        """The rows ``order`` of the batch, as beam search picks them."""
        return CopySource(*(tensor.index_select(0, order) for tensor in vars(self).values()))


class Copying(nn.Module):
    """The mixture of a decoder's softmax with an attention over source tokens.

    ``p(w) = g_0 softmax(logits)_w + sum_f g_f sum_{s: token s in form f is w} a_fs`` (See, Liu &
    Manning 2017, equations 8 and 9; on trees Ontañón et al. 2022). Text and trees of any arity have
    one form of a word (``x``, ``x/0``), so ``g = (g_0, 1 - g_0)``; leaves of left-child-right-sibling
    forms have two (``x/0``, ``x/R``), and the gate chooses between them too.

    Deviations: the attention is one head of its own over the encoder's output, so that all others
    keep the fused kernel; the gate sees the last state of the decoder, which already holds context
    and input; tokens that the target dictionary lacks get no weight, and where nothing can be
    copied, g_0 is 1.

    Args:
        d_model: width of the decoder.
        d_memory: width of the encoder's output.
        copies: LongTensor [F, V_source], see :func:`treesyntax.trees.copies.copy_table`.
    """

    copies: Tensor

    def __init__(self, d_model: int, d_memory: int, copies: Tensor) -> None:
        super().__init__()
        self.q_proj = nn.Linear(d_model, d_model)
        self.k_proj = nn.Linear(d_memory, d_model)
        self.gate = nn.Linear(d_model, len(copies))
        for projection in (self.q_proj, self.k_proj):
            nn.init.xavier_uniform_(projection.weight)
        self.register_buffer("copies", copies, persistent=False)

    def source(self, memory: Tensor, tokens: Tensor) -> CopySource:
        """What can be copied, of the encoder's output [B, S, d_memory] and its tokens [B, S]."""
        ids = self.copies[:, tokens].transpose(0, 1)
        copyable = ids != NO_COPY
        same = ids.unsqueeze(3) == ids.unsqueeze(2)
        first = copyable & ~same.tril(-1).any(3)
        return CopySource(self.k_proj(memory), ids.clamp(min=0), copyable, same, first)

    def forward(self, logits: Tensor, features: Tensor, source: CopySource) -> Tensor:
        """Log-probabilities [B, T, V] in single precision or better.

        They sum to 1, so that a further log-softmax changes nothing: whatever expects logits can
        take them.

        Args:
            logits: [B, T, V].
            features: the decoder's states [B, T, d_model].
            source: what can be copied.
        """
        query = self.q_proj(features) * features.shape[2] ** -0.5
        scores, gate = query @ source.keys.transpose(1, 2), F.pad(self.gate(features), (1, 0))
        dtype = torch.promote_types(logits.dtype, torch.float32)
        lowest, tiny = torch.finfo(dtype).min, torch.finfo(dtype).tiny
        with full_precision(logits.device):
            closed = F.pad(~source.copyable.any(2), (1, 0)).unsqueeze(1)
            gates = gate.to(dtype).masked_fill(closed, lowest).log_softmax(2)
            log_probabilities = logits.log_softmax(2, dtype=dtype) + gates[..., :1]
            masked = (
                scores.to(dtype).unsqueeze(1).masked_fill(~source.copyable.unsqueeze(2), lowest)
            )
            # [B, F, T, S]: the attention to all copies of a token, at each of them.
            weights = masked.softmax(3) @ source.same.to(dtype)
            copied = gates[..., 1:].permute(0, 2, 1).unsqueeze(3) + weights.clamp(min=tiny).log()
            copied, ids, first = (
                tensor.transpose(1, 2).flatten(2)
                for tensor in (copied, source.ids.unsqueeze(2), source.first.unsqueeze(2))
            )
            ids = ids.expand_as(copied)
            # log(e^a + e^b) = a + (log(e^a + e^b) - a), at those few words of the dictionary alone.
            generated = log_probabilities.gather(2, ids)
            gain = (torch.logaddexp(generated, copied) - generated) * first
            return log_probabilities.scatter_add(2, ids, gain)
