"""What is wrong with an output that should be a tree, and the first node in which it differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from itertools import zip_longest

from treesyntax.errors import TreeError
from treesyntax.metrics.equivalence import CALCULI, equivalent, with_names
from treesyntax.trees.formats import get_format
from treesyntax.trees.tree import Tree

RIGHT, WRONG = ".", "w"
"""Letters of lines that have no kind: right ones, and wrong ones where no format is known."""
KINDS = {
    "e": "empty",
    "x": "not a tree",
    "s": "same tree, other text",
    "o": "other order of conjuncts",
    "v": "other names of variables",
    "l": "only other leaves",
    "n": "same shape, other inner nodes",
    "m": "one subtree missing",
    "a": "one subtree too many",
    "t": "another tree",
}
"""By letter what is wrong with a line. The first one that fits counts, so each line has one."""

Difference = tuple[int | None, int | None]
"""A node of the output and the one in its place in the reference; None for none."""


def parse(text: str, notation: str) -> Tree | None:
    """The tree of a line; None for a blank one and where it is not one of the format."""
    try:
        return get_format(notation).parse(text) or None
    except TreeError:
        return None


def kind_of(output: str, reference: str, notation: str) -> str:
    """The letter in `KINDS` of a wrong output."""
    if not output.strip():
        return "e"
    found, wanted = parse(output, notation), parse(reference, notation)
    if found is None or wanted is None:
        return "x" if found is None else "t"
    if found == wanted:
        return "s"
    if (calculus := CALCULI.get(notation)) is not None:
        if equivalent(found, wanted, with_names(calculus)):
            return "o"
        if equivalent(found, wanted, calculus):
            return "v"
    left, right = _nodes(found), _nodes(wanted)
    if [depth for depth, _ in left] == [depth for depth, _ in right]:
        inner = wanted.arities > 0
        pairs = zip(left, right, inner, strict=True)
        return "n" if any(one != other for one, other, above in pairs if above) else "l"
    if len(left) < len(right):
        return "m" if _is_without(left, right, wanted) else "t"
    return "a" if _is_without(right, left, found) else "t"


def _nodes(tree: Tree) -> list[tuple[int, str]]:
    # In preorder the depths determine the shape.
    return list(zip(tree.depths.tolist(), tree.labels, strict=True))


def _is_without(small: list[tuple[int, str]], large: list[tuple[int, str]], tree: Tree) -> bool:
    """Whether one subtree less makes ``tree``, whose nodes are ``large``, the smaller one."""
    size = len(large) - len(small)
    last = tree.last_descendants.tolist()
    # A subtree from a node on is what lacks, if all before and all after it is common.
    before = _common(small, large)
    after = len(small) - _common(small[::-1], large[::-1])
    return any(last[node] - node + 1 == size for node in range(max(after, 1), before + 1))


def _common(one: list[tuple[int, str]], other: list[tuple[int, str]]) -> int:
    """How many nodes both lists have at their beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


def first_difference(found: Tree, wanted: Tree, notation: str) -> list[Difference]:
    """The first node, in preorder, in which an output differs from its reference, and the way to it.

    Below a label whose children may come in any order, equal subtrees are no difference wherever
    they stand.

    Returns:
        Pairs of nodes from the root on; the last one differs, those before have equal labels. Empty
        for trees without a difference.
    """
    unordered = CALCULI[notation].unordered if notation in CALCULI else frozenset()
    numbers: dict[object, int] = {}
    codes = [_codes(tree, unordered, numbers) for tree in (found, wanted)]
    below = [tree.children() for tree in (found, wanted)]
    at: Difference | None = (0, 0) if codes[0][0] != codes[1][0] else None
    way = []
    while at is not None:
        way.append(at)
        own, other = at
        if own is None or other is None or found.labels[own] != wanted.labels[other]:
            break
        children = [list(below[0][own]), list(below[1][other])]
        if found.labels[own] in unordered:
            children = [
                _without(
                    mine, codes[side], [codes[1 - side][child] for child in children[1 - side]]
                )
                for side, mine in enumerate(children)
            ]
        pairs: Iterable[Difference] = zip_longest(children[0], children[1])
        at = next((one for one in pairs if _differ(one, codes)), None)
    return way


def _differ(pair: Difference, codes: list[list[int]]) -> bool:
    own, other = pair
    return own is None or other is None or codes[0][own] != codes[1][other]


def _without(children: list[int], codes: list[int], others: list[int]) -> list[int]:
    """Those children for which the other tree has no equal one."""
    spare, left = Counter(others), []
    for child in children:
        if spare[codes[child]]:
            spare[codes[child]] -= 1
        else:
            left.append(child)
    return left


def _codes(tree: Tree, unordered: Collection[str], numbers: dict[object, int]) -> list[int]:
    """A number for each node's subtree, equal for those that are equal up to order."""
    codes, branches = [0] * len(tree), tree.branches.tolist()
    children = tree.children()
    for node in range(len(tree) - 1, -1, -1):
        label = tree.labels[node]
        below: object = tuple((branches[child], codes[child]) for child in children[node])
        if label in unordered:
            below = tuple(sorted(codes[child] for child in children[node]))
        codes[node] = numbers.setdefault((label, below), len(numbers))
    return codes
