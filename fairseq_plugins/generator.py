"""fairseq's generator with constrained beam search."""

from __future__ import annotations

from typing import Any

from fairseq.search import BeamSearch
from fairseq.sequence_generator import SequenceGenerator

from fairseq_plugins.search import ConstrainedBeamSearch
from treesyntax.constraints import Constraints
from treesyntax.errors import OptionError


class ConstrainedGenerator(SequenceGenerator):
    """Generates whole trees within the length limit, and nothing else.

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
        search = ConstrainedBeamSearch(dictionary, tree_constraints)
        super().__init__(models, dictionary, search_strategy=search, **options)

    def _generate(self, sample: dict[str, Any], prefix_tokens: Any = None, **options: Any) -> Any:
        if prefix_tokens is not None:
            raise OptionError("constraints do not go with --prefix-size; leave it out")
        longest_source = sample["net_input"]["src_tokens"].shape[1]
        # The same limit as in fairseq's own _generate, which tells it to nobody.
        wanted = int(self.max_len_a * longest_source + self.max_len_b)
        self.search.max_length = min(wanted, self.max_len - 1)
        self.search.constraints.check_limit(self.search.max_length)
        return super()._generate(sample, prefix_tokens, **options)
