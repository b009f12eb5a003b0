"""A batch of trees is checked where it is built."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest
import torch
from torch._subclasses import FakeTensorMode

from treesyntax.nn.tree_batch import TreeBatch, batch_trees, collate
from treesyntax.trees.tree import Tree

ROOT_ALONE = (np.array([-1]), np.array([0]), np.array([0]))


def walked(parents: Sequence[int], node: int = 0) -> list[int]:
    """The subtree of a node in the order of a walk, by recursion over the definition."""
    children = (child for child, parent in enumerate(parents) if parent == node != child)
    return [node, *(below for child in children for below in walked(parents, child))]


def test_nodes_must_be_in_preorder():
    """Every map of up to 5 nodes to parents before them, beside a tree that is as it should be."""
    for size in range(1, 6):
        for parents in product(*(range(node) for node in range(1, size))):
            tree = (-1, *parents)
            arrays = (np.array(tree), np.zeros(size, np.int64), np.arange(size))
            right = walked(tree) == [*range(size)]
            fault = (
                nullcontext() if right else pytest.raises(ValueError, match="^tree 1: node .* is")
            )
            with fault:
                collate([ROOT_ALONE, arrays], size + 1)


@pytest.mark.parametrize(
    ("part", "row", "message"),
    [
        ("parent", [1, -1, 1, 2], "node 0, of parent 1, is not in preorder; number nodes depth"),
        ("parent", [-1, 0, 0, 1], "node 3, of parent 1, is not in preorder"),
        ("parent", [-1, 0, -7, 0], "node 2, of parent -7, is not in preorder"),
        ("parent", [-1, 0, 9, 0], "node 2, of parent 9, is not in preorder"),
        ("parent", [-1, 0, 2**63 - 1, 0], "node 2, of parent 9223372036854775807, is not in"),
        ("parent", [-1, 0, -1, 1], "node 3, of parent 1, is not in preorder"),
        ("branch", [0, 0, -5, 0], "the branch of node 2 is -5; branches count from 0"),
        ("token_node", [0, 1, 9, -1], "the node of token 2 is none of its 4 nodes but 9"),
        (
            "token_node",
            [0, 1, -7, -1],
            "the node of token 2 is none of its 4 nodes but -7; a token",
        ),
    ],
)
def test_the_numbers_of_a_users_batch_are_checked(part: str, row: list[int], message: str):
    rows = {"parent": [-1, 0, 1, 0], "branch": [0, 0, 0, 1], "token_node": [0, 1, 2, 3]}
    right = {name: torch.tensor([numbers] * 2) for name, numbers in rows.items()}
    assert TreeBatch.from_dict(right).label is None
    wrong = {**right, part: torch.tensor([rows[part], row])}
    for build in (lambda: TreeBatch(**wrong), lambda: TreeBatch.from_dict(wrong)):
        with pytest.raises(ValueError, match=f"^tree 1: {message}"):
            build()
    # Where numbers cannot be read, or reading them would cost a step, they are not.
    assert torch.equal(TreeBatch(**wrong, check=False).parent, wrong["parent"])
    with FakeTensorMode() as fake:
        TreeBatch(**{name: fake.from_tensor(tensor) for name, tensor in wrong.items()})
    compiled = torch.compile(
        lambda one: TreeBatch(**one).parent + 1, backend="eager", fullgraph=True
    )
    assert torch.equal(compiled(wrong), wrong["parent"] + 1)


def test_nodes_of_tokens_are_checked_where_trees_are_batched():
    with pytest.raises(
        ValueError, match="tree 0: the node of token 2 is none of its 2 nodes but -7"
    ):
        batch_trees([Tree([-1, 0], ["a", "b"])], [[0, 1, -7]])


@pytest.mark.parametrize(
    ("parent", "kind"), [([[-1]], "list"), (torch.tensor([[-1.0]]), "torch.float32")]
)
def test_a_batch_is_made_of_long_tensors(parent: object, kind: str):
    numbers = torch.tensor([[0]])
    message = f"made of LongTensors, but its parent is a {kind}; batch_trees"
    with pytest.raises(ValueError, match=message):
        TreeBatch(parent, numbers, numbers)


@pytest.mark.parametrize(("rows", "nodes", "tokens"), [(0, 3, 2), (2, 0, 3), (2, 3, 0), (0, 0, 0)])
def test_batches_of_no_rows_nodes_or_tokens_are_right(rows: int, nodes: int, tokens: int):
    parent = torch.arange(nodes).repeat(rows, 1) - 1
    batch = TreeBatch(parent, torch.zeros_like(parent), torch.full((rows, tokens), -1))
    assert batch.token_node.shape == (rows, tokens)


def test_labels_are_numbered_from_1():
    """With enumerate alone the first label would be as any unknown one."""
    tree = Tree([-1, 0], ["a", "b"])
    with pytest.raises(ValueError, match="the label 'a' has the id 0, and 0 is that of unknown"):
        batch_trees([tree], labels={"a": 0, "b": 1})
    label = batch_trees([tree], labels={"b": 1}).label
    assert label is not None
    assert label.tolist() == [[0, 1]]


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


def test_a_batch_is_moved_whole():
    batch = batch_trees([Tree([-1, 0], ["a", "b"])])
    assert batch.to("cpu") is batch
    moved = batch.to("meta")
    assert {one.device.type for one in moved.to_dict().values()} == {"meta"}
    assert moved.to_dict().keys() == batch.to_dict().keys()
    assert batch.to("meta", non_blocking=True).parent.device.type == "meta"
