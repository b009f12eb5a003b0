"""Learned vectors of relative depths, positions.

A figure for each table, of keys and of values (Shaw et al. 2018; Omote, Tamura & Ninomiya 2019). It has
the length of each distance's vector, and the cosines of all pairs of distances, for each layer. With a
table for each head, the figure shows means over heads; the numbers hold every head.

Example: treesyntax analyse relative_tables checkpoint_best.pt --out figures
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from numpy.typing import NDArray

from treesyntax.analysis.figures import colour_bar, heat_map, write_figure, write_numbers
from treesyntax.analysis.loading import build_methods
from treesyntax.errors import InputError
from treesyntax.model.checkpoint import load_checkpoint
from treesyntax.model.composition import Composition
from treesyntax.nn.vectors import DistanceVectors
from treesyntax.palette import DIVERGING, MARKERS, SEQUENTIAL

NAME = "relative_tables"
TABLES = {"keys": "key_table", "values": "value_table"}
MOST_NAMED = 17
"""Distances of which each has its name on an axis."""


@dataclass(frozen=True)
class RelativeTable:
    """Vectors of clipped distances, described.

    Attributes:
        norms: [layers, heads, R], one head where all share a table.
        cosines: [layers, heads, R, R], NaN beside a vector of zeros.
    """

    norms: NDArray[np.float64]
    cosines: NDArray[np.float64]

    @property
    def distances(self) -> list[str]:
        """The R distances, the outermost standing for all beyond."""
        clip = self.norms.shape[-1] // 2
        inner = [f"{distance:+d}" if distance else "0" for distance in range(1 - clip, clip)]
        return [f"≤ −{clip}", *(name.replace("-", "−") for name in inner), f"≥ +{clip}"]


def describe(vectors: NDArray[np.float64]) -> RelativeTable:
    """Norms and cosines of vectors [layers, heads, R, d]."""
    norms = np.linalg.norm(vectors, axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        units = vectors / norms[..., None]
    return RelativeTable(norms, units @ units.swapaxes(-1, -2))


def compute_tables(methods: Composition) -> dict[str, RelativeTable]:
    """All tables of clipped distances by name, such as ``relative_depth_keys``."""
    tables = {}
    for name, method in methods.items():
        if not isinstance(method, DistanceVectors):
            continue
        for side, attribute in TABLES.items():
            table = getattr(method, attribute)
            if table is not None:
                values = table.detach().double()
                values = values if values.dim() == 4 else values.unsqueeze(1)
                tables[f"{name}_{side}"] = describe(values.numpy())
    return tables


def draw_table(table: RelativeTable, title: str) -> Figure:
    """Norms in one panel, a line a layer, and beside it the cosines, a panel a layer."""
    layers, _, size = table.norms.shape
    width = min(max(0.28 * size, 2.0), 6.0)
    figure = Figure(figsize=(width * layers + 5.5, width + 1), layout="constrained")
    first, *panels = figure.subplots(1, layers + 1)
    colours = _layer_colours(layers)
    for layer, norms in enumerate(table.norms.mean(1)):
        marker = MARKERS[layer % len(MARKERS)]
        first.plot(norms, marker=marker, markersize=4, color=colours[layer], label=f"{layer + 1}")
    first.set_ylim(bottom=0)
    first.set_title(title)
    first.set_ylabel("length of the vector")
    first.legend(title="layer", fontsize=7)
    for layer, panel in enumerate(panels):
        image = heat_map(panel, table.cosines[layer].mean(0), (DIVERGING, -1.0, 1.0))
        panel.set_title(f"layer {layer + 1}")
        panel.set_yticks([])
    named = _named(size)
    names = [table.distances[row] for row in named]
    for panel in (first, *panels):
        panel.set_xticks(named, names)
        panel.tick_params(axis="x", rotation=90)
        panel.set_xlabel("distance of key from query")
    panels[0].set_yticks(named, names)
    panels[0].set_ylabel("distance of key from query")
    colour_bar(figure, image, panels, "cosine")
    return figure


def _named(size: int) -> list[int]:
    """The rows of distances that axes name: all of up to 17, else the outermost, 0 and some between.

    Names are most of what matplotlib takes its time for.
    """
    zero = size // 2
    step = 1 if size <= MOST_NAMED else -(-zero // 4)
    return sorted({0, *range(zero, -1, -step), *range(zero, size, step), size - 1})


def _layer_colours(count: int) -> list[tuple[float, ...]]:
    """Colours in order, without the palest end."""
    palette = colormaps[SEQUENTIAL]
    return [tuple(palette(0.9 * index / max(count - 1, 1))) for index in range(count)]


def read_tables(checkpoint: Path, side: str) -> dict[str, RelativeTable]:
    """The tables of a checkpoint, as of :func:`compute_tables`.

    Raises:
        InputError: if it has none on that side.
    """
    tables = compute_tables(build_methods(load_checkpoint(checkpoint), checkpoint, side))
    if not tables:
        raise InputError(
            checkpoint,
            None,
            f"has no vectors of relative distances in its {side}",
            "give one of relative_depth or relative_position",
        )
    return tables


def analyse(checkpoint: Path, side: str, out: Path) -> None:
    """Draw the tables of one checkpoint, and write the numbers."""
    tables = read_tables(checkpoint, side)
    for name, table in tables.items():
        write_figure(draw_table(table, name.replace("_", " ")), out, name)
    numbers = {
        name: {"distances": table.distances, "norms": table.norms, "cosines": table.cosines}
        for name, table in tables.items()
    }
    shapes = {"norms": ["layer", "head", "distance"]}
    shapes["cosines"] = [*shapes["norms"], "distance"]
    content = {"checkpoint": str(checkpoint), "side": side, "shape": shapes}
    write_numbers({**content, "tables": numbers}, out, NAME)
