"""Subword pieces attached to the nodes of the words they come from.

Two policies:

``siblings``
    Every piece is a node: a leaf becomes several leaves under the same parent (McDonald & Chiang
    2021). The first piece keeps the word's node with its relation and dependents; further pieces
    are new leaves right after that node's subtree, under the same parent, with the relation
    ``subword``. The root has no parent to share: further pieces of a root word become the
    root's first children. Surface indices count pieces.
``copy``
    The tree stays as it is, every piece is a token of the word's node.

A word without pieces (white space that the segmentation removes, say) keeps its node and its
label, but no token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from treesyntax.errors import OptionError, TreeError
from treesyntax.linearize import View
from treesyntax.tree import NO_WORD, ROOT_PARENT, IntArray, Tree

SUBWORD_RELATION = "subword"
NO_PIECES = "<no-pieces>"

Pieces = Sequence[Sequence[str]]


class Segmented(NamedTuple):
    """A tree and the pieces of its words.

    Attributes:
        tree: the tree that the model sees.
        nodes: the node of each of its words, in surface order.
        pieces: the tokens of each of these nodes.
    """

    tree: Tree
    nodes: list[int]
    pieces: Pieces


def attach(tree: Tree, pieces: Pieces, policy: str) -> Segmented:
    """Attach the pieces of each word, given in surface order, to the word's node.

    Raises:
        TreeError: if there are more or fewer words in the tree than lists of pieces.
        OptionError: if there is no such policy.
    """
    if policy not in POLICIES:
        raise OptionError(f"no subword policy is named {policy!r}; there are {', '.join(POLICIES)}")
    nodes = tree.word_nodes()
    if len(nodes) != len(pieces):
        raise TreeError(
            f"{len(pieces)} segmented words, but the tree has {len(nodes)} words",
            "segment the very words of the trees",
        )
    return POLICIES[policy](tree, nodes, pieces)


def linearise(segmented: Segmented, view: View) -> tuple[list[str], list[int]]:
    """The tokens of a segmented tree and the node of each.

    A word's token is replaced by its pieces; a bracket that opens with a word is one of them.

    Raises:
        TreeError: if a label cannot be a token.
    """
    tree = _with_first_pieces(segmented)
    plain, plain_nodes = view.tokens(tree), view.token_nodes(tree)
    if all(len(word) == 1 for word in segmented.pieces):
        return plain, plain_nodes
    pieces_at = dict(zip(segmented.nodes, segmented.pieces, strict=True))
    tokens: list[str] = []
    nodes: list[int] = []
    for token, node in zip(plain, plain_nodes, strict=True):
        # Later tokens of the same node are closing brackets, which stay as they are.
        word = pieces_at.pop(node, None)
        if word is None:
            found = [token]
        elif word:
            found = [token, *(_as_leaf(view, piece) for piece in word[1:])]
        else:
            bracket = token.removesuffix(NO_PIECES)
            found = [bracket] if bracket else []
        tokens += found
        nodes += [node] * len(found)
    return tokens, nodes


def _with_first_pieces(segmented: Segmented) -> Tree:
    tree, nodes, pieces = segmented
    labels = list(tree.labels)
    for node, word in zip(nodes, pieces, strict=True):
        labels[node] = word[0] if word else NO_PIECES
    if tuple(labels) == tree.labels:
        return tree
    return Tree(tree.parents, labels, tree.words, tree.relations, tree.branches)


@lru_cache(maxsize=1 << 16)
def _as_leaf(view: View, piece: str) -> str:
    # A view may escape some leaves.
    return view.tokens(Tree([ROOT_PARENT], [piece], [0]))[0]


def _copy(tree: Tree, nodes: list[int], pieces: Pieces) -> Segmented:
    return Segmented(tree, nodes, pieces)


def _siblings(tree: Tree, nodes: list[int], pieces: Pieces) -> Segmented:
    labels, words = list(tree.labels), [NO_WORD] * len(tree)
    splits: list[_Split] = []
    last = tree.last_descendants.tolist()
    start = 0
    for node, word in zip(nodes, pieces, strict=True):
        labels[node], words[node] = word[0] if word else labels[node], start
        if len(word) > 1:
            splits.append(_Split(node, last[node] if node else 0, word[1:], start + 1))
        start += max(1, len(word))
    # Where subtrees end together, the pieces of the deepest node come first.
    splits.sort(key=lambda split: (split.after, -split.node))
    return _grown(tree, labels, words, splits, pieces)


class _Split(NamedTuple):
    """Further pieces of a word.

    Attributes:
        node: the word's node.
        after: the old node that the pieces follow, the last one of the word's subtree.
        pieces: the pieces but the first.
        word: the surface index of the first of them.
    """

    node: int
    after: int
    pieces: Sequence[str]
    word: int


def _grown(
    tree: Tree, labels: list[str], words: list[int], splits: list[_Split], pieces: Pieces
) -> Segmented:
    relations = [[SUBWORD_RELATION] * len(split.pieces) for split in splits]
    new_words = _splice(words, splits, [range(s.word, s.word + len(s.pieces)) for s in splits])
    new_tree = Tree(
        _new_parents(tree.parents, splits),
        _splice(labels, splits, [split.pieces for split in splits]),
        new_words,
        _splice(tree.relations, splits, relations) if tree.relations else (),
        _new_branches(tree, splits),
    )
    spread = [word[i : i + 1] for word in pieces for i in range(max(1, len(word)))]
    nodes = [0] * len(spread)
    for node, word in enumerate(new_words):
        if word >= 0:
            nodes[word] = node
    return Segmented(new_tree, nodes, spread)


def _splice(old: Sequence[Any], splits: list[_Split], added: Sequence[Sequence[Any]]) -> list[Any]:
    """One value a node, with those of new nodes put in their places."""
    new: list[Any] = []
    done = 0
    for split, values in zip(splits, added, strict=True):
        new += old[done : split.after + 1]
        new += values
        done = split.after + 1
    return new + list(old[done:])


def _new_parents(old: IntArray, splits: list[_Split]) -> list[int]:
    shift = np.zeros(len(old) + 1, dtype=np.int64)
    for split in splits:
        shift[split.after + 1] += len(split.pieces)
    new_number = (np.arange(len(old)) + np.cumsum(shift[:-1])).tolist()
    parents = old.tolist()
    added = [[new_number[max(0, parents[s.node])]] * len(s.pieces) for s in splits]
    moved = [new_number[parent] if parent >= 0 else ROOT_PARENT for parent in parents]
    return _splice(moved, splits, added)


def _new_branches(tree: Tree, splits: list[_Split]) -> list[int]:
    """Slots: a new leaf takes the next one and moves the siblings after it up."""
    parents, branches = tree.parents, tree.branches.copy()
    added = []
    for node, _, pieces, _ in splits:
        first = int(branches[node]) + 1 if node else 0
        added.append(range(first, first + len(pieces)))
        branches[node + 1 :][parents[node + 1 :] == max(0, parents[node])] += len(pieces)
    return _splice(branches.tolist(), splits, added)


POLICIES: dict[str, Callable[[Tree, list[int], Pieces], Segmented]] = {
    "siblings": _siblings,
    "copy": _copy,
}
