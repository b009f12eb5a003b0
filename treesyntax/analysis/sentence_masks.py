"""Draw the summed relation masks of one sentence, a row a layer and a panel a head.

Each panel shows sum_m s_m M_m for all pairs of tokens (McDonald & Chiang 2021, Fig. 2), of which
-exp is added to the logits. The rows are labelled with the tokens, each behind as many dots as its
node is deep in the tree.

Example: python -m treesyntax.analysis.sentence_masks checkpoint_best.pt data-bin/en-de --out figures
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

from treesyntax.analysis.figures import (
    DIVERGING,
    colour_bar,
    heat_map,
    name_ticks,
    run_analysis,
    write_figure,
    write_numbers,
)
from treesyntax.analysis.loading import build_method, vocabulary_size
from treesyntax.analysis.sentences import AnalysedSentence, Sentences, add_data_arguments
from treesyntax.methods.relation_mask import RelationMask
from treesyntax.model.checkpoint import load_checkpoint
from treesyntax.nn.coordinates import depth

NAME = "sentence_masks"
MOST_DOTS = 12
EFFECT = {"exp": "adds −exp of it", "additive": "added as it is"}


@dataclass(frozen=True)
class SentenceMasks:
    """Summed masks of a sentence.

    Attributes:
        summed: [layers, heads, T, T], one layer or head where all share their strengths.
        symbols: the T tokens.
        depths: of the tokens' nodes [T], -1 for none.
        form: of the masks, as in :class:`treesyntax.methods.relation_mask.RelationMask`.
    """

    summed: NDArray[np.float64]
    symbols: tuple[str, ...]
    depths: tuple[int, ...]
    form: str


@torch.no_grad()
def compute_sentence_masks(method: RelationMask, sentence: AnalysedSentence) -> SentenceMasks:
    """The sum of all strengths that hold for each pair of tokens; 0 where no mask covers it."""
    codes = method.pair_codes(sentence.tree)[0].long()
    strengths = method.strengths.double()
    summed = (strengths @ method.membership.double())[:, :, codes]
    depths = sentence.tree.at_tokens(depth(sentence.tree))[0].tolist()
    return SentenceMasks(summed.numpy(), sentence.symbols, tuple(depths), method.form)


def draw_sentence_masks(found: SentenceMasks) -> Figure:
    """Layers down, heads across, all on one scale that is symmetric around 0."""
    layers, heads, tokens, _ = found.summed.shape
    side = min(max(0.16 * tokens, 1.6), 6.0)
    size = (side * heads + 2, side * layers + 1.2)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(layers, heads, squeeze=False, sharex=True, sharey=True)
    limit = float(np.abs(found.summed).max()) or 1.0
    for (layer, head), panel in np.ndenumerate(axes):
        image = heat_map(panel, found.summed[layer, head], (DIVERGING, -limit, limit))
        panel.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=8)
        panel.tick_params(labelsize=7)
    levels = zip(found.symbols, found.depths, strict=True)
    names = ["·" * min(max(level, 0), MOST_DOTS) + symbol for symbol, level in levels]
    for panel in axes[-1]:
        name_ticks(panel, found.symbols)
        panel.set_xlabel("key")
    for panel in axes[:, 0]:
        panel.set_yticks(range(tokens), names)
        panel.set_ylabel("query")
    colour_bar(figure, image, axes, f"summed mask ({EFFECT[found.form]})")
    return figure


def analyse(args: argparse.Namespace) -> None:
    """Read, compute, draw and write.

    Raises:
        TreeSyntaxError: for checkpoints, data or options that do not serve.
    """
    state = load_checkpoint(args.checkpoint)
    method = build_method(state, args.checkpoint, "encoder", "relation_mask")
    vocabulary = vocabulary_size(state, args.checkpoint)
    sentences = Sentences(args.data, args.subset, vocabulary)
    found = compute_sentence_masks(cast(RelationMask, method), sentences[args.sentence])
    write_figure(draw_sentence_masks(found), args.out, NAME)
    numbers = {
        "checkpoint": str(args.checkpoint),
        "data": str(sentences.prefix),
        "sentence": args.sentence,
        "tokens": list(found.symbols),
        "depths": list(found.depths),
        "form": found.form,
        "shape": ["layer", "head", "query", "key"],
        "summed": found.summed,
    }
    write_numbers(numbers, args.out, NAME)


def main(argv: Sequence[str] | None = None) -> int:
    """Draw the masks of one sentence; a fault is one line and status 2."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint", type=Path, help="a checkpoint with relation_mask")
    add_data_arguments(parser)
    parser.add_argument("--sentence", type=int, default=0, help="its number (%(default)s)")
    parser.add_argument("--out", type=Path, required=True, help=f"folder for {NAME}.svg, .json")
    args = parser.parse_args(argv)
    return run_analysis(NAME, lambda: analyse(args))


if __name__ == "__main__":
    sys.exit(main())
