"""Random walks on trees: from a node to one of its neighbours, each with the same probability.

M = D^-1 A of the tree without directions. A walk's step is a gather from parents and a sum over
children, so no matrix is multiplied. All numbers are of 32 bits at least, and of 64
where that type is asked for.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from treesyntax.nn.tree_batch import TreeBatch


def degrees(tree: TreeBatch, dtype: torch.dtype = torch.float32) -> Tensor:
    """Float [B, N]: neighbours of each node, 1 for a node without any."""
    is_child = (tree.parent >= 0).to(torch.promote_types(dtype, torch.float32))
    return is_child.scatter_add(1, tree.parent.clamp(min=0), is_child).clamp(min=1)


def landing_probabilities(
    tree: TreeBatch, powers: int, rows: slice = slice(None), dtype: torch.dtype = torch.float32
) -> Tensor:
    """Float [B, powers, rows, T]: [I, M, …, M^(powers - 1)] between the nodes of tokens.

    O(powers * N * T). Tokens without a node have zeros.
    """
    batch, size = tree.parent.shape
    offset = torch.arange(batch, device=tree.parent.device).unsqueeze(1) * size
    above = (tree.parent.clamp(min=0) + offset).flatten()
    is_child = (tree.parent >= 0).flatten().unsqueeze(1)
    each = degrees(tree, dtype).reciprocal().flatten().unsqueeze(1)
    nodes = torch.arange(size, device=tree.parent.device)
    # [B * N, T]: the probability to land on the node of each token.
    walk = (tree.token_node.unsqueeze(1) == nodes[:, None]).to(each.dtype).flatten(0, 1)
    queries = tree.token_node[:, rows]
    first = (queries.clamp(min=0) + offset).flatten()
    placed = (queries >= 0).unsqueeze(2)
    landed = walk.new_empty(batch, powers, *queries.shape[1:], walk.shape[1])
    for power in range(powers):
        if power:
            up = walk.index_select(0, above).mul_(is_child)
            walk = up.index_add_(0, above, walk.mul_(is_child)).mul_(each)
        landed[:, power] = walk.index_select(0, first).unflatten(0, queries.shape) * placed
    return landed


def return_probabilities(tree: TreeBatch, steps: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Float [B, N, steps]: the diagonals of M^2, M^4, …, M^(2 * steps); those of odd powers are 0.

    Of first passages (Feller 1968, XIII): with g_v the generating function of the length of a
    walk from v that ends at its first step to the parent, and h_v of one from the parent that ends
    at v, both in pairs of steps and each with the step back,

        g_v = w / d_v / (1 - sum over children c of g_c / d_v)
        h_v = w / d_p / (1 - (sum over siblings u of g_u + h_p) / d_p)     with p the parent of v
        sum over m of M^(2m)_vv w^m = 1 / (1 - (sum over children c of g_c + h_v) / d_v)

    cut off after w^steps. A round of these equations makes one more power of w right, however deep
    the tree is: O(N * steps^3), no n x n tensor.
    """
    parent, is_child = tree.parent.clamp(min=0), (tree.parent >= 0).unsqueeze(2)
    degree = degrees(tree, dtype).unsqueeze(2)
    index = parent.unsqueeze(2).expand(-1, -1, steps + 1)
    unit = F.pad(torch.ones_like(degree), (0, steps))
    below = to_parent = torch.zeros_like(unit)
    excursion = unit
    for _ in range(steps):
        to_parent = F.pad(excursion[..., :-1], (1, 0)) / degree * is_child
        below = torch.zeros_like(unit).scatter_add(1, index, to_parent)
        excursion = unit + _product(below / degree, excursion)
    degree_above, from_above = degree.gather(1, parent.unsqueeze(2)), torch.zeros_like(unit)
    others, excursion = below.gather(1, index) - to_parent, unit
    for _ in range(steps):
        from_above = F.pad(excursion[..., :-1], (1, 0)) / degree_above * is_child
        away = others + from_above.gather(1, index)
        excursion = unit + _product(away / degree_above, excursion)
    around, probabilities = (below + from_above) / degree, unit
    for _ in range(steps):
        probabilities = unit + _product(around, probabilities)
    return probabilities[..., 1:]


def _product(first: Tensor, second: Tensor) -> Tensor:
    """Of power series [..., K], to as many coefficients; the first series has no constant."""
    size = first.shape[-1]
    total = torch.zeros_like(second)
    for power in range(1, size):
        total[..., power:] += first[..., power : power + 1] * second[..., : size - power]
    return total
