"""Nodes of a tree with the paths from the root to them, as stack encodings read them.

The traversal operators of stack encodings (Shiv & Quirk 2019) move a node: a stack of depth k over n
branches is a vector of n·k numbers, newest step first. Going down to child i pushes: ``D_i x = (e_i ;
x[:-n])``. Going up pops: ``U x = (x[n:] ; 0_n)``. Both are affine maps, and ``U D_i`` is the identity as
long as no step is forgotten.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from treesyntax.analysis.sentences import AnalysedSentence
from treesyntax.errors import OptionError
from treesyntax.nn.coordinates import BINARY_FORMS, branch_path

MOST_NODES = 500


@dataclass(frozen=True)
class Nodes:
    """Nodes of a tree with the paths from the root to them.

    Attributes:
        names: of the nodes.
        paths: LongTensor [M, K], branches from the newest step to the oldest, -1 beyond the root.
    """

    names: tuple[str, ...]
    paths: Tensor


def complete_tree(degree: int, levels: int, depth: int) -> Nodes:
    """All nodes of a complete tree, level by level.

    Args:
        degree: branches of each node.
        levels: levels of nodes, the root's included.
        depth: number K of steps to keep, the newest ones.
    """
    if (
        levels < 1
        or levels > MOST_NODES
        or sum(degree**level for level in range(levels)) > MOST_NODES
    ):
        raise OptionError(
            f"--levels {levels} over {degree} branches: give 1 or more, for {MOST_NODES} nodes at most"
        )
    walks = [steps for level in range(levels) for steps in product(range(degree), repeat=level)]
    paths = torch.full((len(walks), depth), -1)
    for row, steps in enumerate(walks):
        newest = steps[::-1][:depth]
        paths[row, : len(newest)] = torch.tensor(newest, dtype=torch.long)
    return Nodes(tuple("".join(map(str, steps)) or "root" for steps in walks), paths)


def tokens_of(sentence: AnalysedSentence, form: str, depth: int) -> Nodes:
    """The tokens of a sentence that have a node, with their paths as the model reads them."""
    placed = sentence.tree.token_node[0] >= 0
    if not 0 < int(placed.sum()) <= MOST_NODES:
        raise OptionError(
            f"sentence {sentence.index} has {int(placed.sum())} tokens with a node; choose one "
            f"with 1 to {MOST_NODES}"
        )
    tree = BINARY_FORMS[form](sentence.tree) if form in BINARY_FORMS else sentence.tree
    paths = branch_path(tree, depth, sentence.tree.token_node)[0, placed]
    pairs = zip(sentence.symbols, placed.tolist(), strict=True)
    return Nodes(tuple(symbol for symbol, is_placed in pairs if is_placed), paths)


def push(stacks: Tensor, child: int, degree: int) -> Tensor:
    """D_child of stacks [..., n·k]: ``child`` becomes the newest step, the oldest is forgotten."""
    newest = torch.zeros_like(stacks[..., :degree])
    newest[..., child] = 1
    return torch.cat([newest, stacks[..., :-degree]], dim=-1)


def pop(stacks: Tensor, degree: int) -> Tensor:
    """U of stacks [..., n·k]: the newest step is removed."""
    return torch.cat([stacks[..., degree:], torch.zeros_like(stacks[..., :degree])], dim=-1)
