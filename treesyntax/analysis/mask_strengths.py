"""Learned strengths of relation masks.

A panel a layer. The strength s of a relation in a head adds -exp(s) to the logits of all pairs in
that relation (McDonald & Chiang 2021, whose figure 3 this follows). Strengths start at 0. A large one
hides the relation from the head, a small one leaves it alone.

A table beside the figure, as Markdown and LaTeX, has the smallest and the largest strength of each
head, each layer and the model.

Example: treesyntax analyse mask_strengths checkpoint_best.pt --out figures
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from treesyntax.analysis.figures import (
    head_panels,
    signed,
    write_figure,
    write_numbers,
    write_table,
)
from treesyntax.analysis.loading import build_method
from treesyntax.methods.pairs.relation_mask import RelationMask
from treesyntax.model.checkpoint import load_checkpoint
from treesyntax.palette import DIVERGING
from treesyntax.study.results.table_text import Table

NAME = "mask_strengths"
ADDS = {"exp": "−exp(s)", "additive": "s"}


@dataclass(frozen=True)
class Strengths:
    """Learned strengths.

    Attributes:
        values: float [layers or 1, heads or 1, masks].
        relations: names of the masks, as in "i is the parent of j".
        form: how a strength becomes a bias, one of :data:`ADDS`.
    """

    values: NDArray[np.float64]
    relations: tuple[str, ...]
    form: str = "exp"


def read_strengths(checkpoint: Path, side: str = "encoder") -> Strengths:
    """The strengths in a checkpoint.

    Args:
        checkpoint: a file of fairseq-train.
        side: ``encoder`` or ``decoder``.

    Raises:
        InputError: if the model has no relation masks on that side.
    """
    state = load_checkpoint(checkpoint)
    method = cast(RelationMask, build_method(state, checkpoint, side, "relation_mask"))
    values = method.strengths.detach().double().numpy()
    return Strengths(values, method.masks.names, method.form)


def draw_strengths(strengths: Strengths) -> Figure:
    """A heat map a layer, heads by relations, all on one scale that is symmetric around 0."""
    limit = float(np.abs(strengths.values).max()) or 1.0
    return head_panels(
        strengths.values,
        columns=[name.replace("_", " ") for name in strengths.relations],
        rows=[str(head + 1) for head in range(strengths.values.shape[1])],
        scale=(DIVERGING, -limit, limit),
        labels=("relation of query to key", f"strength s   (adds {ADDS[strengths.form]})"),
    )


HEADER = ("layer", "head", "smallest", "of", "largest", "of", "range")


def table_rows(strengths: Strengths) -> list[list[str]]:
    """A line a head, then one a layer and one for all; see `HEADER`."""
    values = strengths.values
    layers, heads = values.shape[:2]
    blocks = [
        (str(layer + 1), str(head + 1), values[layer, head])
        for layer, head in np.ndindex(layers, heads)
    ]
    blocks += [(str(layer + 1), "all", values[layer]) for layer in range(layers) if heads > 1]
    blocks += [("all", "all", values)] if layers > 1 else []
    return [[layer, head, *_extremes(block, strengths.relations)] for layer, head, block in blocks]


def _extremes(block: NDArray[np.float64], relations: tuple[str, ...]) -> list[str]:
    flat = block.reshape(-1)
    ends = [int(flat.argmin()), int(flat.argmax())]
    names = [relations[end % len(relations)].replace("_", " ") for end in ends]
    low, high = flat[ends]
    return [signed(low), names[0], signed(high), names[1], f"{high - low:.2f}"]


def analyse(checkpoint: Path, side: str, out: Path) -> None:
    """Draw the strengths of one checkpoint, and write the table and the numbers."""
    strengths = read_strengths(checkpoint, side)
    write_figure(draw_strengths(strengths), out, NAME)
    caption = f"Strengths of relation masks, {side}"
    write_table(Table(caption, HEADER, table_rows(strengths)), out, NAME)
    numbers = {
        "checkpoint": str(checkpoint),
        "relations": list(strengths.relations),
        "shape": ["layer", "head", "relation"],
        "strengths": strengths.values,
    }
    write_numbers(numbers, out, NAME)
