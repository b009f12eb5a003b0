"""Draw how alike the stack encodings of a tree's nodes are, and the learned p.

Three figures, after Shiv & Quirk (2019, Figs. 2-4): the cosine of all pairs of encodings for chosen
p, for the learned p of a checkpoint and behind its projection; the same after every node was moved
by a traversal operator (U to its parent, D_i to its child i); and the learned p themselves. The
root's encoding is zero and has no direction: its rows and columns are hatched, except behind
the projection.

Example: python -m treesyntax.analysis.encoding_similarity checkpoint_best.pt --p 0.3 0.9 --out figures
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from treesyntax.analysis.figures import (
    OKABE_ITO,
    PANEL_COLUMNS,
    SEQUENTIAL,
    colour_bar,
    heat_map,
    name_ticks,
    run_analysis,
    write_figure,
    write_numbers,
)
from treesyntax.analysis.loading import SIDES, build_method
from treesyntax.analysis.sentences import Sentences
from treesyntax.analysis.stack_operators import pop, push
from treesyntax.analysis.tree_nodes import Nodes, complete_tree, tokens_of
from treesyntax.methods.stack_pe import StackEncoding
from treesyntax.model.checkpoint import load_checkpoint

NAME = "encoding_similarity"


Cosines = dict[str, NDArray[np.float64]]
"""Named matrices [M, M]."""


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
    units = [part.double() / part.double().norm(dim=1, keepdim=True) for part in (first, second)]
    return (units[0] @ units[1].T).numpy()


@torch.no_grad()
def compute_similarity(method: StackEncoding, nodes: Nodes, chosen: Sequence[float]) -> Cosines:
    """Cosines of all pairs of nodes for each chosen p, the learned ones, and as the model adds them.

    Raises:
        OptionError: for a chosen p that is not between -1 and 1.
    """
    stacks = stacks_of(nodes.paths, method.degree)
    encodings = {}
    for p in chosen:
        example = StackEncoding(
            method.site, max(method.degree, 2), method.depth, parameters=1, start=str(p)
        )
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
    size = (method.degree, method.depth)
    operators = {"U": pop(*size)}
    operators |= {f"D{child}": push(child, *size) for child in range(method.degree)}
    stay = weighted(stacks, method.weights())
    return {
        name: cosines(weighted(operator(stacks), method.weights()), stay)
        for name, operator in operators.items()
    }


def compute_learned_p(method: StackEncoding) -> NDArray[np.float64]:
    """[parameters]: the p of a model, in its order."""
    return torch.tanh(method.raw.detach().double()).numpy()


def draw_similarity(found: Cosines, names: Sequence[str], rows: str) -> Figure:
    """A heat map for each matrix, all on one scale.

    Args:
        found: the matrices.
        names: of the nodes.
        rows: what the vertical axis shows.
    """
    across = min(len(found), PANEL_COLUMNS)
    down = -(-len(found) // across)
    side = min(max(0.14 * len(names), 2.2), 9.0)
    size = ((side + 0.6) * across + 1, (side + 0.9) * down)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(down, across, squeeze=False, sharey=True)
    low = min(float(np.nanmin(matrix, initial=0)) for matrix in found.values())
    for panel in axes.flat[len(found) :]:
        panel.set_visible(False)
    for panel, (name, matrix) in zip(axes.flat, found.items(), strict=False):
        image = heat_map(panel, matrix, (SEQUENTIAL, low, 1.0))
        panel.set_title(name)
        name_ticks(panel, names)
        panel.set_yticks(range(len(names)), names)
        panel.tick_params(labelsize=7)
        panel.set_xlabel("node")
    for panel in axes[:, 0]:
        panel.set_ylabel(rows)
    colour_bar(figure, image, axes, "cosine of the encodings")
    return figure


def draw_learned_p(values: NDArray[np.float64]) -> Figure:
    """A dot for each p, in rising order."""
    figure = Figure(figsize=(5, 3), layout="constrained")
    panel = figure.subplots()
    panel.axhline(0, color="0.6", linewidth=0.8)
    panel.plot(range(1, len(values) + 1), np.sort(values), "o", color=OKABE_ITO[0], markersize=4)
    panel.set_ylim(-1.05, 1.05)
    panel.set_xlabel("parameter, in rising order")
    panel.set_ylabel("learned p")
    return figure


def analyse(args: argparse.Namespace) -> None:
    """Read, compute, draw and write.

    Raises:
        TreeSyntaxError: for checkpoints, data or options that do not serve.
    """
    state = load_checkpoint(args.checkpoint)
    method = cast(StackEncoding, build_method(state, args.checkpoint, args.side, "stack_pe"))
    if args.data is None:
        nodes = complete_tree(method.degree, args.levels, method.depth)
    else:
        sentence = Sentences(args.data, args.subset)[args.sentence]
        nodes = tokens_of(sentence, method.tree, method.depth)
    similarity = compute_similarity(method, nodes, args.p)
    moved, learned = compute_moved(method, nodes), compute_learned_p(method)
    write_figure(draw_similarity(similarity, nodes.names, "node"), args.out, NAME)
    write_figure(draw_similarity(moved, nodes.names, "moved node"), args.out, f"{NAME}_moved")
    if len(learned):
        write_figure(draw_learned_p(learned), args.out, "learned_p")
    numbers = {
        "checkpoint": str(args.checkpoint),
        "side": args.side,
        "degree": method.degree,
        "depth": method.depth,
        "learned_p": learned,
        "nodes": list(nodes.names),
        "cosine": similarity,
        "cosine_moved": moved,
    }
    write_numbers(numbers, args.out, NAME)


def main(argv: Sequence[str] | None = None) -> int:
    """Draw the encodings of one checkpoint; a fault is one line and status 2."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint", type=Path, help="a checkpoint with stack_pe")
    parser.add_argument("--side", choices=SIDES, default="encoder", help="(%(default)s)")
    parser.add_argument(
        "--p", type=float, nargs="*", default=[0.3, 0.6, 0.9], help="chosen p (%(default)s)"
    )
    parser.add_argument(
        "--levels", type=int, default=4, help="of the complete tree that is drawn (%(default)s)"
    )
    parser.add_argument("--data", type=Path, help="draw a tree of this folder instead")
    parser.add_argument("--subset", default="valid", help="train, valid or test (%(default)s)")
    parser.add_argument("--sentence", type=int, default=0, help="its number (%(default)s)")
    parser.add_argument("--out", type=Path, required=True, help=f"folder for {NAME}.svg, .json …")
    args = parser.parse_args(argv)
    return run_analysis(NAME, lambda: analyse(args))


if __name__ == "__main__":
    sys.exit(main())
