"""What encoder and decoder have in common: settings, positions, the base of a layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from treesyntax.errors import OptionError
from treesyntax.model.composition import Composition, check_heads
from treesyntax.nn.attention import Attention
from treesyntax.nn.dropout import Dropout
from treesyntax.nn.injection import Site

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu}
POSITIONS = ("auto", "absolute", "none")
SCALINGS = ("up", "none", "down")


FLAGS = {
    "d_model": "embed_dim",
    "d_ff": "ffn_embed_dim",
    "heads": "attention_heads",
    "layers": "layers",
    "normalize_before": "normalize_before",
    "learned_positions": "learned_pos",
}
"""Sizes of a side in :class:`TransformerConfig`, and fairseq's names for them without the side."""


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes and switches of an encoder or a decoder, with fairseq's defaults.

    Attributes:
        injection: the methods, see :func:`treesyntax.model.composition.parse_spec`.
        positions: ``absolute`` adds fairseq's absolute positions, ``none`` does not, ``auto``
            does unless a method takes their place.
        embedding_scaling: how token embeddings and what says where they stand are brought to one
            scale (Csordás, Irie & Schmidhuber 2021). ``up`` multiplies embeddings by
            sqrt(d_model), as fairseq does. ``none`` multiplies nothing. ``down`` divides positions and
            encodings of nodes by sqrt(d_model). Each has a start of its own, :attr:`embedding_std`.
        scale_embedding: False leaves out the factor of ``up``, as fairseq's --no-scale-embedding.
        distinct_layers: how many layers have parameters of their own. They are applied in turn until
            ``layers`` have been. 1 is the universal Transformer (Dehghani et al. 2019), without halting
            and encodings of the step. 0 is all. A method's tables are shared in the same way.
        next_slot: whether a decoder also gets the encoding of the slot to be filled next.
        layer_dropout: probability of leaving a layer out in training.
        recompute: whether activations inside layers are computed again instead of stored.
        d_memory: width of the encoder's output, for a decoder of another width.
    """

    d_model: int = 512
    d_ff: int = 2048
    heads: int = 8
    layers: int = 6
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    activation: str = "relu"
    normalize_before: bool = False
    learned_positions: bool = False
    scale_embedding: bool = True
    max_positions: int = 1024
    injection: str = "none"
    positions: str = "auto"
    next_slot: bool = False
    layer_dropout: float = 0.0
    recompute: bool = False
    d_memory: int | None = None
    embedding_scaling: str = "up"
    distinct_layers: int = 0

    @classmethod
    def from_flags(cls, flags: Any, side: str) -> TransformerConfig:
        """The config of one side of a model, from the flags of fairseq-train.

        Args:
            flags: a namespace with fairseq's names, of our model or of its own ``transformer``.
            side: ``encoder`` or ``decoder``.
        """
        longest = "max_source_positions" if side == "encoder" else "max_target_positions"
        sizes = {name: getattr(flags, f"{side}_{flag}") for name, flag in FLAGS.items()}
        rates = ("dropout", "attention_dropout", "activation_dropout")
        return cls(
            **sizes,
            **{name: getattr(flags, name, getattr(cls, name)) for name in rates},
            activation=str(getattr(flags, "activation_fn", cls.activation)),
            scale_embedding=not getattr(flags, "no_scale_embedding", False),
            embedding_scaling=str(getattr(flags, "embedding_scaling", cls.embedding_scaling)),
            distinct_layers=getattr(flags, f"share_{side}_layers", cls.distinct_layers),
            max_positions=getattr(flags, longest, None) or cls.max_positions,
            injection=getattr(flags, f"{side}_injection", cls.injection),
            positions=str(getattr(flags, f"{side}_positions", cls.positions)),
            layer_dropout=getattr(flags, f"{side}_layerdrop", cls.layer_dropout),
            recompute=getattr(flags, "checkpoint_activations", cls.recompute),
            next_slot=side == "decoder" and getattr(flags, "decoder_next_slot", False),
            d_memory=getattr(flags, "encoder_embed_dim", None),
        )

    def __post_init__(self) -> None:
        """Raise OptionError for settings that cannot be built."""
        check_heads(self.d_model, self.heads)
        for name, value, valid in (
            ("activation function", self.activation, ACTIVATIONS),
            ("positions", self.positions, POSITIONS),
            ("embedding scaling", self.embedding_scaling, SCALINGS),
        ):
            if value not in valid:
                raise OptionError(f"unknown {name} {value!r}; valid are {', '.join(valid)}")
        if self.distinct_layers and (
            self.distinct_layers < 0 or self.layers % self.distinct_layers
        ):
            raise OptionError(
                f"{self.distinct_layers} shared layers cannot be repeated to {self.layers}; give a "
                f"divisor of {self.layers}, or 0"
            )

    @property
    def site(self) -> Site:
        """Where methods are built in: layers that share parameters share a method's tables."""
        return Site(self.d_model, self.heads, self.distinct_layers or self.layers)

    @property
    def scales(self) -> tuple[float, float]:
        """The factors of token embeddings, and of positions and encodings of nodes."""
        if self.embedding_scaling == "down":
            return 1.0, self.d_model**-0.5
        scaled = self.embedding_scaling == "up" and self.scale_embedding
        return math.sqrt(self.d_model) if scaled else 1.0, 1.0

    @property
    def embedding_std(self) -> float:
        """The standard deviation with which token embeddings start, that of the paper's program.

        fairseq's for ``up``, PyTorch's N(0, 1) for ``none``, Kaiming's for ``down``.
        """
        return {"up": self.d_model**-0.5, "none": 1.0, "down": (2 / self.d_model) ** 0.5}[
            self.embedding_scaling
        ]


def make_positions(
    settings: TransformerConfig, composition: Composition, padding_index: int
) -> nn.Module | None:
    """The absolute positions that the settings ask for."""
    wanted = settings.positions == "absolute" or (
        settings.positions == "auto" and not composition.replaces_positions
    )
    if not wanted:
        return None
    if settings.learned_positions:
        return LearnedPositions(settings.d_model, padding_index, settings.max_positions)
    return SinusoidalPositions(settings.d_model, padding_index)


class Layer(nn.Module):
    """Self-attention, the position-wise half of a layer, and the residual around a sub-layer."""

    def __init__(self, settings: TransformerConfig) -> None:
        super().__init__()
        self.settings = settings
        self.fc1 = nn.Linear(settings.d_model, settings.d_ff)
        self.fc2 = nn.Linear(settings.d_ff, settings.d_model)
        self.final_layer_norm = nn.LayerNorm(settings.d_model)
        self.self_attn = Attention(settings.d_model, settings.heads, settings.attention_dropout)
        self.self_attn_layer_norm = nn.LayerNorm(settings.d_model)
        self.dropout = Dropout(settings.dropout)
        self.activation_dropout = Dropout(settings.activation_dropout)
        # Made first, so that seeds give the numbers that they always gave; counted last, as fairseq does.
        move_last(self, "fc1", "fc2", "final_layer_norm")

    def _before(self, norm: nn.LayerNorm, x: Tensor) -> Tensor:
        return norm(x) if self.settings.normalize_before else x

    def _after(self, norm: nn.LayerNorm, residual: Tensor, change: Tensor) -> Tensor:
        x = residual + self.dropout(change)
        return x if self.settings.normalize_before else norm(x)

    def feed_forward(self, x: Tensor) -> Tensor:
        """The feed-forward sub-layer with its residual and norm, [B, T, d_model]."""
        hidden = ACTIVATIONS[self.settings.activation](
            self.fc1(self._before(self.final_layer_norm, x))
        )
        return self._after(self.final_layer_norm, x, self.fc2(self.activation_dropout(hidden)))


class Layers(nn.ModuleList):
    """A stack of layers, with LayerDrop (Fan, Grave & Joulin 2020) and recomputed activations.

    Args:
        layers: those with parameters of their own, from the first to the last.
        settings: ``layers`` is how many are applied, in turn; ``layer_dropout`` is the probability
            of leaving one out in training; with ``recompute`` the backward pass runs each layer
            once more instead of storing what is in it.
    """

    def __init__(self, layers: Iterable[nn.Module], settings: TransformerConfig) -> None:
        super().__init__(layers)
        self.layer_dropout, self.recompute = settings.layer_dropout, settings.recompute
        self.applied = settings.layers

    def run(
        self,
        x: Tensor,
        arguments_of: Callable[[int], Sequence[Any]],
        watch: Callable[[int, Tensor, Tensor], None] | None = None,
    ) -> Tensor:
        """[B, T, d_model] through all layers, each with the other arguments of its step.

        ``watch`` gets the step, the input and the output of every layer that is not left out.
        """
        kept = [True] * self.applied
        if self.training and self.layer_dropout:
            kept = (torch.empty(self.applied).uniform_() > self.layer_dropout).tolist()
        recompute = self.recompute and self.training and torch.is_grad_enabled()
        for index in range(self.applied):
            layer = self[index % len(self)]
            if kept[index]:
                run = partial(checkpoint, layer, use_reentrant=False) if recompute else layer
                inputs, x = x, run(x, *arguments_of(index))
                if watch is not None:
                    watch(index, inputs, x)
        return x


def move_last(module: nn.Module, *names: str) -> None:
    """Let the parameters of some parts come last among a module's, in this order."""
    for name in names:
        if name in module._modules:  # an absent part is a plain None
            module.register_module(name, module._modules.pop(name))


def padding_index_of(embedding: nn.Embedding) -> int:
    """The padding index of a token embedding, which must have one."""
    if embedding.padding_idx is None:
        raise ValueError("the token embedding needs a padding index")
    return embedding.padding_idx


class SinusoidalPositions(nn.Module):
    """Sines and cosines of positions that count non-padding tokens (Vaswani et al. 2017, 3.5).

    As in fairseq, which follows tensor2tensor: all sines first, then all cosines; the first
    token's position is ``padding_index + 1``; padding gets zeros.
    """

    table: Tensor

    def __init__(self, d_model: int, padding_index: int) -> None:
        super().__init__()
        self.d_model, self.padding_index = d_model, padding_index
        self.register_buffer("table", self._rows(1024), persistent=False)

    def _rows(self, count: int) -> Tensor:
        half = self.d_model // 2
        rates = torch.exp(torch.arange(half) * -(math.log(10000) / max(half - 1, 1)))
        angles = torch.arange(count).unsqueeze(1) * rates
        rows = torch.cat([angles.sin(), angles.cos()], dim=1)
        rows = F.pad(rows, (0, self.d_model - 2 * half))
        rows[self.padding_index] = 0
        return rows

    def forward(self, positions: Tensor, tokens: int = 0) -> Tensor:
        """Rows [..., d_model] of integer positions; of the last ones alone of more tokens, how many."""
        needed = self.padding_index + 1 + max(tokens, positions.shape[1])
        if needed > len(self.table):
            self.table = self._rows(2 * needed).to(self.table)
        return self.table[positions]


class LearnedPositions(nn.Embedding):
    """Learned absolute positions under fairseq's name and numbering."""

    def __init__(self, d_model: int, padding_index: int, max_positions: int) -> None:
        super().__init__(max_positions + padding_index + 1, d_model, padding_index)
        nn.init.normal_(self.weight, std=d_model**-0.5)
        nn.init.zeros_(self.weight[padding_index])


def token_positions(tokens: Tensor, padding_index: int) -> Tensor:
    """LongTensor [B, T]: padding_index + 1, + 2, … for tokens, padding_index for padding."""
    real = tokens.ne(padding_index).long()
    return real.cumsum(1) * real + padding_index


def embedded_positions(
    embed: nn.Module, tokens: Tensor, padding_index: int, columns: slice = slice(None)
) -> Tensor:
    """Absolute positions [B, C, d_model] of some columns of tokens [B, T]."""
    number = (tokens.shape[1],) if isinstance(embed, SinusoidalPositions) else ()
    embedded: Tensor = embed(token_positions(tokens, padding_index)[:, columns], *number)
    return embedded
