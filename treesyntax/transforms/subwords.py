"""Subword pieces attached to the nodes of the words they come from.

Two policies:

``siblings``
    Every piece is a node (McDonald & Chiang 2021, section 4: "BPE splits each leaf into several
    leaves under the same parent"). The first piece keeps the word's node with its relation and
    dependents; further pieces are new leaves right after that node's subtree, under the same
    parent, with the relation ``subword``. The root has no parent to share: further pieces of a
    root word become the root's first children. Surface indices count pieces.
``copy``
    The tree stays as it is, every piece is a token of the word's node.

A word without pieces (white space that the segmentation removes, say) keeps its node and its
label, but no token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from treesyntax.errors import OptionError, TreeError
from treesyntax.linearize import View
from treesyntax.tree import NO_WORD, ROOT_PARENT, Tree

SUBWORD_RELATION = "subword"
NO_PIECES = "<no-pieces>"

Pieces = Sequence[Sequence[str]]


class Segmented(NamedTuple):
    """A tree and the pieces of its words.

    Attributes:
        tree: the tree that the model sees.
        pieces: for each of its words, in surface order, the tokens of that word's node.
    """

    tree: Tree
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
    pieces_at = dict(zip(tree.word_nodes(), segmented.pieces, strict=True))
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
    tree, pieces = segmented
    labels = list(tree.labels)
    for node, word in zip(tree.word_nodes() if pieces else (), pieces, strict=True):
        labels[node] = word[0] if word else NO_PIECES
    if tuple(labels) == tree.labels:
        return tree
    return Tree(tree.parents, labels, tree.words, tree.relations, tree.branches)


@lru_cache(maxsize=1 << 16)
def _as_leaf(view: View, piece: str) -> str:
    # A view may escape some leaves.
    return view.tokens(Tree([ROOT_PARENT], [piece], [0]))[0]


def _copy(tree: Tree, nodes: list[int], pieces: Pieces) -> Segmented:
    return Segmented(tree, pieces)


def _siblings(tree: Tree, nodes: list[int], pieces: Pieces) -> Segmented:
    if not pieces:
        return Segmented(tree, pieces)
    spread = [word[i : i + 1] for word in pieces for i in range(max(1, len(word)))]
    own: list[Sequence[str]] = [()] * len(tree)
    starts = [NO_WORD] * len(tree)
    start = 0
    for node, word in zip(nodes, pieces, strict=True):
        own[node], starts[node] = word, start
        start += max(1, len(word))
    layout = _layout(tree, own)
    new_node = {node: number for number, (node, piece) in enumerate(layout) if piece == 0}
    above = [0, *tree.parents[1:].tolist()]
    return Segmented(
        Tree(
            [ROOT_PARENT, *(new_node[above[node]] for node, _ in layout[1:])],
            [own[node][i] if own[node] else tree.labels[node] for node, i in layout],
            [starts[node] + i if starts[node] >= 0 else NO_WORD for node, i in layout],
            [tree.relations[node] if i == 0 else SUBWORD_RELATION for node, i in layout]
            if tree.relations
            else (),
            _branches(tree.branches.tolist(), above, layout),
        ),
        spread,
    )


def _layout(tree: Tree, own: list[Sequence[str]]) -> list[tuple[int, int]]:
    """The new nodes in preorder, each as (old node, number of its piece)."""
    followers: list[list[int]] = [[] for _ in own]
    last = tree.last_descendants.tolist()
    # Subtrees that end with the same node: the pieces of the deepest come first.
    for node in range(len(own) - 1, 0, -1):
        if len(own[node]) > 1:
            followers[last[node]].append(node)
    followers[0].insert(0, 0)
    layout = []
    for node in range(len(own)):
        layout.append((node, 0))
        for owner in followers[node]:
            layout.extend((owner, i) for i in range(1, len(own[owner])))
    return layout


def _branches(old: list[int], above: list[int], layout: list[tuple[int, int]]) -> list[int]:
    """Slots: a new leaf takes the next one and moves the siblings after it up."""
    shift = [0] * len(old)
    first_piece = [0] * len(old)
    branches = []
    for node, piece in layout:
        parent = above[node]
        if piece:
            shift[parent] += 1
        elif node:
            first_piece[node] = old[node] + shift[parent]
        branches.append(first_piece[node] + piece if node else max(0, piece - 1))
    return branches


POLICIES: dict[str, Callable[[Tree, list[int], Pieces], Segmented]] = {
    "siblings": _siblings,
    "copy": _copy,
}
