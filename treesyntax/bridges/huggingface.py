"""Methods in the encoders of Hugging Face: BERT, RoBERTa, ModernBERT, T5, BART and their like.

Through ``AttentionInterface`` the encoder's self-attention becomes treesyntax's, which adds what the
methods say in each layer. Encodings of nodes are added to the embeddings of tokens. Nothing else of the
model changes, and its own positions stay, also with methods that take their place elsewhere.

transformers imports torchaudio where it is installed, and the build that fairseq brings along cannot be
imported beside a torch for CPUs. So import treesyntax before a model of transformers.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from treesyntax.bridges.bridge import BIASES, ENCODINGS, FEATURES, VECTORS, Bridge
from treesyntax.errors import OptionError, need_package
from treesyntax.nn.attention import attend
from treesyntax.nn.injection import Site
from treesyntax.nn.pairs import PairTerm, total_bias
from treesyntax.parsers.torchaudio_remedy import hide_broken_torchaudio

NAME = "treesyntax"
"""Of our attention among those of transformers."""

hide_broken_torchaudio()


class _Paths(NamedTuple):
    """Where a kind of model has its parts.

    Attributes:
        encoder: from the base model, "" for itself.
        attention: from the encoder to the self-attention of a layer.
    """

    encoder: str
    attention: str


_BERT = _Paths("", "encoder.layer.{}.attention.self")
_T5 = _Paths("encoder", "block.{}.layer.0.SelfAttention")
_BART = _Paths("encoder", "layers.{}.self_attn")
_PATHS = {
    "bert": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "modernbert": _Paths("", "layers.{}.attn"),
    "t5": _T5,
    "mt5": _T5,
    "bart": _BART,
    "mbart": _BART,
}
"""The kinds of model, as their configurations name them."""

_TERMS: dict[nn.Module, Callable[[], list[PairTerm]]] = {}
"""What is added in the attention modules of encoders that are computing now."""


class HuggingFaceBridge(Bridge):
    """A model of transformers with trees in its encoder.

    ``HuggingFaceBridge(model, "relation_mask")(**inputs, tree=batch)`` is the model's output. Of an
    encoder-decoder the encoder gets the trees. A T5 whose heads are wider than ``d_model / heads`` gets
    biases and encodings alone.

    Args:
        model: any model over a BERT, RoBERTa, XLM-RoBERTa, ModernBERT, T5, mT5, BART or mBART, with or
            without a head.
        spec: the methods, such as ``stack_pe+relation_mask``.

    Raises:
        OptionError: for another model, one that has a bridge, and for methods that it cannot carry; when
            called, for attention weights (``output_attentions``), which are not kept.
    """

    def __init__(self, model: nn.Module, spec: str) -> None:
        need_package("transformers", "huggingface", "this bridge")
        config: Any = getattr(model, "config", None)
        kind = getattr(config, "model_type", type(model).__name__)
        if kind not in _PATHS:
            raise OptionError(
                f"there is no bridge into {kind}; there are bridges into {', '.join(_PATHS)}"
            )
        if getattr(config, "is_decoder", False) and not config.is_encoder_decoder:
            raise OptionError(f"{type(model).__name__} is a decoder; trees go into encoders")
        paths = _PATHS[kind]
        sizes = (config.hidden_size, config.num_attention_heads, config.num_hidden_layers)
        # In some T5 models a head is wider than its share of the states.
        regular = getattr(config, "d_kv", sizes[0] // sizes[1]) * sizes[1] == sizes[0]
        carried = (*ENCODINGS, *BIASES, *FEATURES, *(VECTORS if regular else ()))
        super().__init__(model, spec, Site(*sizes), carried)
        base: Any = model.base_model
        encoder = base.get_submodule(paths.encoder)
        self._mark(encoder)
        _register()
        model.set_attn_implementation(NAME)  # type: ignore[operator]
        self._attention = paths.attention
        self._inside = False
        encoder.register_forward_pre_hook(self._enter, with_kwargs=True)
        encoder.register_forward_hook(self._leave, always_call=True)
        encoder.get_input_embeddings().register_forward_hook(self._embed)

    def _enter(self, encoder: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        config: Any = self.model.config
        if kwargs.get("output_attentions", config.output_attentions):
            raise OptionError(
                "a model with a bridge gives no attention weights: its attention does not keep them; "
                "leave output_attentions out, or load the model anew without a bridge"
            )
        self._inside = True
        for layer, attention in self._attentions(encoder):
            _TERMS[attention] = partial(self._terms, layer)
        if kwargs.get("inputs_embeds") is not None:
            kwargs = {**kwargs, "inputs_embeds": self._encoded(kwargs["inputs_embeds"])}
        return args, kwargs

    def _leave(self, encoder: nn.Module, *args: Any) -> None:
        self._inside = False
        for _, attention in self._attentions(encoder):
            _TERMS.pop(attention, None)

    def _attentions(self, encoder: nn.Module) -> Iterator[tuple[int, nn.Module]]:
        for layer in range(self.site.layers):
            yield layer, encoder.get_submodule(self._attention.format(layer))

    def _embed(self, module: nn.Module, args: Any, embedded: Tensor) -> Tensor:
        # A decoder may share these embeddings.
        return self._encoded(embedded) if self._inside else embedded

    def _tokens(self, *args: Any, **kwargs: Any) -> Tensor:
        given = [*args, kwargs.get("input_ids"), kwargs.get("inputs_embeds")]
        tokens: Tensor = next(one for one in given if one is not None)
        return tokens.new_zeros(tokens.shape[:2], dtype=torch.long)


@cache
def _register() -> None:
    transformers = importlib.import_module("transformers")
    masks = importlib.import_module("transformers.masking_utils")
    transformers.AttentionInterface.register(NAME, _attention)
    transformers.AttentionMaskInterface.register(NAME, masks.sdpa_mask)


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    position_bias: Tensor | None = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """The attention of all layers of a model with a bridge, as transformers calls it."""
    terms = _TERMS[module]() if module in _TERMS else []
    if terms and (attention_mask is None or attention_mask.dtype == torch.bool):
        if scaling is not None and scaling * query.shape[-1] ** 0.5 != 1:
            query = query * (scaling * query.shape[-1] ** 0.5)
        if position_bias is not None:
            terms = [PairTerm(logits=position_bias), *terms]
        attended = attend(query, key, value, attention_mask, terms, dropout)
        return attended.transpose(1, 2).contiguous(), None
    if not all(term.is_bias for term in terms):
        raise OptionError("vectors and scales of pairs need a boolean attention mask, or none")
    bias = total_bias(terms, query)
    if bias is not None:
        position_bias = bias if position_bias is None else position_bias + bias
    sdpa = importlib.import_module("transformers.integrations.sdpa_attention")
    attended, weights = sdpa.sdpa_attention_forward(
        module, query, key, value, attention_mask,
        dropout=dropout, scaling=scaling, position_bias=position_bias, **kwargs,
    )  # fmt: skip
    return attended, weights
