"""Beam search over whole trees only."""

from __future__ import annotations

import math
from typing import Any

import torch
from fairseq.search import BeamSearch
from torch import Tensor

from treesyntax.data.dictionary import unknown_symbol
from treesyntax.decoding.constraints import Constraints
from treesyntax.nn.growth import PartialTrees


class ConstrainedBeamSearch(BeamSearch):
    """fairseq's beam search, in which illegal tokens have probability 0.

    The probabilities of the legal ones stay the model's own, so that scores compare to those of a
    search without constraints. Only the end of a sentence is no choice: it is not predicted but
    follows from the tree (Shiv & Quirk 2019, section 4), so its log-probability is 0.

    Attributes:
        max_length: most tokens of a tree in this batch, the end-of-sentence mark not counted;
            :class:`ConstrainedGenerator` sets it.
        best_open: [sentences], after a step the sum of log-probabilities of each sentence's best
            partial tree, -inf where there is none.
        partial: the trees of the prefixes that this step continues.
    """

    partial: PartialTrees

    def __init__(self, dictionary: Any, constraints: Constraints, unk_penalty: float = 0.0) -> None:
        """With the penalty of ``--unkpen``, which fairseq takes from ``<unk>`` alone."""
        super().__init__(dictionary)
        self.constraints, self.unk_penalty = constraints, unk_penalty
        self.unknown_nodes = [
            index
            for index, symbol in enumerate(dictionary.symbols)
            if index != dictionary.unk() and unknown_symbol(symbol) == symbol
        ]
        self.max_length = 0
        self.best_open = torch.empty(0)
        # Where fewer trees than the beam is wide are possible, fairseq waits for more of them up
        # to the limit; this lets it stop there with what it has.
        self.stop_on_max_len = True

    def grow(self, tokens: Tensor) -> PartialTrees:
        """Grow the trees of the prefixes [sentences * beam, step + 1] of the next step."""
        self.partial = self.constraints.to(tokens.device).trees.grow(tokens)
        return self.partial

    def step(
        self,
        step: int,
        lprobs: Tensor,
        scores: Tensor | None,
        prev_output_tokens: Tensor | None = None,
        original_batch_idxs: Tensor | None = None,
        candidate_multiple: int = 2,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Mask, then search as fairseq does.

        Args:
            step: number of tokens so far.
            lprobs: [sentences, beam, V]; changed in place.
            scores: [sentences, beam, step].
            prev_output_tokens: LongTensor [sentences * beam, step + 1], whose trees are grown.
            original_batch_idxs: not used.
            candidate_multiple: candidates per place in the beam.

        Raises:
            OptionError: if no tree at all is as short as the limit.
        """
        allowed = self.constraints.allowed(self.partial, self.max_length)
        if self.unk_penalty:
            lprobs[..., self.unknown_nodes] -= self.unk_penalty
        lprobs[..., self.eos] = 0
        lprobs.masked_fill_(~allowed.view_as(lprobs), -math.inf)
        candidates = super().step(
            step, lprobs, scores, prev_output_tokens, original_batch_idxs, candidate_multiple
        )
        sums, symbols, _ = candidates
        self.best_open = sums.masked_fill(symbols == self.eos, -math.inf).amax(1)
        return candidates
