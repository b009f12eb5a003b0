"""One tree for a line: the trees of its sentences below one root, or a flat tree."""

from __future__ import annotations

from collections.abc import Sequence

from treesyntax.trees.tree import NO_WORD, ROOT_PARENT, Tree

TOP = "TOP"
ROOTS = ("", "ROOT", "TOP", "VROOT")
"""Labels of an outermost node without meaning; it becomes ``TOP``."""
NO_TAG = "XX"
PARATAXIS = "parataxis"
NO_RELATION = "dep"


def flat_constituents(words: Sequence[str]) -> Tree:
    """All words below the root, each with the preterminal ``XX``."""
    parents, labels, word_indices = [ROOT_PARENT], [TOP], [NO_WORD]
    for index, word in enumerate(words):
        parents += [0, len(parents)]
        labels += [NO_TAG, word]
        word_indices += [NO_WORD, index]
    return Tree(parents, labels, word_indices)


def flat_dependencies(words: Sequence[str]) -> Tree:
    """All words depend on the first."""
    rest = len(words) - 1
    return Tree.from_heads([0] + [1] * rest, words, ["root"] + [NO_RELATION] * rest)


def join_constituents(trees: Sequence[Tree]) -> Tree:
    """Trees from left to right below one ``TOP``, which replaces roots without meaning."""
    parents, labels, words = [ROOT_PARENT], [TOP], [NO_WORD]
    count = 0
    for tree in trees:
        # Node 0 of a tree is left out, or is one more child of the new root.
        bare = int(tree.labels[0] in ROOTS and tree.words[0] == NO_WORD)
        offset = len(parents) - bare
        top = 0 if bare else ROOT_PARENT
        parents += [0 if p == top else p + offset for p in tree.parents[bare:].tolist()]
        labels += tree.labels[bare:]
        words += [word + count if word >= 0 else NO_WORD for word in tree.words[bare:].tolist()]
        count += sum(word >= 0 for word in tree.words.tolist())
    return Tree(parents, labels, words)


def join_dependencies(trees: Sequence[Tree]) -> Tree:
    """Trees from left to right; the roots of all but the first depend on the first one's root."""
    if len(trees) == 1:
        return trees[0]
    heads: list[int] = []
    forms: list[str] = []
    relations: list[str] = []
    first_root = trees[0].heads().index(0) + 1
    for tree in trees:
        offset = len(heads)
        nodes = tree.word_nodes()
        for node, head in zip(nodes, tree.heads(), strict=True):
            later_root = head == 0 and offset > 0
            heads.append(first_root if later_root else head + offset if head else 0)
            relations.append(PARATAXIS if later_root else tree.relations[node])
            forms.append(tree.labels[node])
    return Tree.from_heads(heads, forms, relations)
