"""Summed relation masks of one sentence.

A row a layer and a panel a head. Each panel shows sum_m s_m M_m for all pairs of tokens (McDonald &
Chiang 2021, Fig. 2); minus the exponential of it is added to the logits. The rows are labelled with
the tokens; the dots before a token count the depth of its node in the tree.

Example: treesyntax analyse sentence_masks checkpoint_best.pt data-bin/en-de --out figures
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

from treesyntax.analysis.figures import (
    colour_bar,
    heat_map,
    name_ticks,
    write_figure,
    write_numbers,
)
from treesyntax.analysis.loading import build_method, source_record, vocabulary_size
from treesyntax.analysis.sentences import AnalysedSentence, Sentences
from treesyntax.data.token_files import find_prefix
from treesyntax.methods.pairs.relation_mask import RelationMask
from treesyntax.model.checkpoint import load_checkpoint
from treesyntax.nn.coordinates import depth
from treesyntax.palette import DIVERGING

NAME = "sentence_masks"
MOST_DOTS = 12
EFFECT = {"exp": "adds −exp(sum)", "additive": "adds the sum"}


@dataclass(frozen=True)
class SentenceMasks:
    """Summed masks of a sentence.

    Attributes:
        summed: [layers, heads, T, T], one layer or head where all share their strengths.
        symbols: the T tokens.
        depths: of the tokens' nodes [T], -1 for none.
        form: of the masks, as in :class:`treesyntax.methods.pairs.relation_mask.RelationMask`.
    """

    summed: NDArray[np.float64]
    symbols: tuple[str, ...]
    depths: tuple[int, ...]
    form: str


@torch.no_grad()
def compute_sentence_masks(method: RelationMask, sentence: AnalysedSentence) -> SentenceMasks:
    """The sum of the strengths of all masks that cover a pair of tokens; 0 where none does."""
    codes = method.relation_ids(sentence.tree)[0].long()
    strengths = method.strengths.double()
    summed = (strengths @ method.membership.double())[:, :, codes]
    depths = sentence.tree.at_tokens(depth(sentence.tree))[0].tolist()
    return SentenceMasks(summed.numpy(), sentence.symbols, tuple(depths), method.form)


def draw_sentence_masks(masks: SentenceMasks) -> Figure:
    """Layers down, heads across, all on one scale that is symmetric around 0."""
    layers, heads, tokens, _ = masks.summed.shape
    side = min(max(0.16 * tokens, 1.6), 6.0)
    size = (side * heads + 2, side * layers + 1.2)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(layers, heads, squeeze=False, sharex=True, sharey=True)
    limit = float(np.abs(masks.summed).max()) or 1.0
    for (layer, head), panel in np.ndenumerate(axes):
        image = heat_map(panel, masks.summed[layer, head], (DIVERGING, -limit, limit))
        panel.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=8)
        panel.tick_params(labelsize=7)
    levels = zip(masks.symbols, masks.depths, strict=True)
    names = ["·" * min(max(level, 0), MOST_DOTS) + symbol for symbol, level in levels]
    for panel in axes[-1]:
        name_ticks(panel, masks.symbols)
        panel.set_xlabel("key")
    for panel in axes[:, 0]:
        panel.set_yticks(range(tokens), names)
        panel.set_ylabel("query")
    colour_bar(figure, image, axes, f"summed mask ({EFFECT[masks.form]})")
    return figure


def read_sentence_masks(checkpoint: Path, data: Path, subset: str, sentence: int) -> SentenceMasks:
    """The summed masks of a checkpoint's encoder over one sentence of its data.

    Args:
        checkpoint: a file of fairseq-train.
        data: folder of treesyntax binarize.
        subset: ``train``, ``valid`` or ``test``.
        sentence: its index in the subset.

    Raises:
        TreeSyntaxError: if the checkpoint has no masks, the data do not fit it, or there is no such
            sentence.
    """
    state = load_checkpoint(checkpoint)
    method = build_method(state, checkpoint, "encoder", "relation_mask")
    sentences = Sentences(data, subset, vocabulary_size(state, checkpoint), source_record(state))
    return compute_sentence_masks(cast(RelationMask, method), sentences[sentence])


def analyse(checkpoint: Path, data: Path, subset: str, sentence: int, out: Path) -> None:
    """Draw the masks of one sentence, and write the numbers."""
    masks = read_sentence_masks(checkpoint, data, subset, sentence)
    write_figure(draw_sentence_masks(masks), out, NAME)
    numbers = {
        "checkpoint": str(checkpoint),
        "data": str(find_prefix(data, subset, "source")),
        "sentence": sentence,
        "tokens": list(masks.symbols),
        "depths": list(masks.depths),
        "form": masks.form,
        "shape": ["layer", "head", "query", "key"],
        "summed": masks.summed,
    }
    write_numbers(numbers, out, NAME)
