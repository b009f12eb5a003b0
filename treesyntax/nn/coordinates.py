"""Coordinates of nodes, computed on the device from a batch's O(N) integers.

Nothing here loops over nodes. Depths and subtree intervals come by pointer doubling: after r
rounds every node points 2^r steps up, so ceil(log2 N) gathers reach any root.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from treesyntax.nn.tree_batch import TreeBatch


def doubled_ancestors(parent: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The ancestors 1, 2, 4, … steps up, [B, N] each (node 0 beyond the root), and whether
    the node has that many ancestors at all."""
    jump, inside = parent.clamp(min=0), parent >= 0
    for _ in range(max(parent.shape[1] - 1, 1).bit_length()):
        yield jump, inside
        inside = inside & inside.gather(1, jump)
        jump = jump.gather(1, jump)


def depth(tree: TreeBatch) -> Tensor:
    """LongTensor [B, N]: edges from the root of its tree."""
    depths = (tree.parent >= 0).long()
    for jump, _ in doubled_ancestors(tree.parent):
        depths = depths + depths.gather(1, jump)
    return depths


def root(tree: TreeBatch) -> Tensor:
    """LongTensor [B, N]: the root of the tree of each node, the last one before it in preorder."""
    nodes = torch.arange(tree.parent.shape[1], device=tree.parent.device)
    return nodes.expand_as(tree.parent).masked_fill(tree.parent >= 0, 0).cummax(1).values


def in_one_tree(tree: TreeBatch, rows: slice = slice(None)) -> Tensor:
    """Bool [B, rows, T]: whether two tokens have nodes, and these are of one tree of a forest."""
    key = tree.at_tokens(root(tree)).int()
    query = key[:, rows].masked_fill(key[:, rows] < 0, -2)
    return query.unsqueeze(2) == key.unsqueeze(1)


def last_descendant(tree: TreeBatch) -> Tensor:
    """LongTensor [B, N]: the last node of each subtree, so node i dominates i < j <= last[i]."""
    last = torch.arange(tree.parent.shape[1], device=tree.parent.device)
    last = last.expand_as(tree.parent)
    for jump, inside in doubled_ancestors(tree.parent):
        reached = last.masked_fill(~inside, 0)
        last = last.scatter_reduce(1, jump, reached, "amax", include_self=True)
    return last


def previous_sibling(tree: TreeBatch) -> Tensor:
    """LongTensor [B, N]: the nearest sibling to the left, -1 for a first child."""
    order = tree.parent.argsort(dim=1, stable=True)
    parent = tree.parent.gather(1, order)
    same = (parent[:, 1:] == parent[:, :-1]) & (parent[:, 1:] >= 0)
    previous = torch.full_like(order, -1)
    previous[:, 1:] = order[:, :-1].masked_fill(~same, -1)
    return torch.empty_like(order).scatter_(1, order, previous)


def left_child_right_sibling(tree: TreeBatch) -> TreeBatch:
    """The batch form of :func:`treesyntax.trees.binary.to_binary`: same nodes, two branches."""
    previous = previous_sibling(tree)
    parent = torch.where(previous >= 0, previous, tree.parent)
    return TreeBatch(parent, (previous >= 0).long(), tree.token_node, check=False)


def right_factored(tree: TreeBatch) -> TreeBatch:
    """Binary trees in which children 2, 3, … hang together below branch 1.

    A node with children a, b, c, d becomes ``(a (b (c d)))``; an only child takes branch 0. Each
    inner child (neither first nor last) gets one new node above it and its right siblings,
    numbered N + its own number; the nodes of the tree keep their numbers.

    Returns:
        A batch with 2 N nodes, not in preorder: for paths only.
    """
    return _factored(tree, previous_sibling(tree), _next_sibling(tree), first_branch=0)


def left_factored(tree: TreeBatch) -> TreeBatch:
    """The mirror image of :func:`right_factored`: a, b, c, d becomes ``(((a b) c) d)``."""
    return _factored(tree, _next_sibling(tree), previous_sibling(tree), first_branch=1)


def _next_sibling(tree: TreeBatch) -> Tensor:
    previous = previous_sibling(tree)
    rows, size = previous.shape
    nodes = torch.arange(size, device=previous.device).expand_as(previous)
    following = previous.new_full((rows, size + 1), -1)
    # Nodes without a previous sibling write to the spare last column.
    following.scatter_(1, previous.masked_fill(previous < 0, size), nodes)
    return following[:, :-1]


def _factored(tree: TreeBatch, before: Tensor, after: Tensor, first_branch: int) -> TreeBatch:
    size = tree.parent.shape[1]
    nodes = torch.arange(size, device=tree.parent.device).expand_as(tree.parent)
    inner = (before >= 0) & (after >= 0)
    before_is_inner = inner.gather(1, before.clamp(min=0)) & (before >= 0)
    # Above a last or new node stands the new node of the sibling before it, if that has one.
    above = torch.where(before_is_inner, before + size, tree.parent)
    parent = torch.where(inner, nodes + size, above)
    only = (before < 0) & (after < 0)
    branch = torch.where((before >= 0) & (after < 0), 1 - first_branch, first_branch)
    branch = branch.masked_fill(only, 0)
    new_branch = torch.full_like(branch, 1 - first_branch)
    return TreeBatch(
        torch.cat([parent, above.masked_fill(~inner, -1)], 1),
        torch.cat([branch, new_branch], 1),
        tree.token_node,
        check=False,
    )


BINARY_FORMS = {"lcrs": left_child_right_sibling, "left": left_factored, "right": right_factored}
"""Binary forms of a batch of trees in which every node keeps its number."""


def branch_path(tree: TreeBatch, steps: int, nodes: Tensor | None = None) -> Tensor:
    """The last steps of the path from the root to each node.

    Args:
        steps: how many steps K to keep.
        nodes: LongTensor [B, M], the nodes whose paths are wanted, -1 for none; None for all N.

    Returns:
        LongTensor [B, M, K]: entry 0 is the branch by which the node hangs on its parent, entry 1
        the parent's, and so on; -1 beyond the root. Steps nearest the root are the ones lost.
    """
    size = tree.parent.shape[1]
    if nodes is None:
        nodes = torch.arange(size, device=tree.parent.device).expand_as(tree.parent)
    # Above a root there is one node more, which is above itself.
    top = tree.parent < 0
    above = F.pad(tree.parent.masked_fill(top, size), (0, 1), value=size)
    branch = F.pad(tree.branch.masked_fill(top, -1), (0, 1), value=-1)
    nodes = nodes.masked_fill(nodes < 0, size)
    path = []
    for _ in range(min(steps, size - 1)):
        path.append(branch.gather(1, nodes))
        nodes = above.gather(1, nodes)
    path += [torch.full_like(nodes, -1)] * (steps - len(path))
    return torch.stack(path, 2)
