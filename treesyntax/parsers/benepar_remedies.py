"""Fixes for benepar 0.2.0 on transformers 5; they are undone once a model is loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from benepar.parse_chart import ChartParser
from transformers import PreTrainedTokenizerBase

METHOD = "build_inputs_with_special_tokens"


class TolerantChartParser(ChartParser):
    """Loads checkpoints with buffers that encoders no longer have (``position_ids``)."""

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """As in torch, but entries that the module does not have are ignored."""
        known = self.state_dict().keys()
        kept = {name: value for name, value in state_dict.items() if name in known}
        return super().load_state_dict(kept, *args, **kwargs)


def build_inputs_with_special_tokens(
    tokenizer: PreTrainedTokenizerBase, token_ids: list[int]
) -> list[int]:
    """The ids with the special tokens that the tokenizer puts around any text."""
    encoding = tokenizer("a", return_special_tokens_mask=True)
    mask, ids = encoding["special_tokens_mask"], encoding["input_ids"]
    prefix = mask.index(0)
    suffix = mask[::-1].index(0)
    return [*ids[:prefix], *token_ids, *ids[len(ids) - suffix :]]


@contextmanager
def special_tokens_method() -> Iterator[None]:
    """Give tokenizers the method that benepar calls and transformers 5 removed."""
    if hasattr(PreTrainedTokenizerBase, METHOD):
        yield
        return
    setattr(PreTrainedTokenizerBase, METHOD, build_inputs_with_special_tokens)
    try:
        yield
    finally:
        delattr(PreTrainedTokenizerBase, METHOD)
