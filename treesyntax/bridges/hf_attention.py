"""The attention of transformers' models with trees, registered as ``treesyntax``.

What methods add comes as an argument, :data:`TERMS`, which a model hands from its stack of layers down to
each attention. It is looked for nowhere else.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.nn.attention import attend
from treesyntax.nn.kernels.lookup import for_all_layers
from treesyntax.nn.pairs import PairTerm, total_bias

NAME = "treesyntax"
"""Of our attention among those of transformers."""
TERMS = "treesyntax_terms"
"""The argument with what methods add: a function of the layer, or None where no trees are wanted."""
LAYER = "_treesyntax_layer"
"""The attribute of an attention that methods reach: the number of its layer."""


_plain: dict[str, Callable[..., tuple[Tensor, Tensor | None]]] = {}
"""The attention of transformers, where methods add nothing. Compiled code imports nothing."""


@cache
def register() -> None:
    """Make the attention known to transformers."""
    transformers = importlib.import_module("transformers")
    masks = importlib.import_module("transformers.masking_utils")
    sdpa = importlib.import_module("transformers.integrations.sdpa_attention")
    _plain["sdpa"] = sdpa.sdpa_attention_forward
    transformers.AttentionInterface.register(NAME, attention)
    transformers.AttentionMaskInterface.register(NAME, masks.sdpa_mask)


def attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    position_bias: Tensor | None = None,
    is_causal: bool | None = None,
    tree: object = None,
    **kwargs: Any,
) -> tuple[Tensor, Tensor | None]:
    """The attention of all layers of a model with methods, as transformers calls it.

    Args:
        module: an attention; methods add something if it has a number, :data:`LAYER`. One to another
            model has none.
        query: [B, H, Q, d].
        key: [B, H or fewer, K, d].
        value: as ``key``.
        attention_mask: bool or added to logits, broadcasting to [B, H, Q, K]; None for all, or for all
            before a query if the attention is causal.
        dropout: of weights.
        scaling: of logits.
        position_bias: logits that the model adds itself.
        is_causal: whether the attention is causal, by default as the module says.
        tree: the trees of the encoder, which a model hands to its decoder as well; not looked at.
        kwargs: for transformers' own attention, and :data:`TERMS`.

    Raises:
        OptionError: if nothing arrived here in a layer with methods, or something in a layer without a
            number, or it cannot be added.
    """
    terms: list[PairTerm] = []
    layer: int | None = getattr(module, LAYER, None)
    arrived = kwargs.pop(TERMS, False)
    if layer is not None:
        if arrived is False:
            raise OptionError(
                f"the trees were lost on the way to {type(module).__name__}: its model hands on no further "
                "arguments, or a wrapper calls a part of it in another way"
            )
        terms = [] if arrived is None else arrived(layer)
    elif arrived and not getattr(module, "is_cross_attention", False):
        raise came_later(module)
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if terms:
        terms = [_over_keys(term, key.shape[2]) for term in terms]
        if attention_mask is None and causal and query.shape[2] > 1:
            attention_mask = _causal_mask(query, key, terms[0].stored_ids)
        if attention_mask is None or attention_mask.dtype == torch.bool:
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
    return _plain["sdpa"](
        module, query, key, value, attention_mask,
        dropout=dropout, scaling=scaling, position_bias=position_bias, is_causal=causal, **kwargs,
    )  # fmt: skip


def came_later(module: nn.Module) -> OptionError:
    """The refusal of an attention whose layer has no methods."""
    return OptionError(
        f"this {type(module).__name__} came into the model after its bridge was made, so it has no "
        "methods; put it in first, then make the bridge"
    )


def _over_keys(term: PairTerm, count: int) -> PairTerm:
    """A term over the last keys alone, where a layer with a window has forgotten the first ones."""
    tensors = {"ids": term.stored_ids, "scale": term.scale, "features": term.features}
    pairs = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    known = {tensor.shape[-1] for tensor in pairs.values()}
    if not known or known == {count}:
        return term
    if count > min(known):
        raise OptionError(
            f"the cache holds {count} keys of {min(known)} tokens; trees need one that only grows, and "
            "begins empty (with prefix tuning it does not: take LoRA)"
        )
    last: dict[str, Any] = {name: tensor[..., -count:] for name, tensor in pairs.items()}
    return replace(term, **last)


def _causal_mask(query: Tensor, key: Tensor, ids: Tensor | None) -> Tensor:
    """Bool [1, 1, Q, K]: the last query sees all keys, one before it one less; one for all layers with these ids."""
    count, known = query.shape[2], key.shape[2]

    def make() -> Tensor:
        everything = torch.ones(count, known, dtype=torch.bool, device=query.device)
        return everything.tril(known - count)[None, None]

    return make() if ids is None else for_all_layers(ids, None, (count, known), make)
