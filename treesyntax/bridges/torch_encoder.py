"""Methods in PyTorch's own encoder, ``torch.nn.TransformerEncoder``."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from treesyntax.bridges.bridge import BIASES, ENCODINGS, FEATURES, Bridge
from treesyntax.errors import OptionError
from treesyntax.nn.injection import Site
from treesyntax.nn.pairs import total_bias


class TransformerEncoderBridge(Bridge):
    """A ``nn.TransformerEncoder`` with trees.

    ``TransformerEncoderBridge(encoder, "relation_mask")(src, tree=batch)`` is the encoder's output, with
    masks as usual. Encodings of nodes are added to ``src``; biases of pairs go into the attention mask of
    each layer. Vectors and scales of pairs are no masks, so methods with them are refused.

    Args:
        encoder: of ``nn.TransformerEncoderLayer``; ``batch_first`` or not.
        spec: the methods, such as ``stack_pe+relation_mask``.

    Raises:
        OptionError: for another module, one that has a bridge, and for methods that it cannot carry.
    """

    def __init__(self, encoder: nn.TransformerEncoder, spec: str) -> None:
        layers = list(getattr(encoder, "layers", []))
        if not layers or not all(isinstance(one, nn.TransformerEncoderLayer) for one in layers):
            raise OptionError(f"{type(encoder).__name__} is no nn.TransformerEncoder with layers")
        attention = layers[0].self_attn
        site = Site(attention.embed_dim, attention.num_heads, len(layers))
        super().__init__(encoder, spec, site, (*ENCODINGS, *BIASES, *FEATURES))
        self._mark(encoder)
        self.batch_first = attention.batch_first
        encoder.use_nested_tensor = False  # it takes no masks
        encoder.register_forward_pre_hook(self._embed, with_kwargs=True)
        for number, layer in enumerate(layers):
            # With a hook, PyTorch takes this module also for inference.
            layer.self_attn.register_forward_pre_hook(partial(self._mask, number), with_kwargs=True)

    def _embed(self, encoder: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        source = args[0] if args else kwargs["src"]
        if self.batch_first:
            source = self._encoded(source)
        else:
            source = self._encoded(source.transpose(0, 1)).transpose(0, 1)
        if args:
            return (source, *args[1:]), kwargs
        return args, {**kwargs, "src": source}

    def _mask(self, layer: int, attention: nn.Module, args: Any, kwargs: dict[str, Any]) -> Any:
        query: Tensor = args[0]
        rows, width = query.shape[:2] if self.batch_first else query.shape[1::-1]
        bias = total_bias(self._terms(layer), query.new_empty(rows, self.site.heads, width, 1))
        if bias is None:
            return args, kwargs
        bias = bias.expand(rows, -1, -1, -1)
        mask = kwargs.get("attn_mask")
        if mask is not None:
            if mask.dtype == torch.bool:
                mask = bias.new_zeros(mask.shape).masked_fill(mask, -torch.inf)
            bias = bias + (mask if mask.dim() == 2 else mask.view(rows, -1, width, width))
        return args, {**kwargs, "attn_mask": bias.flatten(0, 1), "is_causal": False}

    def _tokens(self, *args: Any, **kwargs: Any) -> Tensor:
        source = args[0] if args else kwargs["src"]
        shape = source.shape[:2] if self.batch_first else source.shape[1::-1]
        return source.new_zeros(shape, dtype=torch.long)
