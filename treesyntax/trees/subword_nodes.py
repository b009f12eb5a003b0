"""The policies that make every subword a node of the tree: see `treesyntax.trees.subwords`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from treesyntax.trees.tree import NO_WORD, ROOT_PARENT, Tree

SUBWORD_RELATION = "subword"

Subwords = Sequence[Sequence[str]]


class _Split(NamedTuple):
    """Further subwords of a word; nodes are those of the old tree.

    Attributes:
        node: the word's node.
        after: the node that they follow, the last of a subtree.
        host: the node that they, or in a chain the first of them, hang below.
        slot: the branch of the first of them.
        subwords: the subwords but the word's first.
        word: the new surface index of the first of them.
    """

    node: int
    after: int
    host: int
    slot: int
    subwords: Sequence[str]
    word: int


def with_subword_nodes(tree: Tree, nodes: list[int], subwords: Subwords, chained: bool) -> Tree:
    """The tree with a node for every subword; a word without subwords keeps its node.

    ``nodes`` and ``subwords`` are those of each word in surface order. Further subwords hang one
    below the other if ``chained``, else they are siblings.
    """
    labels, words = list(tree.labels), [NO_WORD] * len(tree)
    attachments = _chain_places(tree, nodes) if chained else _sibling_places(tree, nodes)
    splits: list[_Split] = []
    start = 0
    for node, word, attachment in zip(nodes, subwords, attachments, strict=True):
        words[node] = start
        if word:
            labels[node] = word[0]
        if len(word) > 1:
            splits.append(_Split(node, *attachment, word[1:], start + 1))
        start += len(word) or 1
    # Where subtrees end together, the subwords of the deepest node come first.
    splits.sort(key=lambda split: (split.after, -split.node))
    return _grown(tree, labels, words, splits, chained)


def _sibling_places(tree: Tree, nodes: list[int]) -> list[tuple[int, int, int]]:
    """After, host and slot of the further subwords of each word; the root has no siblings."""
    last, parents = tree.last_descendants.tolist(), tree.parents.tolist()
    branches = tree.branches.tolist()
    return [(last[n], parents[n], branches[n] + 1) if n else (0, 0, 0) for n in nodes]


def _chain_places(tree: Tree, nodes: list[int]) -> list[tuple[int, int, int]]:
    last = tree.last_descendants.tolist()
    free = [0] * len(tree)
    for parent, branch in zip(tree.parents[1:].tolist(), tree.branches[1:].tolist(), strict=True):
        free[parent] = branch + 1
    return [(last[n], n, free[n]) for n in nodes]


def _grown(
    tree: Tree, old_labels: list[str], old_words: list[int], splits: list[_Split], chained: bool
) -> Tree:
    """The tree with these labels and words and the nodes of the splits, in one pass."""
    parents: list[int] = []
    branches: list[int] = []
    labels: list[str] = []
    words: list[int] = []
    moved: list[int] = []  # how far further children of each new node move up
    number: list[int] = []  # the new number of each old node
    upcoming = splits[::-1]
    structure = zip(tree.parents.tolist(), tree.branches.tolist(), strict=True)
    for node, (parent, branch) in enumerate(structure):
        number.append(len(parents))
        host = number[parent] if node else ROOT_PARENT
        parents.append(host)
        branches.append(branch + moved[host] if node else branch)
        labels.append(old_labels[node])
        words.append(old_words[node])
        moved.append(0)
        while upcoming and upcoming[-1].after == node:
            split = upcoming.pop()
            host, count = number[split.host], len(split.subwords)
            slot = split.slot + moved[host]
            if chained:
                parents += (host, *range(len(parents), len(parents) + count - 1))
                branches += (slot, *[0] * (count - 1))
            else:
                parents += [host] * count
                branches += range(slot, slot + count)
                moved[host] += count
            labels += split.subwords
            words += range(split.word, split.word + count)
            moved += [0] * count
    return Tree._of(parents, labels, words, _new_relations(tree, splits), branches)


def _new_relations(tree: Tree, splits: list[_Split]) -> list[str]:
    if not tree.relations:
        return []
    relations: list[str] = []
    done = 0
    for split in splits:
        relations += tree.relations[done : split.after + 1]
        relations += [SUBWORD_RELATION] * len(split.subwords)
        done = split.after + 1
    return relations + list(tree.relations[done:])
