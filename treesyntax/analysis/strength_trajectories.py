"""Strengths of relation masks over a training.

A panel a layer. Each line is the mean over heads of one mask's strength s (McDonald & Chiang 2021);
all start at the same value. The JSON file holds every head. If several checkpoints have the same
update, the first is drawn.

Example: treesyntax analyse strength_trajectories checkpoints/checkpoint_*.pt --out figures
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from treesyntax.analysis.figures import panel_grid, write_figure, write_numbers
from treesyntax.analysis.loading import build_method
from treesyntax.errors import InputError, OptionError
from treesyntax.jobs.terminal import tracked
from treesyntax.methods.pairs.relation_mask import RelationMask
from treesyntax.model.checkpoint import load_checkpoint
from treesyntax.palette import line_of

NAME = "strength_trajectories"
FEWEST = 3
"""Updates that a line needs."""


@dataclass(frozen=True)
class Moment:
    """The strengths at one time of a training.

    Attributes:
        update: number of updates before it.
        masks: names of the masks.
        values: [layers, heads, masks], one layer or head where all share their strengths.
        path: of the checkpoint.
    """

    update: int
    masks: tuple[str, ...]
    values: NDArray[np.float64]
    path: str


def read_moment(path: Path, side: str = "encoder") -> Moment:
    """The strengths in a checkpoint."""
    state = load_checkpoint(path)
    method = cast(RelationMask, build_method(state, path, side, "relation_mask"))
    try:
        update = int(state["optimizer_history"][-1]["num_updates"])
    except (KeyError, IndexError, TypeError, ValueError):
        raise InputError(path, None, "does not say its number of updates") from None
    values = method.strengths.detach().double().numpy()
    return Moment(update, method.masks.names, values, str(path))


def read_trajectories(checkpoints: Sequence[Path], side: str) -> list[Moment]:
    """The strengths in checkpoints in the order of time, one moment an update.

    Raises:
        InputError: if one has no masks, or they are not of one training.
        OptionError: if they are of too few updates for a line.
    """
    moments = [read_moment(path, side) for path in tracked(checkpoints, "checkpoints")]
    first = moments[0]
    for moment in moments[1:]:
        if (moment.masks, moment.values.shape) != (first.masks, first.values.shape):
            raise InputError(
                moment.path,
                None,
                f"has other masks or sizes than {first.path}",
                "give checkpoints of one training",
            )
    by_update = {moment.update: moment for moment in reversed(moments)}
    if len(by_update) < FEWEST:
        raise OptionError(
            f"there are checkpoints of {len(by_update)} updates, too few for a line; keep more with "
            "fairseq-train --keep-interval-updates, or train.keep-interval-updates of a recipe"
        )
    return [by_update[update] for update in sorted(by_update)]


def draw_trajectories(moments: Sequence[Moment]) -> Figure:
    """Strength over updates, a line a mask."""
    values = np.stack([moment.values for moment in moments]).mean(2)
    updates = [moment.update for moment in moments]
    layers, masks = values.shape[1:]
    figure, axes = panel_grid(layers, (3.4, 2.6), (1.6, 0), sharex=True)
    for layer, panel in zip(range(layers), axes.flat, strict=False):
        panel.axhline(0, color="0.6", linewidth=0.8)
        for mask in range(masks):
            panel.plot(
                updates,
                values[:, layer, mask],
                **line_of(mask),
                markersize=4,
                label=moments[0].masks[mask].replace("_", " ") if not layer else None,
            )
        panel.set_title(f"layer {layer + 1}")
        panel.set_xlabel("update")
        panel.tick_params(labelbottom=True)
    for panel in axes[:, 0]:
        panel.set_ylabel("strength s, mean over heads")
    figure.legend(loc="outside right upper", frameon=False)
    return figure


def analyse(checkpoints: Sequence[Path], side: str, out: Path) -> None:
    """Draw the strengths of several checkpoints, and write the numbers."""
    moments = read_trajectories(checkpoints, side)
    write_figure(draw_trajectories(moments), out, NAME)
    numbers = {
        "checkpoints": [moment.path for moment in moments],
        "updates": [moment.update for moment in moments],
        "masks": list(moments[0].masks),
        "shape": ["update", "layer", "head", "mask"],
        "strengths": np.stack([moment.values for moment in moments]),
    }
    write_numbers(numbers, out, NAME)
