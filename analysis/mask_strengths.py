"""Draw the learned strengths of relation masks, one panel a layer.

The strength s of a relation in a head adds -exp(s) to the logits of all pairs in that relation
(McDonald & Chiang 2021; the figure follows their Fig. 3). Strengths start at 0;
a large one hides the relation from the head, a small one leaves it alone.

Example: python -m analysis.mask_strengths checkpoint_best.pt --out figures
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from treesyntax.checkpoint import load_checkpoint
from treesyntax.errors import InputError, TreeSyntaxError
from treesyntax.files import atomic_file
from treesyntax.relations import RELATIONS

KEY = "encoder.injections.relation_mask.strengths"
NAME = "mask_strengths"
COLOURS = "PuOr_r"  # diverging, and told apart with every kind of colour blindness
PANEL_COLUMNS = 3


@dataclass(frozen=True)
class Strengths:
    """Learned strengths.

    Attributes:
        values: float [layers, heads, relations].
        relations: names of the relations, as in "i is the parent of j".
    """

    values: NDArray[np.float64]
    relations: tuple[str, ...]


def compute_strengths(state: Mapping[str, Any]) -> Strengths:
    """The strengths in a checkpoint.

    Args:
        state: a checkpoint as :func:`treesyntax.checkpoint.load_checkpoint` reads it.

    Raises:
        KeyError: if the model has no relation masks.
    """
    values = state["model"][KEY].double().numpy()
    return Strengths(values, RELATIONS)


def draw_strengths(strengths: Strengths) -> Figure:
    """A heat map a layer, heads by relations, all on one scale that is symmetric around 0."""
    layers, heads, relations = strengths.values.shape
    columns = min(layers, PANEL_COLUMNS)
    rows = -(-layers // columns)
    size = (3.4 * columns + 0.8, (0.32 * heads + 1.5) * rows + 0.4)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True)
    limit = float(np.abs(strengths.values).max()) or 1.0
    for layer, panel in enumerate(axes.flat):
        if layer >= layers:
            panel.set_visible(False)
            continue
        image = panel.imshow(
            strengths.values[layer], cmap=COLOURS, vmin=-limit, vmax=limit, aspect="auto"
        )
        panel.set_title(f"layer {layer + 1}")
        panel.set_xticks(range(relations), [name.replace("_", " ") for name in strengths.relations])
        panel.tick_params(axis="x", labelrotation=55)
        for label in panel.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
        panel.set_yticks(range(heads), [str(head + 1) for head in range(heads)])
        panel.set_xlabel("what query is to key")
    for panel in axes[:, 0]:
        panel.set_ylabel("head")
    bar = figure.colorbar(image, ax=axes, shrink=0.9)
    bar.set_label("strength s   (adds −exp(s))")
    return figure


def write_strengths(strengths: Strengths, checkpoint: Path, folder: Path) -> None:
    """Write the numbers as JSON and the figure as SVG and PNG.

    Raises:
        InputError: if the folder cannot be written.
    """
    content = {
        "checkpoint": str(checkpoint),
        "relations": list(strengths.relations),
        "shape": ["layer", "head", "relation"],
        "strengths": strengths.values.tolist(),
    }
    figure = draw_strengths(strengths)
    # Text as text, not as outlines: it can be read, searched and scaled.
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        for suffix, options in (("svg", {"metadata": {"Date": None}}), ("png", {"dpi": 160})):
            with atomic_file(folder / f"{NAME}.{suffix}") as staged:
                figure.savefig(staged, format=suffix, **options)
    with atomic_file(folder / f"{NAME}.json") as staged:
        staged.write_text(json.dumps(content, indent=1), encoding="utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    """Draw the strengths of one checkpoint; a fault is one line and status 2."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint", type=Path, help="a checkpoint of fairseq-train")
    parser.add_argument("--out", type=Path, required=True, help=f"folder for {NAME}.svg .png .json")
    args = parser.parse_args(argv)
    try:
        state = load_checkpoint(args.checkpoint)
        try:
            strengths = compute_strengths(state)
        except KeyError:
            raise InputError(
                args.checkpoint, None, "has no relation masks", "give one of relation_mask"
            ) from None
        write_strengths(strengths, args.checkpoint, args.out)
    except TreeSyntaxError as error:
        print(f"mask_strengths: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
