"""fairseq's generator with constrained beam search."""

from __future__ import annotations

import math
from typing import Any

from fairseq.search import BeamSearch
from fairseq.sequence_generator import EnsembleModel, SequenceGenerator
from torch import Tensor

from fairseq_plugins.model import TreeDecoder
from fairseq_plugins.search import ConstrainedBeamSearch
from treesyntax.decoding.constraints import Constraints
from treesyntax.errors import OptionError


class PlacingEnsemble(EnsembleModel):
    """fairseq's ensemble; places each prefix once, for all decoders and for the search."""

    def __init__(self, models: Any, search: ConstrainedBeamSearch) -> None:
        super().__init__(models)
        self.search = search

    def forward_decoder(
        self, tokens: Tensor, encoder_outs: Any, incremental_states: Any, temperature: float = 1.0
    ) -> Any:
        """Log-probabilities of the next tokens, averaged over the models."""
        partial = self.search.grow(tokens)
        decoders = [
            model.decoder for model in self.models if isinstance(model.decoder, TreeDecoder)
        ]
        for decoder in decoders:
            decoder.partial_trees = partial
        try:
            return super().forward_decoder(tokens, encoder_outs, incremental_states, temperature)
        finally:
            for decoder in decoders:
                decoder.partial_trees = None


class ConstrainedGenerator(SequenceGenerator):
    """Generates whole trees within the length limit, and nothing else.

    fairseq ends a sentence as soon as as many hypotheses have ended as the beam is wide, however
    bad they are, and keeps the first ones. Small trees end early, so that would often be trees that
    the model finds much less likely than others in the beam. Here the best ones are kept, and
    a sentence ends when its best one can no longer be beaten from the beam.

    The length limit is fairseq's: ``max_len_a`` * source length + ``max_len_b`` tokens, the
    end-of-sentence mark not counted.

    Args:
        models: the ensemble.
        dictionary: of the target.
        tree_constraints: what is legal.
        search_strategy: plain beam search or None; constraints take its place.
        options: of fairseq's generator.

    Raises:
        OptionError: for options that could leave no legal token or make illegal ones.
    """

    def __init__(
        self,
        models: Any,
        dictionary: Any,
        *,
        tree_constraints: Constraints,
        search_strategy: Any = None,
        **options: Any,
    ) -> None:
        if search_strategy is not None and type(search_strategy) is not BeamSearch:
            raise OptionError(
                f"constraints go with plain beam search, not {type(search_strategy).__name__}; "
                "leave out sampling and other strategies, or add --tree-constraints none"
            )
        for option, most in (("min_len", 1), ("no_repeat_ngram_size", 0)):
            if options.get(option, most) > most:
                raise OptionError(
                    f"constraints do not go with {option}={options[option]}, "
                    "which may forbid every legal token; leave it out"
                )
        unk_penalty = float(options.get("unk_penalty", 0.0))
        if unk_penalty < 0:
            # Search ends by the rule that no token can raise a score.
            raise OptionError(
                f"constraints do not go with --unkpen {unk_penalty:g}, which could raise scores; give 0 "
                "or more"
            )
        search = ConstrainedBeamSearch(dictionary, tree_constraints, unk_penalty)
        ensemble = PlacingEnsemble(models, search)
        super().__init__(ensemble, dictionary, search_strategy=search, **options)

    def _generate(self, sample: dict[str, Any], prefix_tokens: Any = None, **options: Any) -> Any:
        if prefix_tokens is not None:
            raise OptionError("constraints do not go with --prefix-size; leave it out")
        longest_source = sample["net_input"]["src_tokens"].shape[1]
        # The same limit as in fairseq's own _generate, which tells it to nobody.
        wanted = int(self.max_len_a * longest_source + self.max_len_b)
        self.search.max_length = min(wanted, self.max_len - 1)
        self.search.constraints.check_limit(self.search.max_length)
        return super()._generate(sample, prefix_tokens, **options)

    def is_finished(self, *_: Any) -> bool:
        """Leave the decision to :meth:`finalize_hypos`, which knows the scores."""
        return False

    def finalize_hypos(
        self,
        step: int,
        bbsz_idx: Tensor,
        eos_scores: Tensor,
        tokens: Tensor,
        scores: Tensor,
        finalized: list[list[dict[str, Tensor]]],
        finished: list[bool],
        beam_size: int,
        attn: Tensor | None,
        src_lengths: Tensor,
        max_len: int,
    ) -> list[int]:
        """Keep the best trees of each sentence, and find the sentences that are finished.

        Args:
            step: number of tokens of the trees that end now.
            bbsz_idx: their places in the beams of the sentences that are left.
            eos_scores: their sums of log-probabilities.
            tokens: all hypotheses.
            scores: their sums of log-probabilities after each token.
            finalized: the complete hypotheses of each sentence so far; changed in place.
            finished: whether each sentence is finished; changed in place.
            beam_size: width of the beam.
            attn: attention of all hypotheses, or None.
            src_lengths: lengths of the sources.
            max_len: the limit.

        Returns:
            The newly finished sentences, as indices among those that were left.
        """
        new: list[list[dict[str, Tensor]]] = [[] for _ in finalized]
        super().finalize_hypos(
            step, bbsz_idx, eos_scores, tokens, scores, new, finished, beam_size, attn,
            src_lengths, max_len,
        )  # fmt: skip
        left = [sentence for sentence, done in enumerate(finished) if not done]
        ended = []
        for index, (sentence, best_open) in enumerate(
            zip(left, self.search.best_open.tolist(), strict=True)
        ):
            kept = finalized[sentence] + new[sentence]
            kept.sort(key=lambda hypothesis: float(hypothesis["score"]), reverse=True)
            finalized[sentence] = kept = kept[:beam_size]
            full = len(kept) == beam_size and float(kept[0]["score"]) >= self._at_best(
                best_open, step, max_len
            )
            if full or best_open == -math.inf or step == max_len:
                finished[sentence] = True
                ended.append(index)
        return ended

    def _at_best(self, total: float, step: int, max_len: int) -> float:
        """The highest score that a hypothesis with this sum after ``step`` + 1 tokens can reach.

        No log-probability is above 0, so the sum cannot rise; only its division by the length,
        end-of-sentence mark included, is open.
        """
        if not self.normalize_scores:
            return total
        return total / (max_len + 1 if self.len_penalty > 0 else step + 2) ** self.len_penalty
