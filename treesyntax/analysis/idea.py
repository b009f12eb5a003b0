"""One sentence, its tree, and where methods put it: the picture of the README, or of another tree.

What is drawn is computed by the code that models run.

Example: treesyntax analyse idea --tree "(S (NP she) (VP sleeps))" --out figures
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from treesyntax.analysis.figures import write_figure
from treesyntax.errors import OptionError
from treesyntax.nn.coordinates import branch_path, depth
from treesyntax.nn.relations import RELATIONS, tree_relations
from treesyntax.nn.tree_batch import batch_trees
from treesyntax.palette import AREAS, COLOURS, DIVERGING
from treesyntax.trees.formats import parse_tree
from treesyntax.trees.linearizations import bracketed
from treesyntax.trees.tree import Tree

GROWN = 5
"""Nodes of the target tree that the decoder has written in the last panel."""
SHOWN_DEPTH = 3
INK, FAINT, NEXT = "#222222", "#bbbbbb", COLOURS[1]


def analyse(tree: str, out: Path) -> None:
    """Write ``idea.svg`` for a tree in brackets."""
    write_figure(draw_idea(read_tree(tree)), out, "idea")


def read_tree(text: str) -> Tree:
    """A tree in brackets that has something to draw.

    Raises:
        TreeError: if it is malformed.
        OptionError: if it is empty.
    """
    tree = parse_tree(text, "ptb")
    if not len(tree):
        raise OptionError("--tree is empty; give a tree such as '(A (B c) d)'")
    return tree


def draw_idea(tree: Tree) -> Figure:
    """Six panels: the tree, as brackets, grown by a decoder, as stacks, relations and depths."""
    figure = Figure(figsize=(10.5, 6.2), layout="constrained", facecolor="white")
    (trees, brackets, grown), (stacks, masks, depths) = figure.subplots(2, 3)
    draw_tree(trees, tree, "a tree, numbered in preorder")
    _draw_brackets(brackets, tree)
    draw_tree(
        grown,
        tree,
        "the decoder grows the tree; each new\nnode's code follows from the prefix",
        GROWN,
    )
    _draw_stacks(stacks, tree)
    _draw_relations(masks, tree)
    _draw_depths(depths, tree)
    return figure


def node_coordinates(tree: Tree) -> NDArray[np.float64]:
    """[N, 2]: leaves side by side, a parent above the middle of its children."""
    coordinates = np.zeros((len(tree), 2))
    leaf_at = {leaf: float(index) for index, leaf in enumerate(tree.leaves)}
    children = tree.children()
    for node in reversed(range(len(tree))):  # children come after their parent
        across = [coordinates[child, 0] for child in children[node]]
        coordinates[node, 0] = leaf_at[node] if not across else (across[0] + across[-1]) / 2
    coordinates[:, 1] = -np.asarray(tree.depths)
    return coordinates


def draw_tree(axes: Axes, tree: Tree, title: str, known: int | None = None) -> None:
    """All nodes, or the first ``known``, the slot that is filled next, and the others faint."""
    known = len(tree) if known is None else known
    coordinates = node_coordinates(tree)
    for node, parent in enumerate(tree.parents.tolist()):
        color = INK if node < known else FAINT
        if parent >= 0:
            axes.plot(*coordinates[[parent, node]].T, color=color, linewidth=1, zorder=1)
    for node, label in enumerate(tree.labels):
        color = INK if node < known else NEXT if node == known else FAINT
        shown, (x, y) = label if node != known else "?", coordinates[node].tolist()
        box = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": color}
        axes.text(x, y, shown, ha="center", va="center", color=color, bbox=box, fontsize=10)
        axes.text(x + 0.3, y + 0.22, str(node), color=color, fontsize=7, zorder=3)
    axes.set_xlim(coordinates[:, 0].min() - 0.6, coordinates[:, 0].max() + 0.7)
    axes.set_ylim(coordinates[:, 1].min() - 0.5, 0.6)
    _plain(axes, title)


def _draw_brackets(axes: Axes, tree: Tree) -> None:
    tokens = bracketed(tree)
    half = -(-len(tokens) // 2)
    for row, line in enumerate((tokens[:half], tokens[half:])):
        for column, token in enumerate(line):
            box = {"boxstyle": "round,pad=0.25", "facecolor": "#eeeeee", "edgecolor": "none"}
            axes.text(column, -row, token, ha="center", va="center", fontsize=9, bbox=box)
    axes.set_xlim(-0.7, half - 0.3)
    axes.set_ylim(-2.5, 1.5)
    _plain(axes, "linearized: brackets among the tokens")


def _draw_stacks(axes: Axes, tree: Tree) -> None:
    batch = batch_trees([tree])
    paths = branch_path(batch, SHOWN_DEPTH)[0].numpy().astype(float)
    axes.imshow(
        np.where(paths < 0, np.nan, paths), cmap=ListedColormap(COLOURS[:3]), vmin=0, vmax=2
    )
    for (node, step), branch in np.ndenumerate(paths):
        if branch >= 0:
            axes.text(
                step, node, f"{branch:.0f}", ha="center", va="center", color="white", fontsize=8
            )
    axes.set_xticks(
        range(SHOWN_DEPTH), [f"step {step + 1}" for step in range(SHOWN_DEPTH)], fontsize=8
    )
    _tokens(axes, tree, across=False)
    axes.set_aspect("auto")
    axes.set_title(
        "stack_pe: the path from the root, newest\nstep first, is added to the embedding",
        fontsize=10,
    )


def _draw_relations(axes: Axes, tree: Tree) -> None:
    ids = tree_relations(batch_trees([tree]))[0].numpy()
    axes.imshow(
        ids, cmap=ListedColormap(AREAS[: len(RELATIONS)]), vmin=-0.5, vmax=len(RELATIONS) - 0.5
    )
    for number, name in enumerate(RELATIONS):
        axes.plot([], [], "s", color=AREAS[number], label=name.replace("_", " "))
    axes.legend(
        loc="center left", bbox_to_anchor=(1, 0.5), fontsize=7, frameon=False, handletextpad=0.2
    )
    _tokens(axes, tree, across=True)
    axes.set_title(
        "relation_mask: a learned strength per head\nand relation of query (row) and key",
        fontsize=10,
    )


def _draw_depths(axes: Axes, tree: Tree) -> None:
    depths = depth(batch_trees([tree]))[0].numpy()
    apart = depths[None, :] - depths[:, None]
    most = int(abs(apart).max())
    axes.imshow(apart, cmap=DIVERGING, vmin=-most, vmax=most)
    for (row, column), value in np.ndenumerate(apart):
        shown, color = f"{value:+d}" if value else "0", "white" if abs(value) == most else INK
        axes.text(column, row, shown, ha="center", va="center", fontsize=7, color=color)
    _tokens(axes, tree, across=True)
    axes.set_title(
        "relative_depth: a vector per difference\nof depths, on keys and values", fontsize=10
    )


def _tokens(axes: Axes, tree: Tree, across: bool) -> None:
    names: Sequence[Any] = tree.labels
    axes.set_yticks(range(len(tree)), names, fontsize=8)
    if across:
        axes.set_xticks(range(len(tree)), names, fontsize=8, rotation=90)
    axes.tick_params(length=0)


def _plain(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=10)
    axes.set_axis_off()
