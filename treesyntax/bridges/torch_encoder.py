"""Methods in PyTorch's own encoder, ``torch.nn.TransformerEncoder``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from treesyntax.bridges.bridge import (
    BIASES,
    ENCODINGS,
    FEATURES,
    PAIR_VECTORS,
    VALUE_MAPS,
    Bridge,
    beside,
    methods_for,
    needs_trees,
    read_batch,
)
from treesyntax.errors import OptionError
from treesyntax.model.composition import Composition
from treesyntax.nn.attention import attend
from treesyntax.nn.devices import can_be_read
from treesyntax.nn.injection import Site
from treesyntax.nn.kernels.lookup import clamped
from treesyntax.nn.pairs import PairTerm
from treesyntax.nn.tree_batch import TreeBatch, check_over, refuse_padding

_MARK = "_treesyntax_methods"
"""The attribute of an encoder that says which methods a bridge has put beside it."""


class TransformerEncoderBridge(Bridge, nn.Module):
    """A ``nn.TransformerEncoder`` with trees.

    ``TransformerEncoderBridge(encoder, "relation_mask")(src, tree=batch)`` is the encoder's output, with
    masks as usual. Encodings of nodes are added to ``src``; all else goes into the attention of its layers.

    Args:
        encoder: of ``nn.TransformerEncoderLayer``; ``batch_first`` or not.
        spec: the methods, such as ``stack_pe+relation_mask``.

    Attributes:
        model: the encoder. Called itself, it is without trees.

    Raises:
        OptionError: for another module or other layers, one that has a bridge, and for methods that it cannot
            carry, and under the device meta; when called, if something has replaced the attention of a layer.
    """

    def __init__(self, encoder: nn.TransformerEncoder, spec: str) -> None:
        super().__init__()
        if torch.get_default_device().type == "meta":
            raise OptionError(
                "a bridge cannot be made under the device meta, as from_pretrained of transformers makes models: "
                "tables of its methods that are in no file would be lost; make it of the loaded encoder"
            )
        name = type(encoder).__name__
        layers: list[Any] = list(getattr(encoder, "layers", []))
        if (other := getattr(encoder, _MARK, None)) is not None:
            raise OptionError(
                f"this {name} has a bridge with {other or 'no method'} already; "
                "load the model anew and give all methods to one bridge, joined by +"
            )
        if not layers or not all(isinstance(layer, nn.TransformerEncoderLayer) for layer in layers):
            raise OptionError(f"{name} is no nn.TransformerEncoder with layers")
        if type(encoder).forward is not nn.TransformerEncoder.forward:
            raise OptionError(
                f"{name} has a forward of its own; a bridge calls the layers as nn.TransformerEncoder does"
            )
        for layer in layers:
            if type(layer) is not nn.TransformerEncoderLayer:
                raise OptionError(
                    f"{type(layer).__name__} may compute something else than nn.TransformerEncoderLayer, whose "
                    "place a bridge takes"
                )
        attention = layers[0].self_attn
        for layer in layers:
            if _shape(layer.self_attn) != _shape(attention):
                raise OptionError(
                    f"the layers of this {name} differ in width, heads or batch_first; methods are of one size "
                    "and order"
                )
        self.spec, self.site = spec, Site(attention.embed_dim, attention.num_heads, len(layers))
        carried = (*ENCODINGS, *BIASES, *FEATURES, *PAIR_VECTORS, *VALUE_MAPS)
        methods = beside(methods_for(spec, self.site, carried, name), attention.in_proj_weight)
        for layer in layers:  # only now, so that an encoder that was refused stays as it is
            layer.__class__ = _Layer
        setattr(encoder, _MARK, spec)
        self.model = encoder
        self.injections: Composition = methods
        self.batch_first = attention.batch_first

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
            OptionError: if there are no trees, or they are not over these tokens, or over padding; for masks that
                the encoder refuses, and for nested tensors.
        """
        if is_causal and mask is None:
            raise OptionError("is_causal says that the mask is causal; give the mask as well")
        if src.is_nested:
            raise OptionError(
                "trees go with padded tokens, not with a nested tensor; give src.to_padded_tensor(0.0) and a "
                "src_key_padding_mask"
            )
        tokens = (src if self.batch_first else src.transpose(0, 1))[..., 0]
        if tree is None:
            if self.injections.needs_tree:
                raise needs_trees(self.spec)
            tree = TreeBatch.without_trees(tokens)
        _refuse_hooks(self.model, "the encoder", "the bridge")
        batch = read_batch(tree)
        check_over(batch, tokens)
        self._check_masks(mask, src_key_padding_mask, tokens.shape)
        padding = src_key_padding_mask
        if padding is not None and can_be_read(padding):  # True, or minus infinity, hides a token
            is_bool = padding.dtype == torch.bool
            refuse_padding(batch, ~padding if is_bool else ~padding.isneginf())
        batch = batch.to(src.device)
        encoding = self.injections.encode(batch)
        if encoding is not None:
            src = src + (encoding if self.batch_first else encoding.transpose(0, 1)).to(src.dtype)
        terms = self.injections.relate(batch)
        layers = self.model.layers
        if len(layers) != self.site.layers or not all(
            isinstance(layer, _Layer) for layer in layers
        ):
            raise OptionError(
                "a layer came into the encoder after its bridge was made, so it has no methods; put it in "
                "first, then make the bridge"
            )
        output = src
        for number, layer in enumerate(layers):  # as nn.TransformerEncoder.forward
            output = layer(output, mask, src_key_padding_mask, bool(is_causal), terms=terms(number))
        return output if self.model.norm is None else self.model.norm(output)

    def _check_masks(self, mask: Tensor | None, padding: Tensor | None, shape: torch.Size) -> None:
        """Refuse masks that the encoder itself refuses: their numbers would be added to the logits."""
        rows, count = shape
        squares = ((count, count), (rows * self.site.heads, count, count))
        for name, given, shapes in (
            ("mask", mask, squares),
            ("src_key_padding_mask", padding, ((rows, count),)),
        ):
            if given is None:
                continue
            if given.dtype != torch.bool and not given.is_floating_point():
                raise OptionError(
                    f"{name} has numbers of {given.dtype}; give booleans, True where a token is hidden, or floats"
                )
            if tuple(given.shape) not in shapes:
                raise OptionError(
                    f"{name} is {[*given.shape]}; it must be {' or '.join(str([*allowed]) for allowed in shapes)}"
                )


def _shape(attention: Any) -> tuple[int, int, bool]:
    """The width, the heads, and whether the batch comes first."""
    return attention.embed_dim, attention.num_heads, attention.batch_first


def _refuse_hooks(module: nn.Module, name: str, instead: str) -> None:
    """Refuse hooks of a module in whose place a bridge computes: they would never be called."""
    hooks = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
    if any(getattr(module, kind) for kind in hooks):
        raise OptionError(
            f"{name} has a hook, which a bridge does not call; put it on {instead}, and make pruning or weight "
            "normalisation permanent first (prune.remove, remove_weight_norm)"
        )


class _Layer(nn.TransformerEncoderLayer):
    """A layer that takes what methods add, too."""

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
        terms: Sequence[PairTerm] = (),
    ) -> Tensor:
        if not terms:
            return super().forward(src, src_mask, src_key_padding_mask, is_causal)
        if type(self.self_attn) is not nn.MultiheadAttention:
            raise OptionError(
                f"{type(self.self_attn).__name__} has replaced the attention of this layer; trees reach "
                "nn.MultiheadAttention alone"
            )
        if self.self_attn.add_zero_attn or self.self_attn.bias_k is not None:
            raise OptionError(
                "self_attn has keys that are no tokens (add_zero_attn, add_bias_kv), which a bridge does not "
                "compute; make it without"
            )
        _refuse_hooks(self.self_attn, "self_attn", "the layer or self_attn.out_proj")
        masks = (src_mask, src_key_padding_mask)
        if self.norm_first:
            src = src + self._attended(self.norm1(src), *masks, terms)
            return src + self._ff_block(self.norm2(src))
        src = self.norm1(src + self._attended(src, *masks, terms))
        return self.norm2(src + self._ff_block(src))

    def _attended(
        self, x: Tensor, mask: Tensor | None, padding: Tensor | None, terms: Sequence[PairTerm]
    ) -> Tensor:
        """Self-attention with the methods, and the dropout after it."""
        attention = self.self_attn
        x = x if attention.batch_first else x.transpose(0, 1)
        projected = F.linear(x, attention.in_proj_weight, attention.in_proj_bias)
        q, k, v = projected.unflatten(2, (3, attention.num_heads, -1)).permute(2, 0, 3, 1, 4)
        masks = [] if padding is None else [padding[:, None, None]]
        if mask is not None:
            masks.append(mask[None, None] if mask.dim() == 2 else mask.unflatten(0, q.shape[:2]))
        seen = added = None
        for given in masks:  # in PyTorch's masks True is hidden, and minus infinity too
            hidden = given if given.dtype == torch.bool else given.isneginf()
            seen = ~hidden if seen is None else seen & ~hidden
            if given is not hidden:  # a softmax over nothing but minus infinity is no number
                finite = given.masked_fill(hidden, 0.0)
                added = finite if added is None else added + finite
        if added is not None:
            # A large number of 32 bits is infinite in half precision.
            logits = clamped(added, q.dtype).expand(-1, q.shape[1], q.shape[2], -1)
            terms = [PairTerm(logits=logits), *terms]
        dropout = attention.dropout if self.training else 0.0
        attended = attend(q, k, v, seen, terms, dropout).transpose(1, 2).flatten(2)
        attended = attention.out_proj(attended)
        return self.dropout1(attended if attention.batch_first else attended.transpose(0, 1))
