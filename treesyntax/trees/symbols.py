"""Tokens that say which slots their node has, so that a decoder can grow the tree from them.

``label/SLOTS``, split at the last slash. In the n-ary linearizations SLOTS is the number of
children, ``lambda/3``, ``ci0/0``. In those of the left-child-right-sibling form it is ``0``, ``L``
(first child, branch 0), ``R`` (next sibling, branch 1) or ``LR``. A symbol with another number of
children is another symbol (Shiv & Quirk 2019, section 4). Tokens come depth first, in preorder, or
breadth first, level by level from left to right; either way they determine the labels and the
shape.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from treesyntax.errors import TreeError
from treesyntax.trees.binary import FIRST_CHILD, NEXT_SIBLING, from_binary, to_binary
from treesyntax.trees.tree import ROOT_PARENT, Tree

OPEN, CLOSE, ESCAPE = "(", ")", "\\"
SEPARATOR = "/"
MAX_SLOTS = 10_000
MAX_TABLE_CELLS = 1 << 26  # half a gigabyte

Slots = Sequence[int]

SIBLING_SLOTS: dict[str, tuple[int, ...]] = {
    "0": (),
    "L": (FIRST_CHILD,),
    "R": (NEXT_SIBLING,),
    "LR": (FIRST_CHILD, NEXT_SIBLING),
}
_SUFFIX_OF = {slots: suffix for suffix, slots in SIBLING_SLOTS.items()}
# One way to write a number, and few enough digits to be read in no time.
_NUMBER = re.compile(r"0|[1-9][0-9]{0,5}")


def annotate(label: str, slots: Sequence[int], binary: bool = False) -> str:
    """The symbol of a node.

    Args:
        label: the node's label.
        slots: the branches of its slots, in increasing order.
        binary: whether it is a node of a left-child-right-sibling form.
    """
    suffix = _SUFFIX_OF[tuple(slots)] if binary else str(len(slots))
    return f"{label}{SEPARATOR}{suffix}"


def leaf_token(label: str) -> str:
    """The token of a leaf between brackets, with a backslash before one that would pass for a bracket."""
    return ESCAPE + label if label.startswith((OPEN, ESCAPE)) or label == CLOSE else label


def split_symbol(symbol: str) -> tuple[str, Slots] | None:
    """The label and the branches of the slots; None for a symbol that is no node.

    No nodes are special symbols, padding such as ``madeupword0000``, symbols without a label or
    without slots as above, and those with more than `MAX_SLOTS` slots.
    """
    label, _, suffix = symbol.rpartition(SEPARATOR)
    if label.split() != [label]:
        return None
    if suffix in SIBLING_SLOTS:
        return label, SIBLING_SLOTS[suffix]
    if not _NUMBER.fullmatch(suffix) or int(suffix) > MAX_SLOTS:
        return None
    return label, range(int(suffix))


def slot_table(symbols: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The slots of every symbol of a dictionary.

    Args:
        symbols: the V symbols by id.

    Returns:
        The number of slots of each symbol [V], -1 for those that are no node (`split_symbol`), and
        the branch of its i-th slot [V, S], padded with -1; S is the largest number, at least 1.
    """
    nodes = [split_symbol(symbol) for symbol in symbols]
    counts = np.array([-1 if node is None else len(node[1]) for node in nodes], dtype=np.int64)
    width = max(1, int(counts.max(initial=0)))
    if len(symbols) * width > MAX_TABLE_CELLS:
        raise TreeError(
            f"{len(symbols)} symbols with up to {width} slots are too many for a table of slots",
            "use a left-child-right-sibling linearization, whose nodes have two",
        )
    branches = np.full((len(symbols), width), -1, dtype=np.int64)
    for row, node in zip(branches, nodes, strict=True):
        if node is not None:
            row[: len(node[1])] = node[1]
    return counts, branches


def label_table(symbols: Sequence[str]) -> NDArray[np.int64]:
    """The label of every symbol [V] of a dictionary, for methods that read the labels of a growing tree.

    0 for symbols that are no node, 1 for all leaves. The labels of inner nodes follow in the order in
    which the dictionary first has them, whatever their slots: the most frequent ones come first.
    """
    numbers: dict[str, int] = {}
    label_ids = np.zeros(len(symbols), np.int64)
    for index, symbol in enumerate(symbols):
        label, slots = split_symbol(symbol) or ("", None)
        if slots is not None:
            inner = FIRST_CHILD in slots
            label_ids[index] = 2 + numbers.setdefault(label, len(numbers)) if inner else 1
    return label_ids


def nary_tokens(tree: Tree) -> list[str]:
    """``label/CHILDREN`` of every node in preorder."""
    _check_labels(tree)
    arities = tree.arities.tolist()
    if max(arities, default=0) > MAX_SLOTS:
        node = arities.index(max(arities))
        raise TreeError(
            f"node {node} has {arities[node]} children, more than {MAX_SLOTS}",
            "use a left-child-right-sibling linearization, whose nodes have two slots",
        )
    return [f"{label}{SEPARATOR}{n}" for label, n in zip(tree.labels, arities, strict=True)]


def sibling_tokens(tree: Tree) -> list[str]:
    """``label/SLOTS`` of every node of the left-child-right-sibling form, in preorder."""
    _check_labels(tree)
    slots: list[tuple[int, ...]] = [()] * len(tree)
    binary = to_binary(tree)
    pairs = zip(binary.parents.tolist(), binary.branches.tolist(), strict=True)
    # Of two children the later one in preorder is the sibling.
    for parent, branch in list(pairs)[1:]:
        slots[parent] = (*slots[parent], branch)
    return [
        annotate(label, node_slots, True)
        for label, node_slots in zip(tree.labels, slots, strict=True)
    ]


def breadth_first(tree: Tree) -> list[int]:
    """All nodes level by level, from left to right: preorder keeps that order on each level."""
    return np.argsort(tree.depths, kind="stable").tolist()


def from_nary(tokens: Sequence[str], breadth: bool = False) -> Tree:
    """The one tree with these tokens, in preorder or breadth first; no node is marked as a word."""
    nodes = [_node(position, token, False) for position, token in enumerate(tokens)]
    tree = _grown(tokens, nodes, breadth)
    return Tree(tree.parents, tree.labels)


def from_siblings(tokens: Sequence[str], breadth: bool = False) -> Tree:
    """The tree whose left-child-right-sibling form has these tokens, as `from_nary`."""
    nodes = [_node(position, token, True) for position, token in enumerate(tokens)]
    if nodes and NEXT_SIBLING in nodes[0][1]:
        raise token_error(0, tokens[0], "gives the root a sibling")
    return from_binary(_grown(tokens, nodes, breadth))


def _node(position: int, token: str, binary: bool) -> tuple[str, Slots]:
    node = split_symbol(token)
    suffix = token.rpartition(SEPARATOR)[2]
    # Both notations have 0.
    if node is None or (suffix != "0" and binary != (suffix in SIBLING_SLOTS)):
        wanted = f"one of {' '.join(SIBLING_SLOTS)}" if binary else f"a number up to {MAX_SLOTS}"
        raise token_error(position, token, f"is not a label, {SEPARATOR!r} and {wanted}")
    return node


def _check_complete(tokens: Sequence[str], counts: list[int]) -> None:
    """Counting suffices, in any order of growth; and no slots are made that stay open."""
    open_slots = 1
    for position, count in enumerate(counts):
        if not open_slots:
            raise token_error(position, tokens[position], "follows the end of the tree")
        open_slots += count - 1
    if counts and open_slots:
        plural = "s are" if open_slots > 1 else " is"
        cause = f"is the last, but {open_slots} slot{plural} still open"
        raise token_error(len(tokens) - 1, tokens[-1], cause)


def _grown(tokens: Sequence[str], nodes: list[tuple[str, Slots]], breadth: bool) -> Tree:
    """Each node takes the first open slot of the last node with one, or of the first."""
    _check_complete(tokens, [len(slots) for _, slots in nodes])
    parents, branches = [], []
    open_slots: deque[tuple[int, int]] = deque([(ROOT_PARENT, 0)] if nodes else [])
    for node, (_, slots) in enumerate(nodes):
        parent, branch = open_slots.popleft() if breadth else open_slots.pop()
        parents.append(parent)
        branches.append(branch)
        open_slots.extend((node, slot) for slot in (slots if breadth else reversed(slots)))
    labels = [label for label, _ in nodes]
    if breadth:
        return _in_preorder(parents, branches, labels)
    return Tree(parents, labels, branches=branches)


def _in_preorder(parents: list[int], branches: list[int], labels: list[str]) -> Tree:
    """The tree of nodes numbered breadth first."""
    sizes = [1] * len(parents)
    for node in range(len(parents) - 1, 0, -1):
        sizes[parents[node]] += sizes[node]
    # Where the next child of each node goes: after the subtrees of its previous siblings.
    free = [0] * len(parents)
    order = [0] * len(parents)
    number = [0] * len(parents)
    for node, parent in enumerate(parents):
        if parent >= 0:
            number[node] = free[parent]
            free[parent] += sizes[node]
        free[node] = number[node] + 1
        order[number[node]] = node
    return Tree(
        [number[parents[node]] if parents[node] >= 0 else ROOT_PARENT for node in order],
        [labels[node] for node in order],
        branches=[branches[node] for node in order],
    )


def token_error(position: int, token: str, cause: str) -> TreeError:
    """The error for a token of a linearization, counted from 1."""
    return TreeError(f"token {position + 1}, {token[:40]!r}, {cause}")


def _check_labels(tree: Tree) -> None:
    for node, label in enumerate(tree.labels):
        if label.split() != [label]:
            raise label_error(node, label)


def label_error(node: int, label: str) -> TreeError:
    """The error for a label that cannot be a token."""
    return TreeError(
        f"node {node} has the label {label[:40]!r}",
        "labels become tokens, which cannot be empty or hold white space; replace it first",
    )
