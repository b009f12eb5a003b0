"""Whether methods see anything of the trees that they are given.

Over constituency trees whose tokens are the words, say, no token is parent, child or sibling of
another: relation masks then compute the same from any tree, and a study would find that syntax does
not help.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from treesyntax.model.composition import Composition
from treesyntax.nn.injection import Injection
from treesyntax.nn.tree_batch import TreeBatch


@torch.no_grad()
def blind_methods(methods: Composition, given: TreeBatch, other: TreeBatch) -> set[str]:
    """Names of the methods that compute the same from two batches of trees over the same tokens.

    Those that need no tree, or only add to the loss, are not among them.
    """
    tried = copy.deepcopy(methods).eval().float()
    generator = torch.Generator().manual_seed(1)
    for parameter in tried.parameters():  # which may begin where a method does nothing
        nn.init.normal_(parameter, std=0.3, generator=generator)
    return {
        name
        for name, method in zip(tried, tried.methods, strict=True)
        if method.needs_tree and not method.training_only and _same(method, given, other)
    }


def _same(method: Injection, given: TreeBatch, other: TreeBatch) -> bool:
    pairs = zip(_computed(method, given), _computed(method, other), strict=True)
    return all(torch.equal(first, second) for first, second in pairs)


def _computed(method: Injection, tree: TreeBatch) -> Iterator[Tensor]:
    """All that a method makes of trees, for keys and values that are the same for all trees."""
    site = method.site
    shape = (len(tree.token_node), site.heads, tree.token_node.shape[1], site.d_model // site.heads)
    x = torch.randn(shape, generator=torch.Generator().manual_seed(2))
    node_map, value_map = method.node_map(tree), method.value_map(tree)
    hooks = (
        method.node_encoding(tree), method.relation_ids(tree), method.pair_scale(tree),
        method.pair_features(tree), None if node_map is None else node_map(x),
        None if value_map is None else value_map(0, x),
    )  # fmt: skip
    return (tensor for tensor in hooks if tensor is not None)
