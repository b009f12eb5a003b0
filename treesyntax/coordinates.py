"""Coordinates of nodes, computed on the device from a batch's O(N) integers.

Nothing here loops over nodes. Depths and subtree intervals come by pointer doubling: after r
rounds every node points 2^r steps up, so ceil(log2 N) gathers reach any root.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from treesyntax.batch import TreeBatch


def _doubled_ancestors(parent: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The ancestors 1, 2, 4, … steps up, [B, N] each (node 0 beyond the root), and whether
    the node has that many ancestors at all."""
    jump, inside = parent.clamp(min=0), parent >= 0
    for _ in range(max(parent.shape[1] - 1, 1).bit_length()):
        yield jump, inside
        inside = inside & inside.gather(1, jump)
        jump = jump.gather(1, jump)


def depth(tree: TreeBatch) -> Tensor:
    """LongTensor [B, N]: edges from the root."""
    depths = (tree.parent >= 0).long()
    for jump, _ in _doubled_ancestors(tree.parent):
        depths = depths + depths.gather(1, jump)
    return depths


def last_descendant(tree: TreeBatch) -> Tensor:
    """LongTensor [B, N]: the last node of each subtree, so node i dominates i < j <= last[i]."""
    last = torch.arange(tree.parent.shape[1], device=tree.parent.device)
    last = last.expand_as(tree.parent)
    for jump, inside in _doubled_ancestors(tree.parent):
        reached = last.masked_fill(~inside, 0)
        last = last.scatter_reduce(1, jump, reached, "amax", include_self=True)
    return last


def previous_sibling(tree: TreeBatch) -> Tensor:
    """LongTensor [B, N]: the nearest sibling to the left, -1 for a first child."""
    order = tree.parent.argsort(dim=1, stable=True)
    parent = tree.parent.gather(1, order)
    same = (parent[:, 1:] == parent[:, :-1]) & (parent[:, 1:] >= 0)
    elder = torch.full_like(order, -1)
    elder[:, 1:] = order[:, :-1].masked_fill(~same, -1)
    return torch.empty_like(order).scatter_(1, order, elder)


def left_child_right_sibling(tree: TreeBatch) -> TreeBatch:
    """The batch form of :func:`treesyntax.transforms.binary.to_binary`: same nodes, two branches."""
    elder = previous_sibling(tree)
    parent = torch.where(elder >= 0, elder, tree.parent)
    return TreeBatch(parent, (elder >= 0).long(), tree.token_node)


def branch_path(tree: TreeBatch, steps: int) -> Tensor:
    """The last steps of the path from the root to each node.

    Args:
        tree: the batch.
        steps: how many steps K to keep.

    Returns:
        LongTensor [B, N, K]: entry 0 is the branch by which the node hangs on its parent, entry 1
        the parent's, and so on; -1 beyond the root. Steps nearest the root are the ones lost.
    """
    node_branch = tree.branch.masked_fill(tree.parent < 0, -1)
    path = torch.full((*tree.parent.shape, steps), -1, device=tree.parent.device)
    ancestor = torch.arange(tree.parent.shape[1], device=tree.parent.device)
    ancestor = ancestor.expand_as(tree.parent)
    alive = tree.parent >= 0
    for step in range(min(steps, tree.parent.shape[1] - 1)):
        path[..., step] = node_branch.gather(1, ancestor).masked_fill(~alive, -1)
        ancestor = tree.parent.gather(1, ancestor).clamp(min=0)
        alive = alive & (tree.parent.gather(1, ancestor) >= 0)
    return path
