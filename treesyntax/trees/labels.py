"""The label of each node that methods can read."""

from __future__ import annotations

from collections.abc import Sequence

from treesyntax.trees.tree import NO_WORD, Tree

WORD = "<word>"
"""The label of a word of a constituency tree, whose own text is the business of the tokens."""


def node_labels(tree: Tree) -> Sequence[str]:
    """N labels: the relation to the head where the tree has relations (``subword`` for nodes that
    subwords got), else the category or symbol of the node, :data:`WORD` for a word."""
    if tree.relations:
        return tree.relations
    words = tree.words.tolist()
    pairs = zip(tree.labels, words, strict=True)
    return [label if word == NO_WORD else WORD for label, word in pairs]
