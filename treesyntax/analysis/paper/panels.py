"""Heat maps of several runs in one figure, on one colour scale.

Reads the numbers that other analyses wrote, so no checkpoint is needed: of each file given, or of
all runs of a study's folder. Seeds, rows, layers and heads can be chosen. A row of panels is a run
(of masks over a sentence a layer of a run), a column a layer (or a head).

Example: treesyntax analyse panels runs/en-sv --rows masks --layers 1 2 --format pdf --out figures
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from treesyntax.analysis.figures import (
    colour_bar,
    heat_map,
    name_ticks,
    write_figure,
    write_numbers,
)
from treesyntax.errors import InputError, OptionError
from treesyntax.files import read_json
from treesyntax.palette import DIVERGING, SEQUENTIAL
from treesyntax.study.recipe.rows import row_of_run

NAME = "panels"


class Kind(NamedTuple):
    """An analysis whose numbers are drawn.

    Attributes:
        file: its name.
        key: of the values, [layers, heads, columns] or [layers, heads, T, T].
        columns: key of their names.
        palette: of the colours.
        labels: of the horizontal axis, of the vertical one and of the colour bar.
    """

    file: str
    key: str
    columns: str
    palette: str
    labels: tuple[str, str, str]


_RELATION = "relation of query to key"
KINDS = {
    "mask_strengths": Kind(
        "mask_strengths.json", "strengths", "relations", DIVERGING,
        (_RELATION, "head", "strength s"),
    ),
    "attention_mass": Kind(
        "attention_mass.json", "mass", "relations", SEQUENTIAL,
        (_RELATION, "head", "share of the attention"),
    ),
    "attention_against_chance": Kind(
        "attention_mass.json", "log2_mass_over_chance", "relations", DIVERGING,
        (_RELATION, "head", "log2(attention / chance)"),
    ),
    "sentence_masks": Kind(
        "sentence_masks.json", "summed", "tokens", DIVERGING, ("key", "query", "summed mask"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """The numbers of a run.

    Attributes:
        name: of the run.
        values: [layers, heads, columns] or [layers, heads, T, T].
        columns: their names.
    """

    name: str
    values: NDArray[np.float64]
    columns: tuple[str, ...]


def find_files(
    paths: Sequence[Path], kind: Kind, side: str, rows: Sequence[str], seeds: Sequence[int]
) -> Iterator[tuple[str, Path]]:
    """Names of runs and their files.

    Args:
        paths: files, or folders of studies.
        kind: whose files.
        side: of the model.
        rows: of the studies; all if there are none.
        seeds: the same.
    """
    for path in paths:
        if not path.is_dir():
            yield path.stem if path.name != kind.file else path.parent.name, path
            continue
        for file in sorted(path.glob(f"runs/*/analyses/{side}/{kind.file}")):
            name = file.parts[-4]
            row, seed = row_of_run(name)
            if (not rows or row in rows) and (not seeds or seed in map(str, seeds)):
                yield (f"{path.name}/{name}" if len(paths) > 1 else name), file


def read_run(name: str, path: Path, kind: Kind) -> Run:
    """The numbers of one file.

    Raises:
        InputError: if it holds others than those of the kind.
    """
    content = read_json(path)
    try:
        columns = tuple(map(str, content[kind.columns]))
        values = np.array(content[kind.key], dtype=np.float64)
    except (KeyError, TypeError, ValueError):
        columns, values = (), np.zeros(0)
    square = kind.columns == "tokens"
    if (
        values.ndim != 3 + square or not values.size
        or values.shape[-1] != len(columns) or (square and values.shape[-2] != len(columns))
    ):  # fmt: skip
        remedy = "give a file that the analysis wrote, and its --kind"
        raise InputError(path, None, f"holds no {kind.key} of {kind.columns}", remedy)
    return Run(name, values, columns)


def chosen(values: NDArray[np.float64], numbers: Sequence[int], axis: int) -> list[int]:
    """Indices of the layers or heads with these numbers, from 1; all of them without any."""
    size = values.shape[axis]
    if any(not 1 <= number <= size for number in numbers):
        what = ("layers", "heads")[axis]
        raise OptionError(f"--{what} {' '.join(map(str, numbers))}: there are {what} 1 to {size}")
    return [number - 1 for number in numbers] or list(range(size))


def find_limits(blocks: Sequence[NDArray[np.float64]], palette: str) -> tuple[float, float]:
    """The ends of one scale for all: symmetric around 0 for diverging colours, else from 0."""
    known = [block[np.isfinite(block)] for block in blocks]
    limit = max((float(np.abs(block).max()) for block in known if block.size), default=0.0) or 1.0
    return (-limit if palette == DIVERGING else 0.0), limit


def draw_panels(
    runs: Sequence[Run],
    kind: Kind,
    layers: Sequence[int],
    heads: Sequence[int],
    limits: tuple[float, float],
) -> Figure:
    """A row of panels a run, all with one scale.

    Args:
        runs: at least one; all with the same columns and sizes.
        kind: of the numbers.
        layers: indices of those that are drawn.
        heads: the same.
        limits: ends of the scale.
    """
    square = kind.columns == "tokens"
    rows = (
        [(run, layer) for run in runs for layer in layers]
        if square
        else [(run, -1) for run in runs]
    )
    across = heads if square else layers
    size = len(runs[0].columns)
    wide = max(0.17 * size, 1.4) + 0.2
    high = wide if square else max(0.2 * len(heads), 0.8) + 0.3
    figure = Figure(
        figsize=(wide * len(across) + 2.0, high * len(rows) + 1.2), layout="constrained"
    )
    axes = figure.subplots(len(rows), len(across), sharex=True, sharey=True, squeeze=False)
    for (down, column), panel in np.ndenumerate(axes):
        run, layer = rows[down]
        index = across[column]
        block = run.values[layer, index] if square else run.values[index][list(heads)]
        image = heat_map(panel, block, (kind.palette, *limits))
        if not down:
            panel.set_title(f"{'head' if square else 'layer'} {index + 1}", fontsize=9)
        if not column:
            name = f"{run.name}, layer {layer + 1}" if square else run.name
            panel.set_ylabel(f"{name}\n{kind.labels[1]}", fontsize=8)
        panel.tick_params(labelsize=7)
    names = [name if square else name.replace("_", " ") for name in runs[0].columns]
    for panel in axes[-1]:
        name_ticks(panel, names)
    for panel in axes[:, 0]:
        ticks = names if square else [str(head + 1) for head in heads]
        panel.set_yticks(range(len(ticks)), ticks)
    figure.supxlabel(kind.labels[0], fontsize=9)
    colour_bar(figure, image, axes, kind.labels[2])
    return figure


def analyse(
    paths: Sequence[Path],
    kind: str,
    side: str,
    rows: Sequence[str],
    seeds: Sequence[int],
    layers: Sequence[int],
    heads: Sequence[int],
    limit: float | None,
    out: Path,
) -> None:
    """Draw the chosen parts of several runs, and write the numbers."""
    what = KINDS[kind]
    files = list(find_files(paths, what, side, rows, seeds))
    if not files:
        raise OptionError(
            f"{', '.join(map(str, paths))}: no run has {side}/{what.file}, or none is chosen by "
            "--rows and --seeds"
        )
    runs = [read_run(name, path, what) for name, path in files]
    for run, (_, path) in zip(runs, files, strict=True):
        if (run.columns, run.values.shape) != (runs[0].columns, runs[0].values.shape):
            raise InputError(
                path, None, f"has other {what.columns}, layers or heads than {files[0][1]}",
                "draw it by itself, with --limit to keep the scale",
            )  # fmt: skip
    own_layers, own_heads = (
        chosen(runs[0].values, choice, axis) for axis, choice in enumerate((layers, heads))
    )
    blocks = [run.values[np.ix_(own_layers, own_heads)] for run in runs]
    limits = find_limits(blocks, what.palette)
    if limit is not None:
        if not 0 < limit < np.inf:
            raise OptionError(f"--limit {limit:g}: give more than 0")
        limits = (-limit if limits[0] else 0.0, limit)
    write_figure(draw_panels(runs, what, own_layers, own_heads, limits), out, f"{NAME}_{kind}")
    numbers = {
        "files": {run.name: str(path) for run, (_, path) in zip(runs, files, strict=True)},
        "layers": [layer + 1 for layer in own_layers],
        "heads": [head + 1 for head in own_heads],
        what.columns: list(runs[0].columns),
        "scale": list(limits),
        what.key: {run.name: values for run, values in zip(runs, blocks, strict=True)},
    }
    write_numbers(numbers, out, f"{NAME}_{kind}")
