"""Control trees: the words of a tree under a structure that holds no syntax.

If a method does as well with them as with gold trees, what helps is that there is a tree, or the
capacity that comes with it, not the syntax.

===================  ====================  ======================  =========================
control              dependency tree       constituency tree       tree without words
===================  ====================  ======================  =========================
``given``            the tree of the file  the tree of the file    the tree of the file
``random``           uniform over all      uniform over all        uniform over all ordered
                     projective trees      trees of its nodes      trees
``right_branching``  every word heads the  every constituent is a  a chain
                     next one              word and the rest
``flat``             the first word heads  all words under the     all nodes under the root
                     all others            root
===================  ====================  ======================  =========================

In a dependency tree every node is a word. Any other tree with words becomes a constituency tree
with the words as its leaves, in order, under at least a root. A tree without words (a program, a
logical form) keeps its labels in preorder. All relations are ``dep``, and the root of a dependency
tree is not the original one.

A random constituency tree has the nodes of the original: each label with its number of children, the
root at the root, and each part of speech above its word. So linearizations are as long and have the
same labels, and what differs is which words are grouped, under what label, and how deep. In
``right_branching`` and ``flat`` trees all labels are ``X``, and there are other numbers of nodes.

For the trees that a decoder grows there is ``shuffled``: the same nodes below the same parents, but the
children of each node stand in an order that its label, their number and the seed decide. So a model must
grow an order that means nothing, and :func:`unshuffled` gives back the tree, hence its text.

A random tree depends on the seed and the words (labels in preorder if there are none), a constituency
tree also on the number of nodes with each label and arity, but not on the original structure, the
place in the file, or the process.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from itertools import pairwise
from random import Random
from typing import NamedTuple

from treesyntax.errors import unknown_name
from treesyntax.trees.names import GIVEN, SHUFFLED
from treesyntax.trees.tree import NO_WORD, ROOT_PARENT, Tree

LABEL = "X"
RANDOM = "random"
RELATION = "dep"

Shape = Callable[[int, Random], list[int]]


class Shapes(NamedTuple):
    """The three structures of a control, each a function of a size and a random generator.

    Attributes:
        heads: the head of each of N words, 1-based, 0 for the root [N].
        spans: the arities, in preorder, of a constituency tree over N ≥ 2 leaves; a random one only
            where the original has words inside.
        nodes: the arities, in preorder, of a tree of N nodes [N].
    """

    heads: Shape
    spans: Shape
    nodes: Shape


def control_tree(tree: Tree, name: str, seed: int) -> Tree:
    """Return the control of that name for a tree; the empty tree is its own."""
    if name == SHUFFLED:
        return shuffled(tree, seed)
    if name not in CONTROLS:
        raise unknown_name("control tree", name, (*CONTROLS, SHUFFLED))
    shapes = CONTROLS[name]
    if shapes is None or not len(tree):
        return tree
    nodes = tree.word_nodes()
    labels = [tree.labels[node] for node in nodes] or list(tree.labels)
    rng = _generator(labels, seed)
    relations = [RELATION] * len(tree) if tree.relations else ()
    if len(nodes) == len(tree):
        return Tree.from_heads(shapes.heads(len(nodes), rng), labels, relations)
    if nodes and name == RANDOM and not any(tree.arities[node] for node in nodes):
        return _rearranged(tree, nodes, rng)
    if nodes:
        return _over_leaves(shapes.spans(len(nodes), rng) if len(nodes) > 1 else [1, 0], labels)
    return Tree(_parents(shapes.nodes(len(tree), rng)), labels, None, relations)


def child_order(label: str, children: int, seed: int) -> list[int]:
    """Return the order of the children of such nodes in ``shuffled`` trees, a permutation.

    Its k-th number is the original place of the child that comes k-th.
    """
    order = list(range(children))
    _generator([label, str(children)], seed).shuffle(order)
    return order


def shuffled(tree: Tree, seed: int) -> Tree:
    """Return the tree with the children of each node in the order of :func:`child_order`.

    Words are renumbered from left to right, as they are printed; relations go with their nodes.
    """
    return _reordered(tree, lambda label, children: child_order(label, children, seed))


def unshuffled(tree: Tree, seed: int) -> Tree:
    """Return the tree that :func:`shuffled` made this one of."""

    def original(label: str, children: int) -> list[int]:
        order = child_order(label, children, seed)
        return sorted(range(children), key=order.__getitem__)

    return _reordered(tree, original)


def _reordered(tree: Tree, order_of: Callable[[str, int], list[int]]) -> Tree:
    children: list[list[int]] = [[] for _ in range(len(tree))]
    for node, parent in enumerate(tree.parents.tolist()):
        if parent != ROOT_PARENT:
            children[parent].append(node)
    nodes: list[int] = []
    waiting = [0] if len(tree) else []
    while waiting:
        nodes.append(node := waiting.pop())
        order = order_of(tree.labels[node], len(children[node]))
        waiting += [children[node][index] for index in reversed(order)]
    number = {node: index for index, node in enumerate(nodes)} | {ROOT_PARENT: ROOT_PARENT}
    words = iter(range(len(tree)))
    return Tree(
        [number[parent] for parent in tree.parents[nodes].tolist()],
        [tree.labels[node] for node in nodes],
        [next(words) if tree.words[node] != NO_WORD else NO_WORD for node in nodes],
        [tree.relations[node] for node in nodes] if tree.relations else (),
    )


def _generator(labels: list[str], seed: int) -> Random:
    text = "\0".join((str(seed), *labels)).encode("utf-8", "surrogatepass")
    return Random(int.from_bytes(blake2b(text, digest_size=16).digest()))


def _rearranged(tree: Tree, words: list[int], rng: Random) -> Tree:
    """A uniform choice among the trees of the same nodes, the words in their order.

    Args:
        tree: one whose words are leaves.
        words: its nodes with words, from left to right.
        rng: what chooses.
    """
    parents, arities = tree.parents.tolist(), tree.arities.tolist()
    leaves = [
        (parents[word], word) if word and arities[parents[word]] == 1 else (word,) for word in words
    ]
    kept = {node for leaf in leaves for node in leaf}
    root, *inner = [node for node in range(len(tree)) if node not in kept] or [0]
    if root in kept:
        return Tree(tree.parents, tree.labels, tree.words)
    units = [*((node,) for node in inner), *[()] * len(leaves)]
    rng.shuffle(units)
    slots = [arities[unit[0]] if unit else 0 for unit in units]
    start = rng.choice(_forest_starts(slots, arities[root]))
    coming = iter(leaves)
    placed = [unit or next(coming) for unit in (*units[start:], *units[:start])]
    nodes = [root, *(node for unit in placed for node in unit)]
    return Tree(
        _parents([arities[node] for node in nodes]),
        [tree.labels[node] for node in nodes],
        [int(tree.words[node]) for node in nodes],
    )


def _forest_starts(arities: list[int], trees: int) -> list[int]:
    """Where to begin in a circle of N numbers that sum to N - K, so that they are K trees.

    There are exactly K such places, where the open slots reach a new minimum in the second round
    (the cycle lemma, Dvoretzky & Motzkin 1947).
    """
    open_slots, fewest, starts = 0, 0, []
    for step in range(1, 2 * len(arities) + 1):
        open_slots += arities[(step - 1) % len(arities)] - 1
        if open_slots < fewest:
            fewest = open_slots
            if step > len(arities):
                starts.append(step % len(arities))
    assert len(starts) == trees
    return starts


def _over_leaves(arities: list[int], words: list[str]) -> Tree:
    coming = iter(enumerate(words))
    leaves = [(NO_WORD, LABEL) if arity else next(coming) for arity in arities]
    return Tree(_parents(arities), [label for _, label in leaves], [word for word, _ in leaves])


def _parents(arities: list[int]) -> list[int]:
    """Parents in preorder."""
    parents = []
    open_slots = [ROOT_PARENT]
    for node, arity in enumerate(arities):
        parents.append(open_slots.pop())
        open_slots += [node] * arity
    return parents


def _tree_start(arities: list[int]) -> int:
    """Where to begin in a circle of N numbers that sum to N - 1, so that they are a tree.

    There is exactly one such place (the cycle lemma, Dvoretzky & Motzkin 1947): so a uniform choice
    among sequences, turned to begin there, is a uniform choice among trees.
    """
    open_slots, fewest, start = 0, 0, 0
    for node, arity in enumerate(arities):
        open_slots += arity - 1
        if open_slots < fewest:
            fewest, start = open_slots, node + 1
    return start % len(arities)


def _shared_out(items: int, boxes: int, rng: Random) -> list[int]:
    """How many items each box gets, uniform over all ways to share out equal items."""
    bars = sorted(rng.sample(range(items + boxes - 1), boxes - 1))
    return [end - begin - 1 for begin, end in pairwise([-1, *bars, items + boxes - 1])]


def _random_nodes(size: int, rng: Random) -> list[int]:
    arities = _shared_out(size - 1, size, rng)
    start = _tree_start(arities)
    return arities[start:] + arities[:start]


def _random_spans(leaves: int, rng: Random) -> list[int]:
    arities = [2] * (leaves - 1) + [0] * leaves
    rng.shuffle(arities)
    start = _tree_start(arities)
    return arities[start:] + arities[:start]


def _random_heads(words: int, rng: Random) -> list[int]:
    """Every word has a box for its dependents to the left and one for those to the right."""
    shares = _shared_out(words - 1, 2 * words, rng)
    left, right = shares[::2], shares[1::2]
    arities = [a + b for a, b in zip(left, right, strict=True)]
    start = _tree_start(arities)
    left, arities = left[start:] + left[:start], arities[start:] + arities[:start]
    parents = _parents(arities)
    order = _surface_order(parents, left)
    word_of = {node: word for word, node in enumerate(order, start=1)}
    word_of[ROOT_PARENT] = 0
    return [word_of[parents[node]] for node in order]


def _surface_order(parents: list[int], left: list[int]) -> list[int]:
    """The nodes from left to right, each after the subtrees of its ``left[node]`` first children."""
    order: list[int] = []
    missing = list(left)
    path: list[int] = []
    for node, parent in enumerate(parents):
        while path and path[-1] != parent:
            _close(path, parents, missing, order)
        path.append(node)
        if not missing[node]:
            order.append(node)
    while path:
        _close(path, parents, missing, order)
    return order


def _close(path: list[int], parents: list[int], missing: list[int], order: list[int]) -> None:
    """The subtree of the last node of the path is complete; its parent may be next."""
    parent = parents[path.pop()]
    if parent >= 0:
        missing[parent] -= 1
        if not missing[parent]:
            order.append(parent)


# A chain, and everything below the root.
_CHAIN = Shapes(
    heads=lambda words, _: list(range(words)),
    spans=lambda leaves, _: [2, 0] * (leaves - 1) + [0],
    nodes=lambda size, _: [1] * (size - 1) + [0],
)
_FLAT = Shapes(
    heads=lambda words, _: [0] + [1] * (words - 1),
    spans=lambda leaves, _: [leaves] + [0] * leaves,
    nodes=lambda size, _: [size - 1] + [0] * (size - 1),
)
CONTROLS: dict[str, Shapes | None] = {
    GIVEN: None,
    RANDOM: Shapes(_random_heads, _random_spans, _random_nodes),
    "right_branching": _CHAIN,
    "flat": _FLAT,
}
