"""Draw the learned strengths of relation masks, one panel a layer.

The strength s of a relation in a head adds -exp(s) to the logits of all pairs in that relation
(McDonald & Chiang 2021; the figure follows their Fig. 3). Strengths start at 0;
a large one hides the relation from the head, a small one leaves it alone.

Example: python -m treesyntax.analysis.mask_strengths checkpoint_best.pt --out figures
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from treesyntax.analysis.figures import (
    DIVERGING,
    head_panels,
    run_analysis,
    write_figure,
    write_numbers,
)
from treesyntax.analysis.loading import SIDES
from treesyntax.errors import InputError
from treesyntax.files import atomic_file
from treesyntax.model.checkpoint import load_checkpoint
from treesyntax.model.composition import parse_spec
from treesyntax.nn.masks import Masks

KEY = "{side}.injections.relation_mask.strengths"
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


def compute_strengths(state: Mapping[str, Any], side: str = "encoder") -> Strengths:
    """The strengths in a checkpoint.

    Args:
        state: a checkpoint as :func:`treesyntax.model.checkpoint.load_checkpoint` reads it.
        side: ``encoder`` or ``decoder``.

    Raises:
        KeyError: if the model has no relation masks on that side.
        OptionError: if its masks name relations that are not registered here.
    """
    values = state["model"][KEY.format(side=side)].double().numpy()
    found = state["cfg"]["model"]
    flags = found if isinstance(found, dict) else vars(found)
    options = parse_spec(flags[f"{side}_injection"])["relation_mask"]
    masks = Masks.parse(options.get("relations", "all"))
    return Strengths(values, masks.names, options.get("form", "exp"))


def draw_strengths(strengths: Strengths) -> Figure:
    """A heat map a layer, heads by relations, all on one scale that is symmetric around 0."""
    limit = float(np.abs(strengths.values).max()) or 1.0
    return head_panels(
        strengths.values,
        columns=[name.replace("_", " ") for name in strengths.relations],
        rows=[str(head + 1) for head in range(strengths.values.shape[1])],
        scale=(DIVERGING, -limit, limit),
        labels=("what query is to key", f"strength s   (adds {ADDS[strengths.form]})"),
    )


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
    write_figure(figure, folder, NAME)
    with atomic_file(folder / f"{NAME}.png") as staged:
        figure.savefig(staged, format="png", dpi=160)
    write_numbers(content, folder, NAME)


def main(argv: Sequence[str] | None = None) -> int:
    """Draw the strengths of one checkpoint; a fault is one line and status 2."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint", type=Path, help="a checkpoint of fairseq-train")
    parser.add_argument("--side", choices=SIDES, default="encoder", help="(%(default)s)")
    parser.add_argument("--out", type=Path, required=True, help=f"folder for {NAME}.svg .png .json")
    args = parser.parse_args(argv)
    return run_analysis(NAME, lambda: analyse(args))


def analyse(args: argparse.Namespace) -> None:
    """Read, draw and write.

    Raises:
        InputError: for a checkpoint without relation masks, or a folder that cannot be written.
    """
    try:
        strengths = compute_strengths(load_checkpoint(args.checkpoint), args.side)
    except KeyError:
        raise InputError(
            args.checkpoint,
            None,
            f"has no relation masks in its {args.side}",
            f"give one of --{args.side}-injection relation_mask",
        ) from None
    write_strengths(strengths, args.checkpoint, args.out)


if __name__ == "__main__":
    sys.exit(main())
