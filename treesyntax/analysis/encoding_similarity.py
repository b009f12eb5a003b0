"""Cosines of the stack encodings of a tree's nodes.

Three figures, after figures 2 to 4 of Shiv & Quirk 2019. The first has the cosine of all pairs of
encodings, for chosen p, for the learned p of a checkpoint and after its projection.

The second has the
same after a traversal operator has moved every node: U to its parent, D_i to its child i. The third
has the learned p themselves.

The root's encoding is zero and has no direction: its rows and columns are hatched, except after the
projection.

Example: treesyntax analyse encoding_similarity checkpoint_best.pt --p 0.3 0.9 --out figures
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from treesyntax.analysis.figures import (
    colour_bar,
    columns_for,
    heat_map,
    name_ticks,
    panel_grid,
    write_figure,
    write_numbers,
)
from treesyntax.analysis.loading import build_method
from treesyntax.analysis.sentences import Sentences
from treesyntax.analysis.tree_nodes import Nodes, complete_tree, pop, push, tokens_of
from treesyntax.methods.encodings.stack_pe import StackEncoding
from treesyntax.model.checkpoint import load_checkpoint
from treesyntax.palette import COLOURS, SEQUENTIAL

NAME = "encoding_similarity"
Cosines = dict[str, NDArray[np.float64]]
"""Named matrices [M, M]."""


def read_method(checkpoint: Path, side: str) -> StackEncoding:
    """The stack encodings of one side of a checkpoint.

    Raises:
        InputError: if it has none.
    """
    state = load_checkpoint(checkpoint)
    return cast(StackEncoding, build_method(state, checkpoint, side, "stack_pe"))


def choose_nodes(
    method: StackEncoding, levels: int, data: Path | None, subset: str, sentence: int
) -> Nodes:
    """The nodes of a sentence of ``data``; without data, of a complete tree of so many levels."""
    if data is None:
        return complete_tree(method.degree, levels, method.depth)
    return tokens_of(Sentences(data, subset)[sentence], method.tree, method.depth)


def stacks_of(paths: Tensor, degree: int) -> Tensor:
    """Plain stacks [M, K * degree] of paths [M, K]: one-hots of the steps, zero beyond the root."""
    branches = paths.clamp(0, degree - 1)
    return (F.one_hot(branches, degree) * (paths >= 0).unsqueeze(2)).flatten(1).float()


def weighted(stacks: Tensor, weights: Tensor) -> Tensor:
    """Encodings [M, K * n * P]: each step of stacks [M, K * n] times its weights [K, P]."""
    steps = stacks.unflatten(1, (len(weights), -1))
    return (steps.unsqueeze(3) * weights.unsqueeze(1)).flatten(1)


def cosines(first: Tensor, second: Tensor) -> NDArray[np.float64]:
    """[M, N] of rows [M, D] and [N, D]; NaN where one of them is zero."""
    units = [rows.double() / rows.double().norm(dim=1, keepdim=True) for rows in (first, second)]
    return (units[0] @ units[1].T).numpy()


@torch.no_grad()
def compute_similarity(method: StackEncoding, nodes: Nodes, chosen: Sequence[float]) -> Cosines:
    """Cosines of all pairs of nodes for each chosen p, the learned ones, and as the model adds them."""
    stacks = stacks_of(nodes.paths, method.degree)
    encodings = {}
    for p in chosen:
        example = StackEncoding(method.site, depth=method.depth, parameters=1, start=str(p))
        encodings[f"p = {p:g}"] = weighted(stacks, example.weights())
    learned = f"learned p ({len(method.raw)})" if len(method.raw) else "no p"
    encodings[learned] = weighted(stacks, method.weights())
    if method.projection is not None:
        added = stacks @ method.table()
        bias = method.projection.bias
        encodings["projected"] = added if bias is None else added + bias
    return {name: cosines(rows, rows) for name, rows in encodings.items()}


@torch.no_grad()
def compute_moved(method: StackEncoding, nodes: Nodes) -> Cosines:
    """Cosines of encodings moved by U and each D_i (rows) with those of all nodes (columns)."""
    stacks = stacks_of(nodes.paths, method.degree)
    moved = {"U": pop(stacks, method.degree)}
    moved |= {f"D{child}": push(stacks, child, method.degree) for child in range(method.degree)}
    stay = weighted(stacks, method.weights())
    return {name: cosines(weighted(to, method.weights()), stay) for name, to in moved.items()}


def compute_learned_p(method: StackEncoding) -> NDArray[np.float64]:
    """[parameters]: the p of a model, in its order."""
    return torch.tanh(method.raw.detach().double()).numpy()


def draw_similarity(matrices: Cosines, names: Sequence[str], rows: str) -> Figure:
    """A heat map for each matrix, with ``rows`` on the vertical axis."""
    low = min(float(np.nanmin(matrix, initial=0)) for matrix in matrices.values())
    return draw_pairs(matrices, names, (low, 1.0), ("node", rows, "cosine of the encodings"))


def draw_pairs(
    matrices: Mapping[str, NDArray[np.float64]],
    names: Sequence[str],
    ends: tuple[float, float],
    labels: tuple[str, str, str],
) -> Figure:
    """A heat map over pairs of nodes for each matrix, all on one scale.

    Args:
        matrices: one a panel, by title.
        names: of the nodes.
        ends: of the scale.
        labels: of columns, rows and the scale.
    """
    side = min(max(0.14 * len(names), 2.2), 9.0)
    figure, axes = panel_grid(
        len(matrices), (side + 0.6, side + 0.9), (1, 0), columns=columns_for(names)
    )
    for panel, (name, matrix) in zip(axes.flat, matrices.items(), strict=False):
        image = heat_map(panel, matrix, (SEQUENTIAL, *ends))
        panel.set_title(name)
        name_ticks(panel, names)
        panel.set_yticks(range(len(names)), names)
        panel.tick_params(labelsize=7)
        panel.set_xlabel(labels[0])
    for panel in axes[:, 0]:
        panel.set_ylabel(labels[1])
    colour_bar(figure, image, axes, labels[2])
    return figure


def draw_learned_p(values: NDArray[np.float64]) -> Figure:
    """A dot for each p, in rising order."""
    figure = Figure(figsize=(5, 3), layout="constrained")
    panel = figure.subplots()
    panel.axhline(0, color="0.6", linewidth=0.8)
    panel.plot(range(1, len(values) + 1), np.sort(values), "o", color=COLOURS[0], markersize=4)
    panel.set_ylim(-1.05, 1.05)
    panel.set_xlabel("parameter, in rising order")
    panel.set_ylabel("learned p")
    return figure


def analyse(
    checkpoint: Path,
    side: str,
    p: Sequence[float],
    levels: int,
    data: Path | None,
    subset: str,
    sentence: int,
    out: Path,
) -> None:
    """Draw the encodings of a checkpoint for a complete tree or the tree of a sentence."""
    method = read_method(checkpoint, side)
    nodes = choose_nodes(method, levels, data, subset, sentence)
    similarity = compute_similarity(method, nodes, p)
    moved, learned = compute_moved(method, nodes), compute_learned_p(method)
    write_figure(draw_similarity(similarity, nodes.names, "node"), out, NAME)
    write_figure(draw_similarity(moved, nodes.names, "moved node"), out, f"{NAME}_moved")
    if len(learned):
        write_figure(draw_learned_p(learned), out, "learned_p")
    numbers = {
        "checkpoint": str(checkpoint),
        "side": side,
        "degree": method.degree,
        "depth": method.depth,
        "learned_p": learned,
        "nodes": list(nodes.names),
        "cosine": similarity,
        "cosine_moved": moved,
    }
    write_numbers(numbers, out, NAME)
