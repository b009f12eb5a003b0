"""Slow and obvious definitions, written without the code they check."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import torch
from torch import Tensor

from treesyntax.trees.tree import Tree


def ancestors(tree: Tree, node: int) -> list[int]:
    """Parent first, root last."""
    found = []
    while tree.parents[node] >= 0:
        node = int(tree.parents[node])
        found.append(node)
    return found


def steps(tree: Tree, first: int, second: int) -> tuple[int, int]:
    """Up from the first node to the lowest common ancestor, then down to the second."""
    up = [first, *ancestors(tree, first)]
    down = [second, *ancestors(tree, second)]
    common = next(node for node in up if node in down)
    return up.index(common), down.index(common)


def slots_of(symbol: str) -> list[int] | None:
    """The branches of a symbol's slots; None for one that is no node."""
    label, slash, suffix = symbol.rpartition("/")
    if not slash or label == "<":
        return None
    return {"L": [0], "R": [1], "LR": [0, 1]}.get(suffix) or list(range(int(suffix)))


def grow(symbols: list[str], order: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """With a stack or queue: (position of the parent from 1, branch) of each node, and open slots.

    The root has the parent -1. Open slots are those after the last node, the next one first.
    """
    open_slots, places = deque([(-1, 0)]), []
    for position, symbol in enumerate(symbols, start=1):
        slots = slots_of(symbol)
        if slots is None or not open_slots:
            break
        places.append(open_slots.popleft())
        new = [(position, branch) for branch in slots]
        open_slots = deque([*open_slots, *new] if order == "bfs" else [*new, *open_slots])
    return places, list(open_slots)


def path(tree: Tree, node: int) -> list[int]:
    """Branches from the root down to a node."""
    chain = [node, *ancestors(tree, node)]
    return [int(tree.branches[member]) for member in reversed(chain[:-1])]


def relation(tree: Tree, first: int, second: int, first_position: int, second_position: int) -> str:
    """What the first node is to the second, straight from McDonald & Chiang 2021."""
    if first == second:
        return "self"
    if first in ancestors(tree, second):
        return "parent" if tree.parents[second] == first else "ancestor"
    if second in ancestors(tree, first):
        return "child" if tree.parents[first] == second else "descendant"
    side = "left" if first_position < second_position else "right"
    same_parent = tree.parents[first] == tree.parents[second]
    return f"{side}_sibling" if same_parent else f"{side}_other"


def lcrs_path(tree: Tree, node: int) -> list[int]:
    """Path in the left-child-right-sibling form: first child = 0, next sibling = 1."""
    children = tree.children()
    steps: list[int] = []
    while tree.parents[node] >= 0:
        parent = int(tree.parents[node])
        rank = children[parent].index(node)
        steps = [0] + [1] * rank + steps
        node = parent
    return steps


def factored_path(tree: Tree, node: int, side: str) -> list[int]:
    """Path in the tree whose nodes with many children are split two by two.

    Right-factored, child i of m is reached by i steps to the right and one to the left, the last
    one by steps to the right alone; left-factored is the mirror image.
    """
    children = tree.children()
    steps: list[int] = []
    while tree.parents[node] >= 0:
        parent = int(tree.parents[node])
        count, rank = len(children[parent]), children[parent].index(node)
        if count == 1:
            here = [0]
        elif side == "right":
            here = [1] * rank + [0] * (rank < count - 1)
        else:
            here = [0] * (count - 1 - rank) + [1] * (rank > 0)
        steps, node = here + steps, parent
    return steps


def stack(steps: list[int], degree: int, depth: int) -> list[float]:
    """Push every step on an empty stack: D_i x = (e_i ; x[:-n]) (Shiv & Quirk 2019)."""
    state = [0.0] * (degree * depth)
    for step in steps:
        one_hot = [1.0 if branch == step else 0.0 for branch in range(degree)]
        state = (one_hot + state)[: degree * depth]
    return state


def weighted_stacks(
    steps: list[int], degree: int, depth: int, p: list[float], d_model: int
) -> list[float]:
    """Depth-major, then branch, then parameter; weight p^level sqrt(1-p^2) sqrt(d_model/2)."""
    plain = stack(steps, degree, depth)
    return [
        plain[level * degree + branch] * q**level * math.sqrt(1 - q * q) * math.sqrt(d_model / 2)
        for level in range(depth)
        for branch in range(degree)
        for q in p
    ]


def attention(
    q: Tensor, k: Tensor, v: Tensor, logit: Callable[[int, int, Tensor], Tensor]
) -> Tensor:
    """For one head: softmax over j of logit(i, j, q_i k_j / sqrt(d)), pair by pair; q, k, v [T, d]."""
    rows = []
    for i, query in enumerate(q):
        products = [query @ key / math.sqrt(len(key)) for key in k]
        logits = [logit(i, j, product) for j, product in enumerate(products)]
        rows.append(torch.softmax(torch.stack(logits), 0) @ v)
    return torch.stack(rows)


def attention_with_pair_vectors(
    q: Tensor, k: Tensor, v: Tensor, on_keys: Tensor, on_values: Tensor
) -> Tensor:
    """Shaw et al. 2018, Eqs. 3-4, literally, for one head.

    Args:
        q, k, v: [T, d].
        on_keys, on_values: a vector for every pair, [T, T, d].
    """
    logits = (q.unsqueeze(1) * (k.unsqueeze(0) + on_keys)).sum(-1) / math.sqrt(q.shape[1])
    weights = torch.softmax(logits, dim=-1)
    return (weights.unsqueeze(2) * (v.unsqueeze(0) + on_values)).sum(1)


# Subword policies


class Item:
    """A node as an object; a slot of ``children`` without a node is None."""

    def __init__(self, label: str, relation: str = "subword") -> None:
        self.label, self.relation = label, relation
        self.children: list[Item | None] = []
        self.tokens: list[tuple[str, bool]] = [(label, True)]  # each on the node or not

    def preorder(self) -> list[Item]:
        return [self, *(item for child in self.children if child for item in child.preorder())]


def _items_of(tree: Tree) -> list[Item]:
    items = [Item(label) for label in tree.labels]
    for item, relation in zip(items, tree.relations, strict=False):
        item.relation = relation
    for node, (parent, branch) in enumerate(zip(tree.parents, tree.branches, strict=True)):
        if parent >= 0:
            siblings = items[parent].children
            siblings += [None] * (branch - len(siblings))
            siblings.append(items[node])
    return items


def _apply_policy(policy: str, item: Item, parent: Item | None, subwords: list[str]) -> list[Item]:
    """The nodes, in surface order, that the word becomes."""
    if policy in ("copy", "first", "last") or not subwords:
        last = len(subwords) - 1
        placed = {"first": [0], "last": [last]}.get(policy, range(last + 1))
        item.tokens = [(subword, i in placed) for i, subword in enumerate(subwords)]
        return [item]
    item.label, item.tokens = subwords[0], [(subwords[0], True)]
    added = [Item(subword) for subword in subwords[1:]]
    if policy == "chain":
        for above, below in zip([item, *added], added, strict=False):
            above.children.append(below)
    elif parent is None:
        item.children[:0] = added
    else:
        after = parent.children.index(item) + 1
        parent.children[after:after] = added
    return [item, *added]


def _tokens_of(item: Item, linearization: str) -> list[tuple[str, Item | None]]:
    """The tokens of a subtree, each with the node it is on."""
    tokens = [(token, item if on_node else None) for token, on_node in item.tokens]
    children = [pair for c in item.children if c for pair in _tokens_of(c, linearization)]
    if linearization == "preorder":
        return tokens + children
    escaped = [
        ("\\" + token if token[0] in "(\\" or token == ")" else token, on) for token, on in tokens
    ]
    if not any(item.children):
        return escaped
    first, on = tokens[0] if tokens else ("", item)
    closing = 2 if linearization == "bracketed_twice" else 1
    return [("(" + first, on), *escaped[1:], *children, *[(")", item)] * closing]


def subwords_on_tree(
    tree: Tree, subwords: list[list[str]], policy: str, linearization: str
) -> tuple[Tree, list[str], list[int]]:
    """The new tree, its tokens and the node of each, -1 for none; ``tree`` has words, or no nodes."""
    items = _items_of(tree)
    surface: list[Item] = []
    for word, node in enumerate(tree.word_nodes()):
        parent = items[tree.parents[node]] if node else None
        surface += _apply_policy(policy, items[node], parent, subwords[word])
    order = items[0].preorder() if items else []
    number = {item: node for node, item in enumerate(order)}
    parents, branches = [-1] * len(order), [0] * len(order)
    for item in order:
        for branch, child in enumerate(item.children):
            if child:
                parents[number[child]], branches[number[child]] = number[item], branch
    words = [surface.index(item) if item in surface else -1 for item in order]
    relations = [item.relation for item in order] if tree.relations else ()
    new = Tree(parents, [item.label for item in order], words, relations, branches)
    pairs = _tokens_of(items[0], linearization) if items else []
    if linearization == "words":
        pairs = [(token, item if on else None) for item in surface for token, on in item.tokens]
    return new, [t for t, _ in pairs], [-1 if i is None else number[i] for _, i in pairs]
