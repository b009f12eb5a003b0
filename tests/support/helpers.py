"""Small builders shared by tests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from treesyntax.metrics import get_metric
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
