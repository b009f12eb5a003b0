"""What a method makes of one tree: the picture of its page in the documentation, or of another tree.

It is computed by the method itself as it stands before training, so it serves a method of your own too.

Example: treesyntax analyse method "relation_mask(relations='parent, child')" --out figures
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

from treesyntax.analysis.figures import heat_map, name_ticks, write_figure
from treesyntax.analysis.idea import INK, draw_tree, read_tree
from treesyntax.model.composition import Composition
from treesyntax.nn.injection import Injection, LayerStates, Site
from treesyntax.nn.tree_batch import TreeBatch, batch_trees
from treesyntax.palette import DIVERGING, SEQUENTIAL
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.tree import Tree

SITE = Site(32, 2, 1)
SEED = 1
PALE, PALE_COLOURS = "Set3", 12
"""For ids: dark letters can be read on all of them."""


class Cells(NamedTuple):
    """A heat map of nodes.

    Attributes:
        title: what it shows.
        values: [N, columns], NaN where there is nothing.
        columns: name of each column.
        ids: whether the values are ids, which have colours of their own, and not amounts.
    """

    title: str
    values: NDArray[np.float64]
    columns: tuple[str, ...]
    ids: bool = False


def analyse(method: str, tree: str, out: Path) -> None:
    """Write ``NAME.svg`` for each method of a specification, and a tree in brackets."""
    for name, built in untrained(method).items():
        write_figure(draw_method(name, built, read_tree(tree)), out, name)


def untrained(spec: str) -> dict[str, Injection]:
    """The methods of a specification as they are built, by name; what is drawn at random has a seed."""
    torch.manual_seed(SEED)
    built = Composition(spec, SITE)
    return dict(zip(built.keys(), built.methods, strict=True))


def draw_method(name: str, method: Injection, tree: Tree) -> Figure:
    """The tree, numbered in preorder, and beside it the numbers of the method or the tokens that are read."""
    figure = Figure(figsize=(7.6, 3.4), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    draw_tree(left, tree, "a tree, numbered in preorder")
    shown = cells_of(method, tree)
    if shown is None:
        tokens = get_linearization(method.linearization).tokens(tree)
        right.text(0.5, 0.5, "\n".join(tokens), ha="center", va="center", fontsize=9)
        right.set_axis_off()
        right.set_title("the tokens that the model reads; nothing is added", fontsize=10)
        return figure
    texts, most = cell_texts(shown.values), float(np.nanmax(np.abs(shown.values))) or 1.0
    if shown.ids:
        palette, low, high, dark = PALE, 0.0, PALE_COLOURS - 1.0, np.zeros(texts.shape, bool)
    elif (shown.values < 0).any():
        palette, low, high, dark = DIVERGING, -most, most, np.abs(shown.values) > 0.7 * most
    else:
        palette, low, high, dark = SEQUENTIAL, 0.0, most, shown.values < 0.6 * most
    values = shown.values % PALE_COLOURS if shown.ids else shown.values
    heat_map(right, values, (palette, low, high))
    for (row, column), text in np.ndenumerate(texts):
        ink = "white" if dark[row, column] else INK
        right.text(column, row, text, ha="center", va="center", fontsize=7, color=ink)
    name_ticks(right, shown.columns)
    rows = shown.columns if len(shown.values) > len(tree) else tree.labels
    right.set_yticks(range(len(rows)), rows)
    right.tick_params(length=0, labelsize=8)
    right.set_title(shown.title, fontsize=10)
    return figure


def cell_texts(values: NDArray[np.float64]) -> NDArray[np.str_]:
    """What stands in the cells: whole numbers as they are, others with two decimals."""
    rounded = np.round(values, 2) + 0.0  # no -0.00
    form = "{:.0f}" if np.all(np.isnan(values) | (values == np.round(values))) else "{:.2f}"
    return np.array(
        [["" if np.isnan(value) else form.format(value) for value in row] for row in rounded]
    )


@torch.no_grad()
def cells_of(method: Injection, tree: Tree) -> Cells | None:
    """What the method computes for a tree whose nodes are the tokens; None if it adds nothing.

    Where the method is for closing tokens too, these are shown as well.

    A method with several hooks is shown by the first of: values, losses, maps, scales, numbers of pairs,
    relation ids, encodings of nodes.
    """
    method.eval()
    labels = {label: number for number, label in enumerate(dict.fromkeys(tree.labels), start=1)}
    batch, names = batch_trees([tree], labels=labels), tuple(tree.labels)
    read = get_linearization(method.linearization)
    if method.needs_tree and len(read.token_nodes(tree)) > len(tree):
        batch, names = batch_trees([tree], [read.token_nodes(tree)]), tuple(read.tokens(tree))
    size, heads = len(names), SITE.heads
    if (mapped := method.value_map(batch)) is not None:
        values = torch.eye(size).view(size, 1, size, 1).expand(-1, heads, -1, SITE.d_model // heads)
        share = torch.stack(
            [mapped(0, basis_value)[0, 0, :, 0] for basis_value in values.split(1)], 1
        )
        return Cells(
            "share of each value (column) in the value\nof a node (row)", _array(share), names
        )
    if (target_weights := _wanted_attention(method, batch, size)) is not None:
        return Cells(
            "attention (row to column) that the loss\nasks of a head in training",
            target_weights,
            names,
        )
    if (turned := method.node_map(batch)) is not None:
        width = SITE.d_model // heads
        eye = torch.eye(width).view(width, 1, 1, width).expand(-1, heads, size, -1)
        maps = turned(eye)[:, 0]
        alike = torch.einsum("cid,cjd->ij", maps, maps) / width
        return Cells(
            "how alike a query (row) and a key (column)\nare turned: 1 in the same way, less if not",
            _array(alike), names,
        )  # fmt: skip
    if (scale := method.pair_scale(batch)) is not None:
        return Cells("what the logit of a query (row) and\na key (column) is multiplied by", _array(scale[0]), names)  # fmt: skip
    if (features := method.pair_features(batch)) is not None:
        feature = min(2, features.shape[1] - 1)
        title = f"number {feature} (from 0) of {features.shape[1]} of a query (row)\nand a key (column), each with a weight"
        return Cells(title, _array(features[0, feature]), names)
    if (ids := method.relation_ids(batch)) is not None:
        table = method.bias_table(0)
        if table is not None and (table <= torch.finfo(table.dtype).min / 2).any():
            seen = (table > torch.finfo(table.dtype).min / 2)[:, ids[0].long()].sum(0)
            return Cells(f"how many of {heads} heads let the query (row)\nsee the key (column)", _array(seen), names)  # fmt: skip
        _, known = np.unique(_array(ids[0]), return_inverse=True)
        numbers = known.reshape(size, size).astype(float)
        return Cells(
            "relation of query (row) and key (column):\npairs with one number share what is learnt",
            numbers, names, ids=True,
        )  # fmt: skip
    return _encodings(method, batch, names)


def _wanted_attention(method: Injection, batch: TreeBatch, size: int) -> NDArray[np.float64] | None:
    """[N, N]: such a loss is a sum of -wanted * log attention, so its slope is what it wants."""
    if type(method).loss is Injection.loss:
        return None
    with torch.enable_grad():
        log_attention = torch.zeros(1, SITE.heads, size, size, requires_grad=True)
        nothing = torch.zeros(1, size, SITE.d_model)
        states = LayerStates(nothing, lambda heads: log_attention[:, :heads], nothing)
        loss = method.loss(0, states, batch)
        if loss is None or not loss.requires_grad:  # it is about states
            return None
        (slope,) = torch.autograd.grad(loss, log_attention)
    return _array(-slope[0, 0])


def _encodings(method: Injection, batch: TreeBatch, names: tuple[str, ...]) -> Cells | None:
    """The numbers that a method projects, or else the cosines of its encodings."""
    projected: list[torch.Tensor] = []
    for module in method.modules():
        if isinstance(module, torch.nn.Linear):
            module.register_forward_pre_hook(lambda _, inputs: projected.append(inputs[0]))
    encoding = method.node_encoding(batch)
    if encoding is None:
        return None
    if projected:
        values = _array(projected[0][0])
        columns = tuple(str(number + 1) for number in range(values.shape[1]))
        return Cells("numbers of each node, projected\nand added to its embedding", values, columns)
    unit = torch.nn.functional.normalize(encoding[0], dim=1)
    alike = _array(unit @ unit.T)
    alike[:, ~unit.any(1).numpy()] = alike[~unit.any(1).numpy()] = np.nan
    return Cells("cosine of the encodings of two nodes\nbefore training", alike, names)


def _array(values: torch.Tensor) -> NDArray[np.float64]:
    return values.detach().double().numpy()
