"""Attention between the stack encodings of a tree's nodes.

After figures 2 to 4 of Shiv & Quirk 2019: which nodes a head attends to that compares encodings alone.
Row i, column j is softmax over j of <M x_i, x_j> / t, where x are encodings, M a move over the tree and
t the temperature.

A move is read from the right, as operators are: U is the parent, D0 the first child, UU the
grandparent, D1U the second child of the parent.

With p = 1 encodings have no parameters: every step of the stack counts alike. Other chosen p weight
step l by p^l. The learned p of a checkpoint have the factors that the model gives them, and its own t,
the root of d_model.

Example: treesyntax analyse encoding_attention checkpoint_best.pt --p 1 0.7 --moves U D0 D1U --out out
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from treesyntax.analysis.encoding_similarity import (
    choose_nodes,
    compute_learned_p,
    draw_pairs,
    read_method,
    stacks_of,
    weighted,
)
from treesyntax.analysis.figures import write_figure, write_numbers
from treesyntax.analysis.tree_nodes import Nodes, pop, push
from treesyntax.errors import OptionError
from treesyntax.methods.encodings.stack_pe import StackEncoding

NAME = "encoding_attention"
STAY = "stay"
Scores = dict[str, NDArray[np.float64]]
"""Named matrices [M, M] whose rows sum to 1."""


def read_moves(text: str, degree: int) -> list[int]:
    """The steps of a move in the order in which they are made; -1 is up, others are children.

    Raises:
        OptionError: for one that is no move, or a child that nodes do not have.
    """
    if text == STAY:
        return []
    if not re.fullmatch(r"(U|D\d+)+", text):
        raise OptionError(f"--moves {text}: give {STAY}, or U and D0, D1, … in a row, such as D1U")
    steps = [-1 if step == "U" else int(step[1:]) for step in re.findall(r"U|D\d+", text)]
    if max(steps) >= degree:
        raise OptionError(f"--moves {text}: nodes have {degree} branches, from D0 to D{degree - 1}")
    return steps[::-1]


def default_moves(degree: int) -> list[str]:
    """To the parent and a child, to the grandparent, and to each sibling by way of the parent."""
    children = [f"D{child}" for child in range(min(degree, 3))]
    return ["U", *children, "UU", *(f"{child}U" for child in children)]


def moved(stacks: Tensor, steps: Sequence[int], degree: int) -> Tensor:
    """Stacks [M, K * n] after a move."""
    for step in steps:
        stacks = pop(stacks, degree) if step < 0 else push(stacks, step, degree)
    return stacks


def attention(queries: Tensor, keys: Tensor, temperature: float) -> NDArray[np.float64]:
    """softmax over keys [N, D] of queries [M, D]: [M, N]."""
    logits = queries.double() @ keys.double().T / temperature
    return torch.softmax(logits, dim=1).numpy()


def chosen_weights(p: float, depth: int) -> Tensor:
    """[K, 1]: p^l for step l, the newest being 0."""
    if not -1 <= p <= 1:
        raise OptionError(f"--p {p:g}: p lies between -1 and 1; 1 has no parameters")
    return p ** torch.arange(depth, dtype=torch.float64).unsqueeze(1)


@torch.no_grad()
def compute_attention(
    method: StackEncoding,
    nodes: Nodes,
    chosen: Sequence[float],
    moves: Sequence[str],
    temperature: float,
) -> dict[str, Scores]:
    """Attention of all nodes to all nodes for each p and the model's own p, by move.

    Args:
        method: a checkpoint's encodings.
        nodes: of a tree.
        chosen: p without a checkpoint's.
        moves: as `read_moves` reads them.
        temperature: of the chosen p.
    """
    stacks, degree = stacks_of(nodes.paths, method.degree).double(), method.degree
    weights = {f"p = {p:g}": (chosen_weights(p, method.depth), temperature) for p in chosen}
    if len(method.raw):
        learned = f"learned p ({len(method.raw)})"
        weights[learned] = (method.weights().double(), method.site.d_model**0.5)
    steps = {move: read_moves(move, degree) for move in moves}
    return {
        name: {
            move: attention(
                weighted(moved(stacks, way, degree), factors), weighted(stacks, factors), sharpness
            )
            for move, way in steps.items()
        }
        for name, (factors, sharpness) in weights.items()
    }


def draw_attention(matrices: Scores, names: Sequence[str], highest: float) -> Figure:
    """A heat map for each matrix.

    Args:
        matrices: one a panel, by title.
        names: of the nodes.
        highest: score with the brightest colour; 0 has the darkest.
    """
    labels = ("attended node", "attending node", "attention")
    return draw_pairs(matrices, names, (0.0, highest), labels)


def file_name(p: str) -> str:
    """``p = 0.7`` as ``p_0.7``, the learned ones as ``learned_p``."""
    return "learned_p" if p.startswith("learned") else p.replace(" = ", "_")


def analyse(
    checkpoint: Path,
    side: str,
    p: Sequence[float],
    moves: Sequence[str],
    temperature: float,
    levels: int,
    data: Path | None,
    subset: str,
    sentence: int,
    out: Path,
) -> None:
    """Draw a figure without moves, a panel a p, and one for each p, a panel a move."""
    if not temperature > 0:
        raise OptionError(f"--temperature {temperature:g}: give more than 0")
    method = read_method(checkpoint, side)
    nodes = choose_nodes(method, levels, data, subset, sentence)
    drawn_moves = list(dict.fromkeys([STAY, *(moves or default_moves(method.degree))]))
    attention = compute_attention(method, nodes, p, drawn_moves, temperature)
    if not attention:
        raise OptionError("the checkpoint has no p; give one with --p, such as 1")
    highest = max(
        float(matrix.max()) for scores in attention.values() for matrix in scores.values()
    )
    still = {name: scores[STAY] for name, scores in attention.items()}
    write_figure(draw_attention(still, nodes.names, highest), out, NAME)
    for name, scores in attention.items():
        panels = {move: matrix for move, matrix in scores.items() if move != STAY}
        if panels:
            figure = draw_attention(panels, nodes.names, highest)
            figure.suptitle(name)
            write_figure(figure, out, f"{NAME}_{file_name(name)}")
    numbers = {
        "checkpoint": str(checkpoint),
        "side": side,
        "degree": method.degree,
        "depth": method.depth,
        "temperature": temperature,
        "learned_p": compute_learned_p(method),
        "nodes": list(nodes.names),
        "shape": ["attending", "attended"],
        "attention": attention,
    }
    write_numbers(numbers, out, NAME)
