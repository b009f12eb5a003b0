"""Trees over fewer words: words that share a subword become one, words without a subword go.

Dependency trees: the node of a merged group takes the place of its highest member, of several the
leftmost; its relation and head are this member's, and the dependents of all members are its own.
As the head of the highest member is higher than every member, no cycle can arise, which "the
leftmost member with a head outside" does not promise. The dependents of a removed word go to
its head, those of a removed root to the first of them.

Constituency trees: the leaf of a merged group is that of its first member; the other leaves go,
and with them the constituents that become empty.
"""

from __future__ import annotations

from collections.abc import Sequence

from treesyntax.errors import TreeError
from treesyntax.trees.tree import NO_WORD, ROOT_PARENT, Tree

NO_GROUP = -1


def units(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The words of each multi-word token and each other word, as ``first`` to before ``end``."""
    unit_words: list[tuple[int, int]] = []
    last = None
    for word, span in enumerate(spans):
        if span == last:
            unit_words[-1] = (unit_words[-1][0], word + 1)
        else:
            unit_words.append((word, word + 1))
        last = span
    return unit_words


def merge_words(tree: Tree, groups: Sequence[tuple[int, int]], forms: Sequence[str]) -> Tree:
    """The tree whose words are the groups.

    Args:
        tree: a dependency tree, or a tree with words at its leaves only.
        groups: from left to right, first word and word after the last of each; words outside
            all groups are removed.
        forms: the label of each group.
    """
    nodes = tree.word_nodes()
    if list(groups) == [(word, word + 1) for word in range(len(nodes))]:
        return tree
    if len(nodes) == len(tree):
        return _merged_dependencies(tree, nodes, groups, forms)
    if tree.arities[nodes].any():
        raise TreeError(
            "words share subwords, and the tree is neither a dependency tree nor has all its words "
            "at its leaves",
            "segment each word on its own",
        )
    return _merged_leaves(tree, nodes, groups, forms)


def _merged_dependencies(
    tree: Tree, nodes: list[int], groups: Sequence[tuple[int, int]], forms: Sequence[str]
) -> Tree:
    depths = tree.depths.tolist()
    # Dominance is read from the top down, so nodes (in preorder), not words, index these.
    group_of = [NO_GROUP] * len(tree)
    highest = []
    for group, (first, end) in enumerate(groups):
        members = nodes[first:end]
        for node in members:
            group_of[node] = group
        highest.append(min(members, key=depths.__getitem__))
    above = [NO_GROUP] * len(tree)
    for node, parent in enumerate(tree.parents.tolist()):
        if parent >= 0:
            above[node] = above[parent] if group_of[parent] == NO_GROUP else group_of[parent]
    heads = [above[node] + 1 for node in highest]
    if 0 in heads:
        root = heads.index(0) + 1
        heads = [head or root for head in heads]
        heads[root - 1] = 0
    relations = [tree.relations[node] for node in highest] if tree.relations else ()
    return Tree.from_heads(heads, forms, relations)


def _merged_leaves(
    tree: Tree, nodes: list[int], groups: Sequence[tuple[int, int]], forms: Sequence[str]
) -> Tree:
    parents, labels = tree.parents.tolist(), list(tree.labels)
    words = [NO_WORD] * len(tree)
    for word, ((first, _), form) in enumerate(zip(groups, forms, strict=True)):
        words[nodes[first]] = word
        labels[nodes[first]] = form
    # A leaf stays unless it is a word that goes; another node if anything below it stays.
    stays = (tree.arities == 0).tolist()
    for node in nodes:
        stays[node] = words[node] != NO_WORD
    for node in range(len(tree) - 1, 0, -1):
        stays[parents[node]] |= stays[node]
    kept = [node for node, stay in enumerate(stays) if stay]
    number = {ROOT_PARENT: ROOT_PARENT} | {node: new for new, node in enumerate(kept)}
    return Tree(
        [number[parents[node]] for node in kept],
        [labels[node] for node in kept],
        [words[node] for node in kept],
        [tree.relations[node] for node in kept] if tree.relations else (),
    )
