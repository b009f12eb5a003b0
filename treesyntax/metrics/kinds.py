"""What is wrong with an output that should be a tree, as one letter for each line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from treesyntax.metrics.counted import plain_name
from treesyntax.metrics.equivalence import CALCULI, equivalent, with_names
from treesyntax.metrics.trees import parse_hypothesis
from treesyntax.trees.formats import FORMATS
from treesyntax.trees.tree import Tree

PREFIX = "kinds:"
"""Before the name of a format, in a file of line statistics."""
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
LETTERS = "".join((RIGHT, WRONG, *KINDS))
"""All letters; a file of line statistics has their places here."""


def formats_of(metrics: Iterable[str]) -> list[str]:
    """The tree formats that metrics name, such as ``tree:lambda``."""
    named = dict.fromkeys(word for metric in metrics for word in plain_name(metric).split(":")[1:])
    return [name for name in named if name in FORMATS]


def kinds_of(outputs: Sequence[str], references: Sequence[str], notation: str) -> str:
    """A letter a line. What has the tokens of its reference is right in every metric.

    Args:
        outputs: of a run.
        references: as many.
        notation: the format of the trees; "" where it is not known.
    """
    return "".join(
        RIGHT if output.split() == reference.split()
        else kind_of(output, reference, notation) if notation else WRONG
        for output, reference in zip(outputs, references, strict=True)
    )  # fmt: skip


def letters_as_numbers(letters: str) -> NDArray[np.float64]:
    """Letters as line statistics [lines, 1]."""
    return np.array([[LETTERS.index(letter)] for letter in letters], dtype=np.float64)


def numbers_as_letters(statistics: NDArray[np.float64]) -> str:
    """What `letters_as_numbers` was given."""
    return "".join(LETTERS[int(number)] for number in statistics[:, 0])


def kind_of(output: str, reference: str, notation: str) -> str:
    """The letter in `KINDS` of a wrong output."""
    if not output.strip():
        return "e"
    output_tree, reference_tree = (parse_hypothesis(text, notation) for text in (output, reference))
    if not output_tree or not reference_tree:
        return "t" if output_tree else "x"
    if output_tree == reference_tree:
        return "s"
    if (calculus := CALCULI.get(notation)) is not None:
        if equivalent(output_tree, reference_tree, with_names(calculus)):
            return "o"
        if equivalent(output_tree, reference_tree, calculus):
            return "v"
    left, right = _nodes(output_tree), _nodes(reference_tree)
    if [depth for depth, _ in left] == [depth for depth, _ in right]:
        inner = reference_tree.arities > 0
        pairs = zip(left, right, inner, strict=True)
        return (
            "n"
            if any(left_node != right_node for left_node, right_node, above in pairs if above)
            else "l"
        )
    if len(left) < len(right):
        return "m" if _is_without(left, right, reference_tree) else "t"
    return "a" if _is_without(right, left, output_tree) else "t"


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


def _common(left: list[tuple[int, str]], right: list[tuple[int, str]]) -> int:
    """How many nodes both lists have at their beginning."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((index for index, (a, b) in pairs if a != b), min(len(left), len(right)))
