"""Subwords attached to the nodes of the words they come from.

Two policies make every subword a node, so that surface indices count subwords; the first subword
keeps the word's node with its relation and dependents, further ones have the relation ``subword``:

``siblings``
    A leaf becomes several leaves under the same parent (McDonald & Chiang 2021): further subwords
    are new leaves right after the word's subtree. The root has no parent to share: further subwords
    of a root word become the root's first children.
``chain``
    Further subwords hang one below the other: the second is the last child of the word's node,
    after all its dependents, so that no other branch moves; the third is the child of the second.

Three leave the tree as it is, with all subwords of a word in the place of its token:

``copy``
    Every subword is a token of the word's node.
``first``, ``last``
    Only the first (last) subword is a token of the word's node, the others have no node, as special
    tokens have none.

A word without subwords (white space that the segmentation removes, say) keeps its node and its
label, but no token.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import NamedTuple

from treesyntax.errors import OptionError, TreeError
from treesyntax.trees.linearizations import Linearization, get_linearization
from treesyntax.trees.subword_nodes import Subwords, with_subword_nodes
from treesyntax.trees.tree import ROOT_PARENT, Tree

NO_SUBWORDS = "<no-pieces>"
NO_NODE = -1


class Segmented(NamedTuple):
    """A tree and the subwords of its words.

    Attributes:
        tree: the tree that the model sees.
        nodes: the node of each of its words, in surface order.
        subwords: the tokens of each of these nodes.
        placed: which of the tokens is on the node, 0 or -1; None for all of them.
    """

    tree: Tree
    nodes: list[int]
    subwords: Subwords
    placed: int | None = None


def attach(tree: Tree, subwords: Subwords, policy: str) -> Segmented:
    """Attach the subwords of each word, given in surface order, to the word's node.

    Raises:
        TreeError: if there are more or fewer words in the tree than lists of subwords.
        OptionError: if there is no such policy.
    """
    if policy not in POLICIES:
        raise OptionError(f"no subword policy is named {policy!r}; there are {', '.join(POLICIES)}")
    nodes = tree.word_nodes()
    if len(nodes) != len(subwords):
        raise TreeError(
            f"{len(subwords)} segmented words, but the tree has {len(nodes)} words",
            "segment the very words of the trees",
        )
    return POLICIES[policy](tree, nodes, subwords)


def linearize(segmented: Segmented, linearization: Linearization) -> tuple[list[str], list[int]]:
    """The tokens of a segmented tree and the node of each, -1 for a subword without node.

    A word's token is replaced by its subwords; a bracket that opens with a word is one of them.

    Raises:
        TreeError: if a label cannot be a token, or the linearization wants one token a node and a
            node has several subwords or none.
    """
    if linearization is get_linearization("words") and segmented.nodes:
        tokens = [subword for word in segmented.subwords for subword in word]
        # The careful way below names a subword that cannot be a token.
        if " ".join(tokens).split() == tokens:
            return tokens, _word_nodes(segmented)
    tree = _with_first_subwords(segmented)
    plain, plain_nodes = linearization.tokens(tree), linearization.token_nodes(tree)
    if all(len(word) == 1 for word in segmented.subwords):
        return plain, plain_nodes
    if linearization.slots:
        raise _not_one_token(segmented, linearization.name)
    subwords_at = dict(zip(segmented.nodes, segmented.subwords, strict=True))
    leaves = _leaves(linearization)
    tokens = []
    nodes: list[int] = []
    for token, node in zip(plain, plain_nodes, strict=True):
        # Later tokens of the same node are closing brackets, which stay as they are.
        word = subwords_at.pop(node, None)
        if word is None or len(word) == 1:
            tokens.append(token)
            nodes.append(node)
        elif word:
            tokens += [token, *(leaves[subword] for subword in word[1:])]
            nodes += _token_nodes(node, len(word), segmented.placed)
        elif bracket := token.removesuffix(NO_SUBWORDS):
            tokens.append(bracket)
            nodes.append(node)
    return tokens, nodes


def _not_one_token(segmented: Segmented, linearization: str) -> TreeError:
    """The error for a word with several subwords, or none, where each node is one token."""
    words = zip(segmented.nodes, segmented.subwords, strict=True)
    node, subwords = next((node, word) for node, word in words if len(word) != 1)
    number = f"{len(subwords)} subwords" if subwords else "no subword"
    return TreeError(
        f"the linearization {linearization} has one token a node, but the word "
        f"{segmented.tree.labels[node][:40]!r} has {number}",
        "choose a subword policy that makes every subword a node: siblings or chain"
        if subwords
        else "remove the word from the tree and its text, or choose another linearization",
    )


def _word_nodes(segmented: Segmented) -> list[int]:
    words = zip(segmented.nodes, segmented.subwords, strict=True)
    if segmented.placed is None:
        return [node for node, word in words for _ in word]
    return [
        n for node, word in words if word for n in _token_nodes(node, len(word), segmented.placed)
    ]


def _token_nodes(node: int, count: int, placed: int | None) -> list[int]:
    if placed is None:
        return [node] * count
    nodes = [NO_NODE] * count
    nodes[placed] = node
    return nodes


def _with_first_subwords(segmented: Segmented) -> Tree:
    tree = segmented.tree
    labels = list(tree.labels)
    for node, word in zip(segmented.nodes, segmented.subwords, strict=True):
        labels[node] = word[0] if word else NO_SUBWORDS
    if tuple(labels) == tree.labels:
        return tree
    return Tree._of(tree.parents, labels, tree.words, tree.relations, tree.branches)


class _Leaves(dict[str, str]):
    """The token of each subword as a leaf: a linearization may escape some."""

    def __init__(self, linearization: Linearization) -> None:
        self._linearization = linearization

    def __missing__(self, subword: str) -> str:
        self[subword] = self._linearization.tokens(Tree([ROOT_PARENT], [subword], [0]))[0]
        return self[subword]


@lru_cache
def _leaves(linearization: Linearization) -> _Leaves:
    return _Leaves(linearization)


def _as_nodes(tree: Tree, nodes: list[int], subwords: Subwords, chained: bool) -> Segmented:
    new_tree = with_subword_nodes(tree, nodes, subwords, chained)
    spread = [word[i : i + 1] for word in subwords for i in range(len(word) or 1)]
    return Segmented(new_tree, new_tree.word_nodes(), spread)


POLICIES: dict[str, Callable[[Tree, list[int], Subwords], Segmented]] = {
    "siblings": partial(_as_nodes, chained=False),
    "chain": partial(_as_nodes, chained=True),
    "copy": Segmented,
    "first": partial(Segmented, placed=0),
    "last": partial(Segmented, placed=-1),
}
