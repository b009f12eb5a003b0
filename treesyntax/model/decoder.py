"""The decoder: fairseq's, parameter name by parameter name, with a kv cache for step-by-step decoding.

Methods are injected over the tree that the target tokens have grown so far. It is a function of the
tokens alone, so training, step-by-step decoding and any beam see the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.model.bracket_growth import GROWING, GrowingBrackets, PartialBrackets
from treesyntax.model.composition import Composition
from treesyntax.model.encoder import EncoderOutput
from treesyntax.model.layers import (
    Layer,
    Layers,
    TransformerConfig,
    embedded_positions,
    make_positions,
    move_last,
    padding_index_of,
)
from treesyntax.nn.attention import Attention, KeyValues
from treesyntax.nn.copying import Copying, CopySource
from treesyntax.nn.devices import can_be_read
from treesyntax.nn.dropout import Dropout
from treesyntax.nn.growth import GrowingTrees, PartialTrees
from treesyntax.nn.injection import Injection, Site
from treesyntax.nn.node_maps import NodeMap
from treesyntax.nn.pairs import PairTerm
from treesyntax.nn.tree_batch import TreeBatch, check_over


class DecoderLayer(Layer):
    """Causal self-attention, attention to the encoder, feed-forward."""

    def __init__(self, settings: TransformerConfig) -> None:
        super().__init__(settings)
        self.encoder_attn = Attention(
            settings.d_model,
            settings.heads,
            settings.attention_dropout,
            d_key=settings.d_memory or settings.d_model,
        )
        self.encoder_attn_layer_norm = nn.LayerNorm(settings.d_model)
        move_last(self, "fc1", "fc2", "final_layer_norm")

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None,
        terms: Sequence[PairTerm],
        source: EncoderOutput,
        cached: LayerKVCache | None,
        node_map: NodeMap | None = None,
    ) -> Tensor:
        """[B, Q, d_model] of the positions to compute to the same; extends ``cached`` in place.

        Mask, terms and map are over the target, as in :class:`Attention`.
        """
        query = self._before(self.self_attn_layer_norm, x)
        memory = self.self_attn.project(query, node_map)
        if cached is not None:
            memory = cached.extend(memory)
        attended = self.self_attn(query, memory, mask, terms, node_map)
        x = self._after(self.self_attn_layer_norm, x, attended)

        query = self._before(self.encoder_attn_layer_norm, x)
        known = cached.source if cached is not None else None
        source_memory = known or self.encoder_attn.project(source.memory)
        if cached is not None:
            cached.source = source_memory
        attended = self.encoder_attn(query, source_memory, source.mask)
        return self.feed_forward(self._after(self.encoder_attn_layer_norm, x, attended))


@dataclass
class LayerKVCache:
    """The kv cache of one decoder layer: of the prefix so far, and of the source."""

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
class KVCache:
    """A cache of keys and values for step-by-step decoding, layer by layer."""

    layers: list[LayerKVCache] = field(default_factory=list)
    copied: CopySource | None = None

    @property
    def length(self) -> int:
        """How many positions it holds."""
        prefix = self.layers[0].prefix if self.layers else None
        return 0 if prefix is None else prefix.keys.shape[2]

    def reorder(self, order: Tensor) -> None:
        """Keep the rows ``order`` of the batch, as beam search picks them."""
        for layer in self.layers:
            layer.prefix = layer.prefix and layer.prefix.reorder(order)
            layer.source = layer.source and layer.source.reorder(order)
        self.copied = self.copied and self.copied.reorder(order)


class Decoder(nn.Module):
    """Transformer decoder over token sequences, with methods over the trees that they grow.

    The encoding added to an input token is that of its own node; the start symbol, like the root,
    has the empty path (Shiv & Quirk 2019, section 4). With ``settings.next_slot``, a model of our
    own, the encoding of the slot to be filled next is added as well, by methods of its own.

    Args:
        settings: sizes and methods.
        embed_tokens: token embedding with a padding index.
        share_output: use the embedding as the output projection as well.
        trees: how target tokens grow trees; None if no method needs them.
        copies: LongTensor [F, V_source], the target ids of source tokens, which the decoder then
            copies from the source; see :class:`treesyntax.nn.copying.Copying`.

    Raises:
        OptionError: if a method would see the future, if it needs trees or their slots and there are
            none, or if no method encodes the next slot.
    """

    version: Tensor

    def __init__(
        self,
        settings: TransformerConfig,
        embed_tokens: nn.Embedding,
        share_output: bool = False,
        trees: GrowingTrees | GrowingBrackets | None = None,
        copies: Tensor | None = None,
    ) -> None:
        nn.Module.__init__(self)
        self.settings = settings
        self.register_buffer("version", torch.tensor([3.0]))
        self.embed_tokens = embed_tokens
        self.padding_index = padding_index_of(embed_tokens)
        self.injections = Composition(settings.injection, settings.site)
        self.trees = trees
        self._check_methods()
        self.next_slot = (
            _encodings_alone(settings.injection, settings.site) if settings.next_slot else None
        )
        self.embed_positions = make_positions(settings, self.injections, self.padding_index)
        self.layers = Layers(
            (DecoderLayer(settings) for _ in range(settings.site.layers)), settings
        )
        self.dropout = Dropout(settings.dropout)
        self.layer_norm = nn.LayerNorm(settings.d_model) if settings.normalize_before else None
        self.output_projection = nn.Linear(
            settings.d_model, embed_tokens.num_embeddings, bias=False
        )
        if share_output:
            self.output_projection.weight = embed_tokens.weight
        else:
            nn.init.normal_(self.output_projection.weight, std=settings.d_model**-0.5)
        d_memory = settings.d_memory or settings.d_model
        self.copying = None if copies is None else Copying(settings.d_model, d_memory, copies)
        move_last(self, "injections", "next_slot", "copying")

    def _check_methods(self) -> None:
        if misplaced := self.injections.misplaced("decoder"):
            raise OptionError(f"{misplaced}; give it with --encoder-injection")
        leak = self.injections.leaks_future()
        if leak is not None:
            raise OptionError(
                f"a decoder cannot use {self.settings.injection}, it would see the future: {leak}"
            )
        if self.injections.needs_tree and self.trees is None:
            raise OptionError(
                f"the decoder's method {self.settings.injection} needs a target whose tokens grow "
                "a tree; binarize it with --target-linearization "
                f"{' or '.join(GROWING)}"
            )
        if isinstance(self.trees, GrowingBrackets):
            self.trees.check(self.injections, self.settings.next_slot)

    def forward(
        self, tokens: Tensor, source: EncoderOutput, cache: KVCache | None = None
    ) -> Tensor:
        """Logits [B, T, V], or [B, 1, V] of the last position with a cache; see :meth:`decode`."""
        return self.output(self.decode(tokens, source, cache), source, cache)

    def decode(
        self,
        tokens: Tensor,
        source: EncoderOutput,
        cache: KVCache | None = None,
        partial: PartialTrees | PartialBrackets | None = None,
    ) -> Tensor:
        """Features of target positions.

        Args:
            tokens: LongTensor [B, T], the target shifted right by one.
            source: the encoder's output.
            cache: kv cache; with it, only the last position is computed.
            partial: the partial trees of these tokens, where the caller has placed them already.

        Returns:
            [B, T, d_model], or [B, 1, d_model] with a cache.

        Raises:
            OptionError: if the cache is not of all tokens but the last, or trees shall grow of tokens that do not
                begin with a start symbol.
        """
        if cache is not None and cache.length != tokens.shape[1] - 1:
            raise OptionError(
                f"the cache holds {cache.length} positions, and there are {tokens.shape[1]} tokens: a call adds one "
                "token; give each sentence a new KVCache, and its first tokens one call after another"
            )
        if self.trees is not None:
            self._check_start(tokens, self.trees.labels)
            partial = partial or self.trees.grow(tokens)
        tree = self._tree(tokens, partial)
        mask = tokens.ne(self.padding_index)[:, None, None]
        columns = slice(None)
        if cache is not None:
            columns = slice(-1, None)
            cache.layers = cache.layers or [LayerKVCache() for _ in range(self.layers.applied)]
        else:
            size = tokens.shape[1]
            mask = mask & torch.ones(size, size, dtype=torch.bool, device=tokens.device).tril()
        terms_of = self.injections.relate(tree, rows=columns)
        node_map = self.injections.node_map(tree, columns)
        x = self._embedded(tokens, tree, partial, columns)
        cached = None if cache is None else cache.layers
        x = self.layers.run(
            self.dropout(x),
            lambda step: (
                mask,
                terms_of(step % len(self.layers)),
                source,
                cached and cached[step],
                node_map,
            ),
        )
        return x if self.layer_norm is None else self.layer_norm(x)

    def output(
        self, features: Tensor, source: EncoderOutput, cache: KVCache | None = None
    ) -> Tensor:
        """Logits [B, T, V] of what :meth:`decode` gave; log-probabilities where it copies."""
        logits = self.output_projection(features)
        if self.copying is None:
            return logits
        copied = None if cache is None else cache.copied
        if copied is None:
            if source.tokens is None:
                raise ValueError("the decoder copies tokens, but the encoder's output has none")
            copied = self.copying.source(source.memory, source.tokens)
        if cache is not None:
            cache.copied = copied
        return self.copying(logits, features, copied)

    def _check_start(self, tokens: Tensor, labels: Tensor) -> None:
        """Refuse targets that are padded on the left or not shifted: no tree, or one without its root, would grow."""
        first, real = tokens[:, :1], tokens.ne(self.padding_index)
        padded = ~real[:, :1] & real.any(1, keepdim=True)  # a row of padding alone grows nothing
        if can_be_read(first) and ((labels[first] > 0) | padded).any():
            raise OptionError(
                "a target begins with padding or a node, so that its tree does not grow; give a decoder the start "
                "symbol first, then the tokens but the last, and padding on the right"
            )

    def trees_of(self, tokens: Tensor) -> TreeBatch:
        """What its methods see of target tokens [B, T]: the trees that these grow."""
        return self._tree(tokens, None if self.trees is None else self.trees.grow(tokens))

    def _tree(self, tokens: Tensor, partial: PartialTrees | PartialBrackets | None) -> TreeBatch:
        if partial is None or not self.injections.needs_tree:
            return TreeBatch.without_trees(tokens)
        check_over(partial.tree, tokens)
        return partial.tree

    def _embedded(
        self,
        tokens: Tensor,
        tree: TreeBatch,
        partial: PartialTrees | PartialBrackets | None,
        columns: slice,
    ) -> Tensor:
        """Some columns with their positions and the encodings of their nodes."""
        scale, place_scale = self.settings.scales
        x = scale * self.embed_tokens(tokens[:, columns])
        if self.embed_positions is not None:
            arguments = (self.embed_positions, tokens, self.padding_index, columns)
            x = x + place_scale * embedded_positions(*arguments)
        encodings = [self.injections.encode(_of_columns(tree, columns))]
        if self.next_slot is not None and isinstance(partial, PartialTrees):
            encodings.append(self.next_slot.encode(_of_columns(partial.next_slots, columns)))
        for encoding in encodings:
            if encoding is not None:
                x = x + place_scale * encoding.to(x.dtype)
        return x


def _encodings_alone(spec: str, site: Site) -> Composition:
    """The methods of a spec that encode nodes of a tree, without those that relate pairs."""
    methods = Composition(spec, site)
    for name, method in zip(list(methods), methods.methods, strict=True):
        encodes = type(method).node_encoding is not Injection.node_encoding
        if not (encodes and method.needs_tree):
            methods.pop(name)
    if not methods:
        raise OptionError(
            f"the next slot has no encoding with {spec!r}; add a method that encodes nodes, such "
            "as stack_pe"
        )
    return methods


def _of_columns(tree: TreeBatch, columns: slice) -> TreeBatch:
    return TreeBatch(tree.parent, tree.branch, tree.token_node[:, columns], tree.label, check=False)
