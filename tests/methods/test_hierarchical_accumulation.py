"""Accumulated values and subtree masks, against loops over leaves and paths."""

import math

import support.oracles as oracles
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import batch_of, expect_same, first_column, stored
from support.strategies import trees

from treesyntax.model.composition import Composition
from treesyntax.nn.attention import attend
from treesyntax.nn.injection import Site
from treesyntax.nn.tree_batch import collate
from treesyntax.trees.tree import Tree

SITE = Site(d_model=8, heads=2, layers=2)


def below(tree: Tree, node: int) -> list[int]:
    return [n for n in range(len(tree)) if n == node or node in oracles.ancestors(tree, n)]


def leaves_of(tree: Tree) -> list[int]:
    return [node for node in range(len(tree)) if below(tree, node) == [node]]


def accumulated(tree: Tree, values: torch.Tensor, u: torch.Tensor, node: int) -> torch.Tensor:
    """[d], straight from the formula; values [N, d]."""
    if node in leaves_of(tree):
        return values[node]
    total, own = 0.0, [leaf for leaf in leaves_of(tree) if leaf in below(tree, node)]
    for leaf in own:
        path = [t for t in (leaf, *oracles.ancestors(tree, leaf)) if t in below(tree, node)]
        total = total + (1 + u @ values[leaf]) * values[path].sum(0) / len(path)
    return total / len(own)


@settings(deadline=None, max_examples=25)
@given(st.lists(trees(max_nodes=10), min_size=1, max_size=3), st.booleans(), st.booleans(),
       st.booleans())  # fmt: skip
def test_attention_to_accumulated_values(forest, left_pad, weighted, masked):
    spec = f"hierarchical_accumulation(weighted={weighted}, masked={masked})"
    composition = Composition(spec, SITE).double()
    generator = torch.manual_seed(0)
    for parameter in composition.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    batch = batch_of(forest, left_pad)
    rows, width = batch.token_node.shape
    inputs = torch.randn(3, rows, 2, width, 4, dtype=torch.float64, generator=generator)
    leaves = [inputs.requires_grad_(), *composition.parameters()]
    real = torch.zeros(rows, 1, 1, width, dtype=torch.bool)
    for row, tree in enumerate(forest):
        start = first_column(tree, width, left_pad)
        real[row, ..., start : start + len(tree) + 1] = True
    attended = attend(*inputs, real, composition.relate(batch)(1))
    u = leaves[1] if weighted else torch.zeros(2, 2, 4, dtype=torch.float64)
    found, wanted = [], []
    for row, tree in enumerate(forest):
        start, size = first_column(tree, width, left_pad), len(tree)
        for head in range(2):
            q, k, v = inputs[:, row, head, start : start + size + 1]
            nodes = [accumulated(tree, v[:size], u[1, head], node) for node in range(size)]
            values = torch.stack([*nodes, v[size]])
            for i in range(size + 1):
                seen = list(range(size + 1))
                if masked and i < size:
                    part = leaves_of(tree) if i in leaves_of(tree) else below(tree, i)
                    seen = [*part, size]
                wanted.append(torch.softmax(k[seen] @ q[i] / math.sqrt(4), 0) @ values[seen])
                found.append(attended[row, head, start + i])
    expect_same(torch.stack(found), torch.stack(wanted), leaves)


def test_nodes_of_several_tokens_and_of_none():
    """Under ``a(b(c))``: a and the two tokens of c; b has none and is left out of the path."""
    tree = Tree([-1, 0, 1], list("abc"))
    method = Composition("hierarchical_accumulation", SITE)["hierarchical_accumulation"]
    values = torch.randn(1, 2, 4, 4)
    found = method.value_map(collate([stored(tree, [0, 2, 2])], 4))(0, values)
    first, *others = values[0].unbind(1)
    torch.testing.assert_close(found[0, :, 0], (first + (others[0] + others[1]) / 2) / 2)
    assert torch.equal(found[0, :, 1:], values[0, :, 1:])


def test_inner_nodes_without_tokens_below_them_keep_their_values():
    tree = Tree([-1, 0, 0], list("abc"))
    method = Composition("hierarchical_accumulation", SITE)["hierarchical_accumulation"]
    values = torch.randn(1, 2, 2, 4)
    assert torch.equal(method.value_map(collate([stored(tree, [0])], 2))(0, values), values)


def test_decoders_are_refused():
    assert "come later" in Composition("hierarchical_accumulation", SITE).leaks_future()
