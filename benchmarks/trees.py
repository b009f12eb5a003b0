"""Random trees for the benchmarks."""

from __future__ import annotations

import random

import torch
from torch import Tensor


def random_trees(batch: int, nodes: int, seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Parents, branches, token nodes and labels [B, N] of random trees in preorder."""
    source = random.Random(seed)
    parents, branches = [], []
    for _ in range(batch):
        path, parent, branch, used = [0], [-1], [0], [0] * nodes
        for node in range(1, nodes):
            path = path[: source.randint(1, len(path))]
            parent.append(path[-1])
            branch.append(used[path[-1]])
            used[path[-1]] += 1
            path.append(node)
        parents.append(parent)
        branches.append(branch)
    nodes_of_tokens = torch.arange(nodes).expand(batch, -1)
    labels = torch.arange(batch * nodes).view(batch, nodes) * 7 % 40
    return torch.tensor(parents), torch.tensor(branches), nodes_of_tokens, labels
