"""Methods in PyTorch's own encoder, ``torch.nn.TransformerEncoder``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from treesyntax.bridges.bridge import (
    BIASES,
    ENCODINGS,
    FEATURES,
    Bridge,
    methods_for,
    needs_trees,
    read_batch,
)
from treesyntax.errors import OptionError
from treesyntax.model.composition import Composition
from treesyntax.nn.injection import Site
from treesyntax.nn.pairs import total_bias
from treesyntax.nn.tree_batch import TreeBatch, check_over

_MARK = "_treesyntax_methods"
"""The attribute of an encoder that says which methods a bridge has put beside it."""


class TransformerEncoderBridge(Bridge, nn.Module):
    """A ``nn.TransformerEncoder`` with trees.

    ``TransformerEncoderBridge(encoder, "relation_mask")(src, tree=batch)`` is the encoder's output, with
    masks as usual. Encodings of nodes are added to ``src``; biases of pairs go into the attention mask of
    each layer. Vectors and scales of pairs are no masks, so methods with them are refused.

    Args:
        encoder: of ``nn.TransformerEncoderLayer``; ``batch_first`` or not.
        spec: the methods, such as ``stack_pe+relation_mask``.

    Attributes:
        model: the encoder. Called itself, it is without trees.

    Raises:
        OptionError: for another module, one that has a bridge, and for methods that it cannot carry.
    """

    def __init__(self, encoder: nn.TransformerEncoder, spec: str) -> None:
        super().__init__()
        layers = list(getattr(encoder, "layers", []))
        if not layers or not all(isinstance(one, nn.TransformerEncoderLayer) for one in layers):
            raise OptionError(f"{type(encoder).__name__} is no nn.TransformerEncoder with layers")
        if type(encoder).forward is not nn.TransformerEncoder.forward:
            raise OptionError(
                f"{type(encoder).__name__} has a forward of its own; a bridge calls the layers as "
                "nn.TransformerEncoder does"
            )
        if (other := getattr(encoder, _MARK, None)) is not None:
            raise OptionError(
                f"this {type(encoder).__name__} has a bridge with {other or 'no method'} already; "
                "load the model anew and give all methods to one bridge, joined by +"
            )
        attention = layers[0].self_attn
        self.spec, self.site = spec, Site(attention.embed_dim, attention.num_heads, len(layers))
        carried = (*ENCODINGS, *BIASES, *FEATURES)
        methods = methods_for(spec, self.site, carried, type(encoder).__name__)
        setattr(encoder, _MARK, spec)
        self.model = encoder
        self.injections: Composition = methods
        self.batch_first = attention.batch_first
        encoder.use_nested_tensor = False  # it takes no masks
        for layer in layers:
            # PyTorch's shortcut for inference takes no mask that differs from head to head, and is not
            # taken where there is a hook.
            layer.self_attn.register_forward_pre_hook(_no_shortcut)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
        tree: TreeBatch | Mapping[str, Tensor] | None = None,
    ) -> Any:
        """The encoder over trees.

        Args:
            src: [B, T, d_model], or [T, B, d_model] if the encoder is not ``batch_first``.
            mask: as of the encoder.
            src_key_padding_mask: as of the encoder.
            is_causal: as of the encoder; a mask must be given with it.
            tree: the trees of the batch, or what their ``to_dict`` made; None if no method needs any.

        Raises:
            OptionError: if there are no trees, or they are not over these tokens.
        """
        if is_causal and mask is None:
            raise OptionError("is_causal says that the mask is causal; give the mask as well")
        tokens = (src if self.batch_first else src.transpose(0, 1))[..., 0]
        if tree is None:
            if self.injections.needs_tree:
                raise needs_trees(self.spec)
            tree = TreeBatch.without_trees(tokens)
        batch = read_batch(tree)
        check_over(batch, tokens)
        batch = batch.to(src.device)
        encoding = self.injections.encode(batch)
        if encoding is not None:
            src = src + (encoding if self.batch_first else encoding.transpose(0, 1)).to(src.dtype)
        terms = self.injections.relate(batch)
        rows, width = tokens.shape
        like = src.new_empty(rows, self.site.heads, width, 1)
        output = src
        # As nn.TransformerEncoder.forward, but for the mask, which here is another one in each layer.
        for number, layer in enumerate(self.model.layers):
            bias = total_bias(terms(number), like)
            layer_mask, padding, causal = mask, src_key_padding_mask, bool(is_causal)
            if bias is not None:
                layer_mask, causal = self._with_mask(bias.expand(rows, -1, -1, -1), mask), False
                padding = padding if padding is None else _added(padding, bias)
            output = layer(
                output, src_mask=layer_mask, is_causal=causal, src_key_padding_mask=padding
            )
        return output if self.model.norm is None else self.model.norm(output)

    def _with_mask(self, bias: Tensor, mask: Tensor | None) -> Tensor:
        """Biases [B, H, T, T] and a mask of the caller as the mask [B * H, T, T] of a layer."""
        rows, _, width, _ = bias.shape
        if mask is not None:
            mask = _added(mask, bias)
            bias = bias + (mask if mask.dim() == 2 else mask.view(rows, -1, width, width))
        return bias.flatten(0, 1)


def _added(mask: Tensor, like: Tensor) -> Tensor:
    """A mask of PyTorch, in which True is hidden, as what is added to logits."""
    if mask.dtype != torch.bool:
        return mask
    return like.new_zeros(mask.shape).masked_fill(mask, -torch.inf)


def _no_shortcut(module: nn.Module, args: Any) -> None:
    """A hook that does nothing."""
