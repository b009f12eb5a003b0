"""Small builders shared by tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from treesyntax.nn.tree_batch import TreeBatch, collate
from treesyntax.trees.tree import Tree


class Stored(NamedTuple):
    """What a tree store returns for a sentence."""

    parents: np.ndarray
    branches: np.ndarray
    token_nodes: np.ndarray


def stored(tree: Tree, token_nodes: list[int] | None = None) -> Stored:
    """A tree under its preorder linearization, or under the given map."""
    nodes = list(range(len(tree))) if token_nodes is None else token_nodes
    return Stored(
        tree.parents.astype(np.int64), tree.branches.astype(np.int64), np.array(nodes, np.int64)
    )


def batch_of(trees: list[Tree], left_pad: bool = False, width: int | None = None) -> TreeBatch:
    """Preorder linearizations padded together, each followed by one special token."""
    width = width or max((len(tree) for tree in trees), default=0) + 1
    return collate([stored(tree) for tree in trees], width, left_pad)


def first_column(tree: Tree, width: int, left_pad: bool) -> int:
    """Where the first token of a sentence stands in the padded batch."""
    return width - 1 - len(tree) if left_pad else 0
