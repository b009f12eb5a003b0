"""Whether methods see anything of the trees that they are given.

Over constituency trees whose tokens are the words, say, no token is parent, child or sibling of
another: relation masks then compute the same from any tree, and a study would find that syntax does
not help.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping

import torch
from torch import Tensor, nn

from treesyntax.errors import OptionError
from treesyntax.nn.injection import Injection
from treesyntax.nn.tree_batch import TreeBatch

LOOKED_AT = 100
"""Sentences of the training data in which is looked."""


@torch.no_grad()
def refuse_blind(
    methods: Mapping[str, Injection], pairs: Iterable[tuple[TreeBatch, TreeBatch]]
) -> None:
    """Refuse methods to which the trees of the data are no different from random ones.

    Those that need no tree, or only add to the loss, are not looked at.

    Args:
        methods: by name.
        pairs: trees of the data, and random trees in their place, over the same tokens.

    Raises:
        OptionError: for a method that computes the same from both, in all pairs.
    """
    blind = {
        name: moved(method)
        for name, method in methods.items()
        if method.needs_tree and not method.training_only
    }
    looked_at = 0
    for tree, random_tree in pairs if blind else ():
        looked_at += 1
        blind = {name: method for name, method in blind.items() if _same(method, tree, random_tree)}
        if not blind:
            return
    if looked_at and blind:
        raise OptionError(
            f"{' and '.join(blind)} would learn nothing from these trees: over {looked_at} sentences it "
            "computes the same from random trees. If words are the leaves of constituents, none is parent "
            "or sibling of another: take dependency trees, or tree_distance, relative_depth or stack_pe"
        )


def moved(method: Injection) -> Injection:
    """A copy on the CPU away from its start, where a method may do nothing."""
    moved = copy.deepcopy(method).eval().cpu().float()
    generator = torch.Generator().manual_seed(1)
    for parameter in moved.parameters():
        nn.init.normal_(parameter, std=0.3, generator=generator)
    return moved


def _same(method: Injection, given: TreeBatch, other: TreeBatch) -> bool:
    results = zip(_results(method, given), _results(method, other), strict=True)
    return all(torch.equal(first, second) for first, second in results)


def _results(method: Injection, tree: TreeBatch) -> Iterator[Tensor]:
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
