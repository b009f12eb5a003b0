"""Small builders shared by tests."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

import support.oracles as oracles
from treesyntax.metrics import get_metric
from treesyntax.model.composition import Composition
from treesyntax.nn.attention import attend
from treesyntax.nn.tree_batch import TreeBatch, collate
from treesyntax.trees.formats import FORMATS
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.tree import Tree

CONLLU, PTB, MRG, SEXPR, BARE, PROLOG, JSONL = (
    FORMATS[name] for name in ("conllu", "ptb", "mrg", "sexpr", "sexpr_bare", "prolog", "jsonl")
)
EMPTY = Tree([], [])
SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
LINE_FORMATS = [PTB, SEXPR, BARE, PROLOG, JSONL]
REFERENCES = ["let a0 = 7 in unit", "let a1 = 2 in unit", "let a0 = a1 - 3 in unit", "unit"]
HYPOTHESES = ["let a0 =  7 in unit ", "let a1 = 2 in", "let a0 = ( a1 ) - 3 in unit", "let a0"]


class Stored(NamedTuple):
    """What a tree store returns for a sentence."""

    parents: np.ndarray
    branches: np.ndarray
    token_nodes: np.ndarray
    labels: np.ndarray | None = None


def stored(tree: Tree, token_nodes: list[int] | None = None) -> Stored:
    """A tree under its preorder linearization, or under the given map."""
    nodes = list(range(len(tree))) if token_nodes is None else token_nodes
    # Some label for each node, the same for the same text; 0 is an unknown one.
    labels = np.array([sum(map(ord, label)) % 5 for label in tree.labels], np.int64)
    return Stored(
        tree.parents.astype(np.int64),
        tree.branches.astype(np.int64),
        np.array(nodes, np.int64),
        labels,
    )


def batch_of(trees: list[Tree], left_pad: bool = False, width: int | None = None) -> TreeBatch:
    """Preorder linearizations padded together, each followed by one special token."""
    width = width or max((len(tree) for tree in trees), default=0) + 1
    return collate([stored(tree) for tree in trees], width, left_pad)


def encoded(trees: list[Tree], linearization: str) -> tuple[Tensor, list[str]]:
    """Decoder input [B, T] of trees in a linearization, and its symbols; padding is 1, EOS 2."""
    lines = [get_linearization(linearization).tokens(tree) for tree in trees]
    symbols = [*SPECIALS, *sorted({symbol for line in lines for symbol in line})]
    rows = [torch.tensor([2, *map(symbols.index, line)]) for line in lines]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=1), symbols


def first_column(tree: Tree, width: int, left_pad: bool) -> int:
    """Where the first token of a sentence stands in the padded batch."""
    return width - 1 - len(tree) if left_pad else 0


def expect_same(found: Tensor, wanted: Tensor, leaves: Iterable[Tensor]) -> None:
    """Values of 64 bits, and their gradients in all leaves."""
    assert found.dtype == wanted.dtype == torch.float64
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)
    leaves = list(leaves)
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(found.shape, generator=generator, dtype=found.dtype)
    gradients = [
        torch.autograd.grad((one * weights).sum(), leaves, allow_unused=True)
        for one in (found, wanted)
    ]
    for leaf, *both in zip(leaves, *gradients, strict=True):
        mine, slow = (torch.zeros_like(leaf) if one is None else one for one in both)
        torch.testing.assert_close(mine, slow, rtol=1e-8, atol=1e-10)


def expect_attention(
    composition: Composition,
    batch: TreeBatch,
    sizes: Sequence[int],
    left_pad: bool,
    logit: Callable[[int, int, int, int, Tensor], Tensor],
    layer: int = 1,
) -> None:
    """Attention with what methods add is that of a formula: values, and gradients of all that is learned.

    Args:
        composition: in 64 bits; it is moved away from its start values.
        sizes: tokens of each sentence, special ones included.
        logit: of sentence, head, positions of query and key in the sentence, and q·k / sqrt(d).
    """
    heads, width = composition.methods[0].site.heads, batch.token_node.shape[1]
    generator = torch.Generator().manual_seed(1)
    for parameter in composition.parameters():
        nn.init.normal_(parameter, generator=generator)
    shape = (3, len(sizes), heads, width, 4)
    inputs = torch.randn(shape, generator=generator, dtype=torch.float64)
    leaves = [inputs.requires_grad_(), *composition.parameters()]
    starts = [width - size if left_pad else 0 for size in sizes]
    spans = [slice(start, start + size) for start, size in zip(starts, sizes, strict=True)]
    real = torch.zeros(len(sizes), 1, 1, width, dtype=torch.bool)
    for one, span in zip(real, spans, strict=True):
        one[..., span] = True
    attended = attend(*inputs, real, composition.relate(batch)(layer))
    found, wanted = [], []
    for sentence, span in enumerate(spans):
        for head in range(heads):
            found.append(attended[sentence, head, span])
            of_head = functools.partial(logit, sentence, head)
            wanted.append(oracles.attention(*inputs[:, sentence, head, span], of_head))
    expect_same(torch.cat(found), torch.cat(wanted), leaves)


def row(number: object, form: str = "w", head: object = 0, relation: str = "root") -> str:
    return f"{number}\t{form}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_"


def nested(tree: Tree, node: int = 0) -> object:
    """A tree as nested lists, by recursion over the definition."""
    children = [nested(tree, child) for child in tree.children()[node]]
    return [tree.labels[node], *children] if children else tree.labels[node]


def structure(tree: Tree) -> tuple[list[int], tuple[str, ...]]:
    return tree.parents.tolist(), tree.labels


def value(name: str, hypotheses: list[str], references: list[str]) -> float:
    (score,) = get_metric(name)(hypotheses, references)
    assert score.metric == name
    assert score.n == len(references)
    return score.value
