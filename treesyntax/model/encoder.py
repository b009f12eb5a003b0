"""The encoder: fairseq's, parameter name by parameter name, with one hook for trees.

A state dict of fairseq's ``TransformerEncoder`` loads strictly and gives the same output to float
tolerance; the methods add what they declare, nothing else is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.model.composition import Composition
from treesyntax.model.layers import (
    Layer,
    Layers,
    TransformerConfig,
    embedded_positions,
    make_positions,
    move_last,
    padding_index_of,
)
from treesyntax.nn.devices import can_be_read
from treesyntax.nn.dropout import Dropout
from treesyntax.nn.injection import LayerStates
from treesyntax.nn.node_maps import NodeMap
from treesyntax.nn.pairs import PairTerm
from treesyntax.nn.tree_batch import TreeBatch, check_over, refuse_padding


class EncoderLayer(Layer):
    """Self-attention and feed-forward."""

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        terms: Sequence[PairTerm],
        node_map: NodeMap | None = None,
    ) -> Tensor:
        """[B, T, d_model] to the same; the rest as in :class:`treesyntax.nn.attention.Attention`."""
        query = self._before(self.self_attn_layer_norm, x)
        memory = self.self_attn.project(query, node_map)
        attended = self.self_attn(query, memory, mask, terms, node_map)
        return self.feed_forward(self._after(self.self_attn_layer_norm, x, attended))

    def log_attention(
        self,
        x: Tensor,
        mask: Tensor | None,
        terms: Sequence[PairTerm],
        node_map: NodeMap | None,
        heads: int,
    ) -> Tensor:
        """What the first heads attend to, of the layer's input; see :meth:`Attention.log_weights`."""
        query = self._before(self.self_attn_layer_norm, x)
        return self.self_attn.log_weights(query, mask, terms, node_map, heads)


@dataclass
class EncoderOutput:
    """The output of an encoder: states for a decoder to attend to.

    Attributes:
        memory: [B, T, d_model].
        attention_mask: bool [B, T], True for real tokens; None where nothing is known to be padding.
        tokens: LongTensor [B, T], for a decoder that copies them.
        loss: what methods add to the loss in training, a sum over tokens; None where they do not.
    """

    memory: Tensor
    attention_mask: Tensor | None
    tokens: Tensor | None = None
    loss: Tensor | None = None

    @property
    def mask(self) -> Tensor | None:
        """The same as the attention takes it, [B, 1, 1, T]."""
        return None if self.attention_mask is None else self.attention_mask[:, None, None]


class Encoder(nn.Module):
    """Transformer encoder with injected trees.

    Args:
        settings: sizes and methods.
        embed_tokens: token embedding with a padding index.

    Raises:
        OptionError: for a method that makes no sense in an encoder.
    """

    version: Tensor

    def __init__(self, settings: TransformerConfig, embed_tokens: nn.Embedding) -> None:
        nn.Module.__init__(self)
        self.settings = settings
        self.register_buffer("version", torch.tensor([3.0]))
        self.embed_tokens = embed_tokens
        self.padding_index = padding_index_of(embed_tokens)
        self.injections = Composition(settings.injection, settings.site)
        if misplaced := self.injections.misplaced("encoder"):
            raise OptionError(f"{misplaced}; give it with --decoder-injection")
        self.embed_positions = make_positions(settings, self.injections, self.padding_index)
        self.layers = Layers(
            (EncoderLayer(settings) for _ in range(settings.site.layers)), settings
        )
        self.dropout = Dropout(settings.dropout)
        self.layer_norm = nn.LayerNorm(settings.d_model) if settings.normalize_before else None
        move_last(self, "injections")

    def forward(self, tokens: Tensor, tree: TreeBatch | None = None) -> EncoderOutput:
        """As :meth:`encode`."""
        return self.encode(tokens, tree)

    def encode(self, tokens: Tensor, tree: TreeBatch | None) -> EncoderOutput:
        """Encode a batch.

        Args:
            tokens: LongTensor [B, T], padded on either side.
            tree: the trees over these tokens; None if no method needs them.

        Raises:
            OptionError: if methods need trees and there are none, or they are no TreeBatch over these
                tokens, or over padding.
        """
        if tree is None and self.injections.needs_tree:
            raise OptionError(
                f"the method {self.settings.injection} needs trees, but the data has none for this "
                "side; binarize it from tree files (treesyntax binarize --source-format …)"
            )
        tree = TreeBatch.without_trees(tokens) if tree is None else tree
        check_over(tree, tokens)
        real = tokens.ne(self.padding_index)
        if can_be_read(real):
            refuse_padding(tree, real)
        scale, place_scale = self.settings.scales
        x = scale * self.embed_tokens(tokens)
        if self.embed_positions is not None:
            arguments = (self.embed_positions, tokens, self.padding_index)
            x = x + place_scale * embedded_positions(*arguments)
        encoding = self.injections.encode(tree)
        if encoding is not None:
            x = x + place_scale * encoding.to(x.dtype)
        x = self.dropout(x)
        if can_be_read(real) and bool(real.all()):
            x, loss = self._layers(x, None, tree)
            return EncoderOutput(x, None, tokens, loss)
        x, loss = self._layers(x * real.unsqueeze(-1), real[:, None, None], tree)
        return EncoderOutput(x, real, tokens, loss)

    def _layers(
        self, x: Tensor, mask: Tensor | None, tree: TreeBatch
    ) -> tuple[Tensor, Tensor | None]:
        drops = self.dropout.on and self.settings.attention_dropout > 0
        supervised = self.training and self.injections.has_losses
        terms_of = self.injections.relate(tree, may_compute=not drops and not supervised)
        node_map = self.injections.node_map(tree)
        losses: list[Tensor] = []

        def arguments_of(step: int) -> tuple[Tensor | None, list[PairTerm], NodeMap | None]:
            return mask, terms_of(step % len(self.layers)), node_map

        def watch(step: int, inputs: Tensor, outputs: Tensor) -> None:
            layer = cast(EncoderLayer, self.layers[step % len(self.layers)])
            attention = partial(layer.log_attention, inputs, *arguments_of(step))
            states = LayerStates(inputs, attention, outputs)
            losses.extend(self.injections.losses(step, states, tree))

        x = self.layers.run(x, arguments_of, watch if supervised else None)
        loss = torch.stack(losses).sum() if losses else None
        return (x if self.layer_norm is None else self.layer_norm(x)), loss
