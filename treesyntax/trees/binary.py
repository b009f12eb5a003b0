"""Left-child-right-sibling binarisation (Knuth 1968, section 2.3.2) and its exact inverse.

The binary tree has the very same nodes: branch 0 leads to the first child, branch 1 to the next
sibling. So node numbers, labels and words stay, only parents and branches change, and the
preorder of both trees is the same.
"""

from __future__ import annotations

from treesyntax.errors import TreeError
from treesyntax.trees.tree import Tree

FIRST_CHILD = 0
NEXT_SIBLING = 1


def to_binary(tree: Tree) -> Tree:
    """Return the left-child-right-sibling form of a tree, with the same node numbers."""
    parents = tree.parents.tolist()
    previous: list[int | None] = [None] * len(tree)
    binary_parents: list[int] = []
    branches: list[int] = []
    for parent in parents:
        node = len(binary_parents)
        elder = previous[parent] if parent >= 0 else None
        binary_parents.append(parent if elder is None else elder)
        branches.append(FIRST_CHILD if elder is None else NEXT_SIBLING)
        if parent >= 0:
            previous[parent] = node
    return Tree(binary_parents, tree.labels, tree.words, tree.relations, branches)


def from_binary(tree: Tree) -> Tree:
    """Return the tree whose left-child-right-sibling form is given."""
    parents: list[int] = []
    for node, (parent, branch) in enumerate(
        zip(tree.parents.tolist(), tree.branches.tolist(), strict=True)
    ):
        if branch > NEXT_SIBLING:
            raise TreeError(f"node {node} is child number {branch + 1} in a binary tree")
        if parent == 0 and branch == NEXT_SIBLING:
            raise TreeError("the root has a sibling", "a left-child-right-sibling root has none")
        parents.append(parents[parent] if parent >= 0 and branch == NEXT_SIBLING else parent)
    return Tree(parents, tree.labels, tree.words, tree.relations)
