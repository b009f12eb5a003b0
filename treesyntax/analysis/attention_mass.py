"""Share of the attention on each tree relation.

For every layer and head the weights from a token to all tokens in a relation to it are summed, then
averaged over the tokens that have a node. The chance level beside it is the same with equal weights on
all tokens of the sentence.

Any encoder can be measured, the plain one included: trees are needed to sort the pairs, not to compute
the weights.

Example: treesyntax analyse attention_mass checkpoint_best.pt data-bin/en-de --out figures
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from treesyntax.analysis.figures import head_panels, write_figure, write_numbers
from treesyntax.analysis.loading import build_encoder, source_record
from treesyntax.analysis.sentences import AnalysedSentence, Sentences
from treesyntax.data.token_files import find_prefix
from treesyntax.errors import InputError, OptionError
from treesyntax.jobs.terminal import tracked
from treesyntax.model.checkpoint import load_checkpoint
from treesyntax.model.encoder import Encoder
from treesyntax.nn.attention import Attention, KeyValues
from treesyntax.nn.node_maps import NodeMap
from treesyntax.nn.pairs import PairTerm, pair_weights
from treesyntax.nn.relations import RELATIONS, tree_relations
from treesyntax.nn.tree_batch import TreeBatch
from treesyntax.palette import DIVERGING, SEQUENTIAL

NAME = "attention_mass"
COLUMNS = (*RELATIONS, "no_node")
"""The relation of the query's node to the key's; ``no_node`` are keys without one."""

MOST_DOUBLINGS = 4.0
"""The colours of log2(attention / chance) end here, above and below 0."""


@dataclass(frozen=True)
class AttentionMass:
    """Mean attention by relation.

    Attributes:
        mass: [layers, heads, 10], in the order of :data:`COLUMNS`; rows sum to 1.
        chance: [10], the same under equal weights.
        queries: number of tokens that were averaged over.
        sentences: number of sentences that they come from.
    """

    mass: NDArray[np.float64]
    chance: NDArray[np.float64]
    queries: int
    sentences: int

    @property
    def doublings(self) -> NDArray[np.float64]:
        """[layers, heads, 10]: log2(mass / chance); NaN where a relation never occurs."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.chance > 0, np.log2(self.mass / self.chance), np.nan)


Asked = tuple[Tensor, KeyValues, Tensor | None, Sequence[PairTerm], NodeMap | None]
"""The arguments of a layer's :class:`Attention`."""


@torch.no_grad()
def attention_weights(encoder: Encoder, tokens: Tensor, tree: TreeBatch) -> list[Tensor]:
    """The weights [B, H, T, T] of every layer of an encoder in evaluation mode.

    Args:
        encoder: any.
        tokens: LongTensor [B, T].
        tree: the trees over these tokens.
    """
    weights: list[Tensor] = []

    def record(module: Attention, inputs: Asked) -> None:
        query, memory, mask, terms, node_map = inputs
        heads = memory.keys.shape[1]
        unmapped = module.q_proj(query).unflatten(2, (heads, -1)).transpose(1, 2)
        q = unmapped if node_map is None else node_map(unmapped)
        weights.append(pair_weights(q, memory.keys, mask, terms, unmapped))

    # A ModuleList is not generic: mypy knows its layers as modules only.
    hooks = [
        layer.self_attn.register_forward_pre_hook(record)  # type: ignore[union-attr]
        for layer in encoder.layers
    ]
    try:
        encoder.encode(tokens, tree)
    finally:
        for hook in hooks:
            hook.remove()
    return weights


def relation_sums(weights: Tensor, tree: TreeBatch) -> Tensor:
    """[H, 10] float64: weights [1, H, T, T] by relation, summed over the queries that have a node."""
    placed = tree.token_node[0] >= 0
    codes = tree_relations(tree)[0][placed].flatten().long()
    totals = torch.zeros(weights.shape[1], len(COLUMNS), dtype=torch.float64)
    return totals.index_add(1, codes, weights[0][:, placed].flatten(1).double())


def compute_attention_mass(
    encoder: Encoder, sentences: Iterable[AnalysedSentence]
) -> AttentionMass:
    """Mean attention by relation over all tokens of the sentences that have a node."""
    settings = encoder.settings
    mass = torch.zeros(settings.layers, settings.heads, len(COLUMNS), dtype=torch.float64)
    chance = torch.zeros(1, len(COLUMNS), dtype=torch.float64)
    queries = count = 0
    for sentence in sentences:
        layers = attention_weights(encoder, sentence.tokens, sentence.tree)
        mass += torch.stack([relation_sums(weights, sentence.tree) for weights in layers])
        size = sentence.tokens.shape[1]
        chance += relation_sums(torch.full((1, 1, size, size), 1 / size), sentence.tree)
        queries += int((sentence.tree.token_node >= 0).sum())
        count += 1
    if not queries:
        raise OptionError(f"none of the {count} sentences has a token with a node")
    return AttentionMass((mass / queries).numpy(), (chance / queries).numpy()[0], queries, count)


def draw_attention_mass(attention: AttentionMass) -> Figure:
    """Mass, a panel a layer; the last row is the chance level."""
    layers, heads, relations = attention.mass.shape
    chance = np.broadcast_to(attention.chance, (layers, 1, relations))
    shares = np.concatenate([attention.mass, chance], axis=1)
    figure = head_panels(
        shares,
        [name.replace("_", " ") for name in COLUMNS],
        [*(str(head + 1) for head in range(heads)), "chance"],
        (SEQUENTIAL, 0.0, float(shares.max())),
        ("relation of query to key", "share of the attention"),
    )
    for panel in figure.axes[:layers]:
        panel.axhline(heads - 0.5, color="white", linewidth=2)
    return figure


def draw_against_chance(attention: AttentionMass) -> Figure:
    """log2(mass / chance), a panel a layer; hatched where a relation never occurs."""
    return head_panels(
        attention.doublings.clip(-MOST_DOUBLINGS, MOST_DOUBLINGS),
        [name.replace("_", " ") for name in COLUMNS],
        [str(head + 1) for head in range(attention.mass.shape[1])],
        (DIVERGING, -MOST_DOUBLINGS, MOST_DOUBLINGS),
        ("relation of query to key", "log2(attention / chance)"),
    )


def read_attention_mass(checkpoint: Path, data: Path, subset: str, limit: int) -> AttentionMass:
    """Attention by relation of a checkpoint's encoder over sentences of its data.

    Sentences that are longer than the encoder's limit are left out: none was trained on.

    Args:
        checkpoint: a file of fairseq-train.
        data: folder of treesyntax binarize.
        subset: ``train``, ``valid`` or ``test``.
        limit: number of sentences to read, from the first.

    Raises:
        TreeSyntaxError: if checkpoint and data do not fit, or no token has a node.
    """
    if limit < 1:
        raise OptionError(f"--limit must be 1 or more, not {limit}")
    state = load_checkpoint(checkpoint)
    encoder = build_encoder(state, checkpoint)
    sentences = Sentences(data, subset, encoder.embed_tokens.num_embeddings, source_record(state))
    numbers = range(min(limit, len(sentences)))
    chosen = (sentences[index] for index in tracked(numbers, "sentences"))
    longest = encoder.settings.max_positions
    attention = compute_attention_mass(
        encoder, (sentence for sentence in chosen if sentence.tokens.shape[1] <= longest)
    )
    if not np.isfinite(attention.mass).all():
        raise InputError(checkpoint, None, "its attention weights are not numbers (NaN)")
    return attention


def analyse(checkpoint: Path, data: Path, subset: str, limit: int, out: Path) -> None:
    """Draw the attention of one checkpoint, and write the numbers."""
    attention = read_attention_mass(checkpoint, data, subset, limit)
    write_figure(draw_attention_mass(attention), out, NAME)
    write_figure(draw_against_chance(attention), out, f"{NAME}_against_chance")
    numbers = {
        "checkpoint": str(checkpoint),
        "data": str(find_prefix(data, subset, "source")),
        "sentences": attention.sentences,
        "queries": attention.queries,
        "relations": list(COLUMNS),
        "shape": ["layer", "head", "relation"],
        "mass": attention.mass,
        "chance": attention.chance,
        "log2_mass_over_chance": attention.doublings,
    }
    write_numbers(numbers, out, NAME)
