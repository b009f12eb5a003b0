"""ListOps: the value of a nested expression (after Nangia & Bowman 2018, drawn anew).

``( MAX 2 9 ( MIN 4 7 ) 0 )`` is 9. Training has expressions up to depth 3 with up to 3 arguments; ``gen`` has
depth 4 and 5, or 4 and 5 arguments. ``SM`` is the sum modulo 10, ``MED`` the lower median.

The trees keep every token as a leaf, brackets as ``[`` and ``]``: rows that read trees, their controls and
rows that read words then know the same. Over operators and digits alone a random tree would hide where a
list ends.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from treesyntax.data.sets.drawing import Example, drawn_set
from treesyntax.trees.formats.notation import Node

OPERATORS: dict[str, Callable[[Sequence[int]], int]] = {
    "MAX": max,
    "MIN": min,
    "MED": lambda values: sorted(values)[(len(values) - 1) // 2],
    "SM": lambda values: sum(values) % 10,
}
_KNOWN_DEPTH, _KNOWN_ARGUMENTS = 3, 3


def value(tokens: Sequence[str]) -> int:
    """The value of an expression's tokens."""
    open_lists: list[tuple[str, list[int]]] = [("", [])]
    for index, token in enumerate(tokens):
        if token == "(":
            open_lists.append((tokens[index + 1], []))
        elif token == ")":
            operator, values = open_lists.pop()
            open_lists[-1][1].append(OPERATORS[operator](values))
        elif token not in OPERATORS:
            open_lists[-1][1].append(int(token))
    return open_lists[0][1][0]


def expression_tree(tokens: Sequence[str]) -> Node:
    """The tree of an expression's tokens: a node ``LIST`` for each list, above all of its tokens."""
    open_lists: list[list[Node]] = [[]]
    for token in tokens:
        if token == "(":
            open_lists.append([Node("[")])
        elif token == ")":
            children = [*open_lists.pop(), Node("]")]
            open_lists[-1].append(Node("LIST", tuple(children)))
        else:
            open_lists[-1].append(Node(token))
    return open_lists[0][0]


def _expression(rng: random.Random, depth: int, arguments: tuple[int, int]) -> list[str]:
    """An expression of exactly this depth; one of its arguments is as deep as can be."""
    if not depth:
        return [str(rng.randrange(10))]
    number = rng.randint(*arguments)
    deepest = rng.randrange(number)
    tokens = ["(", rng.choice(list(OPERATORS))]
    for index in range(number):
        below = depth - 1 if index == deepest else max(0, rng.randint(-depth, depth - 1))
        tokens += _expression(rng, below, arguments)
    return [*tokens, ")"]


def _known(rng: random.Random) -> Example:
    depth = rng.randint(1, _KNOWN_DEPTH)
    tokens = _expression(rng, depth, (2, _KNOWN_ARGUMENTS))
    return Example(" ".join(tokens), str(value(tokens)), expression_tree(tokens), f"depth_{depth}")


def _new(rng: random.Random) -> Example | None:
    if rng.random() < 0.5:
        depth = rng.randint(_KNOWN_DEPTH + 1, _KNOWN_DEPTH + 2)
        tokens, category = _expression(rng, depth, (2, _KNOWN_ARGUMENTS)), f"depth_{depth}"
    else:
        number = rng.randint(_KNOWN_ARGUMENTS + 1, _KNOWN_ARGUMENTS + 2)
        tokens = _expression(rng, rng.randint(1, 2), (number, number))
        category = f"arguments_{number}"
    return Example(" ".join(tokens), str(value(tokens)), expression_tree(tokens), category)


LISTOPS = drawn_set(
    "listops", "nested lists of digits to their value",
    "after Nangia & Bowman 2018, ListOps: A Diagnostic Dataset for Latent Tree Learning",
    "train: depth up to 3, up to 3 arguments; gen: depth 4 and 5, or 4 and 5 arguments", _known, _new,
)  # fmt: skip
