"""A batch of trees is checked where it is built."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from treesyntax.nn.tree_batch import TreeBatch, collate

ROOT_ALONE = (np.array([-1]), np.array([0]), np.array([0]))


def is_preorder(parents: list[int]) -> bool:
    """Depth first with a stack: the parent of each node is the one before it or one above that."""
    above: list[int] = []
    for node, parent in enumerate(parents):
        while above and above[-1] != parent:
            above.pop()
        if bool(above) == (parent == -1):
            return False
        above.append(node)
    return True


@settings(deadline=None, max_examples=300)
@given(st.lists(st.integers(0, 9), max_size=9))
def test_nodes_must_be_in_preorder(parents: list[int]):
    tree = [-1, *(parent % (node + 2) for node, parent in enumerate(parents))]
    arrays = (np.array(tree), np.zeros(len(tree), np.int64), np.arange(len(tree)))
    fault = nullcontext() if is_preorder(tree) else pytest.raises(ValueError, match="tree 1: node ")
    with fault:
        collate([ROOT_ALONE, arrays], len(tree) + 1)


def test_a_token_needs_one_of_the_nodes():
    with pytest.raises(ValueError, match="tree 0: the node of token 1 is none of its 1 nodes"):
        collate([(np.array([-1]), np.array([0]), np.array([0, 1]))], 3)


@pytest.mark.parametrize(("nodes", "branches", "tokens"), [
    ((1, 3), (1, 3), (2, 4)), ((2, 3), (2, 2), (2, 4)), ((3,), (3,), (3,)), ((2, 3), (2, 3), (2, 4, 1)),
])  # fmt: skip
def test_shapes_must_belong_together(nodes, branches, tokens):
    parts = [torch.zeros(shape, dtype=torch.long) for shape in (nodes, branches, tokens)]
    with pytest.raises(ValueError, match="of the same B, not"):
        TreeBatch(*parts)
