"""The decoder: fairseq's, parameter name by parameter name, with a cache for step-by-step use."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from treesyntax.attention import Attention, KeyValues
from treesyntax.composition import Composition
from treesyntax.encoder import EncoderOutput
from treesyntax.injection import Site
from treesyntax.layers import FeedForward, Settings, make_positions, padding_index_of
from treesyntax.positions import token_positions


class DecoderLayer(FeedForward):
    """Causal self-attention, attention to the encoder, feed-forward."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.self_attn = Attention(settings.d_model, settings.heads, settings.attention_dropout)
        self.self_attn_layer_norm = nn.LayerNorm(settings.d_model)
        self.encoder_attn = Attention(
            settings.d_model,
            settings.heads,
            settings.attention_dropout,
            d_key=settings.d_memory or settings.d_model,
        )
        self.encoder_attn_layer_norm = nn.LayerNorm(settings.d_model)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        source: EncoderOutput,
        cached: LayerCache | None,
    ) -> Tensor:
        """[B, Q, d_model] to the same.

        Args:
            x: the target positions to compute.
            mask: over the target, as in :class:`Attention`.
            source: what the encoder gave.
            cached: earlier positions' keys and values; extended in place.
        """
        query = self._before(self.self_attn_layer_norm, x)
        memory = self.self_attn.project(query)
        if cached is not None:
            memory = cached.extend(memory)
        x = self._after(self.self_attn_layer_norm, x, self.self_attn(query, memory, mask))

        query = self._before(self.encoder_attn_layer_norm, x)
        known = cached.source if cached is not None else None
        source_memory = known or self.encoder_attn.project(source.memory)
        if cached is not None:
            cached.source = source_memory
        attended = self.encoder_attn(query, source_memory, source.mask)
        return self.feed_forward(self._after(self.encoder_attn_layer_norm, x, attended))


@dataclass
class LayerCache:
    """Keys and values of one decoder layer: of the prefix so far, and of the source."""

    prefix: KeyValues | None = None
    source: KeyValues | None = None

    def extend(self, new: KeyValues) -> KeyValues:
        """The prefix with new positions at its end."""
        if self.prefix is not None:
            new = KeyValues(
                torch.cat([self.prefix.keys, new.keys], dim=2),
                torch.cat([self.prefix.values, new.values], dim=2),
            )
        self.prefix = new
        return new


@dataclass
class Cache:
    """What incremental decoding remembers, layer by layer."""

    layers: list[LayerCache] = field(default_factory=list)

    def reorder(self, order: Tensor) -> None:
        """Keep the rows ``order`` of the batch, as beam search picks them."""
        for layer in self.layers:
            layer.prefix = layer.prefix and layer.prefix.reorder(order)
            layer.source = layer.source and layer.source.reorder(order)


class Decoder(nn.Module):
    """Transformer decoder over token sequences.

    Args:
        settings: sizes.
        embed_tokens: token embedding with a padding index.
        share_output: use the embedding as the output projection as well.
    """

    version: Tensor

    def __init__(
        self, settings: Settings, embed_tokens: nn.Embedding, share_output: bool = False
    ) -> None:
        nn.Module.__init__(self)
        self.settings = settings
        self.register_buffer("version", torch.tensor([3.0]))
        self.embed_tokens = embed_tokens
        self.padding_index = padding_index_of(embed_tokens)
        site = Site(settings.d_model, settings.heads, settings.layers)
        self.embed_positions = make_positions(
            settings, Composition("none", site), self.padding_index
        )
        self.layers = nn.ModuleList(DecoderLayer(settings) for _ in range(settings.layers))
        self.layer_norm = nn.LayerNorm(settings.d_model) if settings.normalize_before else None
        self.output_projection = nn.Linear(
            settings.d_model, embed_tokens.num_embeddings, bias=False
        )
        if share_output:
            self.output_projection.weight = embed_tokens.weight
        else:
            nn.init.normal_(self.output_projection.weight, std=settings.d_model**-0.5)

    def decode(self, tokens: Tensor, source: EncoderOutput, cache: Cache | None = None) -> Tensor:
        """Features of target positions.

        Args:
            tokens: LongTensor [B, T], the target shifted right by one.
            source: what the encoder gave.
            cache: with it, only the last position is computed, the earlier ones are remembered.

        Returns:
            [B, T, d_model], or [B, 1, d_model] with a cache.
        """
        positions = token_positions(tokens, self.padding_index)
        keep = tokens.ne(self.padding_index)[:, None, None]
        if cache is not None:
            tokens, positions = tokens[:, -1:], positions[:, -1:]
            cache.layers = cache.layers or [LayerCache() for _ in self.layers]
            mask = keep
        else:
            size = tokens.shape[1]
            causal = torch.ones(size, size, dtype=torch.bool, device=tokens.device).tril()
            mask = keep & causal
        scale = math.sqrt(self.settings.d_model) if self.settings.scale_embedding else 1.0
        x = scale * self.embed_tokens(tokens)
        if self.embed_positions is not None:
            x = x + self.embed_positions(positions)
        x = F.dropout(x, self.settings.dropout, self.training)
        for index, layer in enumerate(self.layers):
            x = layer(x, mask, source, cache.layers[index] if cache is not None else None)
        return x if self.layer_norm is None else self.layer_norm(x)
