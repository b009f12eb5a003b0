"""Scores that look at the trees of hypotheses and references, in any tree format.

A hypothesis that does not parse is wrong; a reference that does not parse is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from treesyntax.errors import OptionError, TreeError
from treesyntax.metrics.dong_lapata import SORTED, UNKNOWN, is_right
from treesyntax.metrics.equivalence import (
    CALCULI,
    PROLOG,
    Calculus,
    equivalent,
    untyped,
    with_names,
)
from treesyntax.trees.formats import get_format
from treesyntax.trees.tree import Tree


def tree_items(hypotheses: Sequence[str], references: Sequence[str], notation: str) -> list[bool]:
    """Which hypotheses parse to the tree of their reference."""
    return [left == right for left, right in _parsed(hypotheses, references, notation)]


def modulo_items(
    hypotheses: Sequence[str], references: Sequence[str], notation: str
) -> list[bool | None]:
    """Which hypotheses differ from their reference in order and names alone; None where nobody knows
    (`equivalent`)."""
    return _equivalent(hypotheses, references, notation, _calculus(notation))


def unordered_items(
    hypotheses: Sequence[str], references: Sequence[str], notation: str
) -> list[bool | None]:
    """Which hypotheses differ from their reference in the order of conjuncts alone."""
    return _equivalent(hypotheses, references, notation, with_names(_calculus(notation)))


def dong_lapata_items(
    hypotheses: Sequence[str], references: Sequence[str], notation: str
) -> list[bool]:
    """Which hypotheses the program of Dong & Lapata 2016 counts as right (`dong_lapata`)."""
    check_aligned(hypotheses, references)
    parse_references(references, notation)
    operators = (UNKNOWN,) if _calculus(notation) is PROLOG else SORTED
    pairs = zip(hypotheses, references, strict=True)
    return [is_right(hypothesis, reference, operators) for hypothesis, reference in pairs]


def _calculus(notation: str) -> Calculus:
    if notation not in CALCULI:
        raise OptionError(
            f"{notation} has no conjuncts and bound variables; {', '.join(CALCULI)} have some"
        )
    return CALCULI[notation]


def _equivalent(
    hypotheses: Sequence[str], references: Sequence[str], notation: str, calculus: Calculus
) -> list[bool | None]:
    pairs = _parsed(hypotheses, references, notation)
    return [left is not None and equivalent(left, right, calculus) for left, right in pairs]


def top_items(
    hypotheses: Sequence[str], references: Sequence[str], notation: str, depth: int
) -> list[bool]:
    """Which hypotheses have the nodes of their reference down to a depth, that of the root being 0.

    Of trigger-action programs as ``( IF ( CHANNEL FUNCTION ) ( CHANNEL FUNCTION ) )``, depth 1 is
    the accuracy of channels and depth 2 that of channels and functions (Quirk et al. 2015).
    """

    def top(tree: Tree) -> list[tuple[int, str]]:
        # In preorder the depths determine the shape.
        nodes = zip(tree.depths.tolist(), tree.labels, strict=True)
        return [(level, label) for level, label in nodes if level <= depth]

    pairs = _parsed(hypotheses, references, notation)
    return [left is not None and top(left) == top(right) for left, right in pairs]


def wellformed_items(
    hypotheses: Sequence[str], references: Sequence[str], notation: str
) -> list[bool]:
    """Which hypotheses parse. Blank ones, which are empty trees, do not count."""
    check_aligned(hypotheses, references)
    return [bool(parse_hypothesis(text, notation)) for text in hypotheses]


Parts = list[tuple[int, int]]
"""By line how many parts of a hypothesis and its reference are common, and how many both have."""


def node_parts(hypotheses: Sequence[str], references: Sequence[str], notation: str) -> Parts:
    """The nodes of all trees, for F1.

    A node counts as its label, its parent's label and its place among the parent's children; below
    a label that `CALCULI` calls unordered, as the two labels alone. What a tree has several times
    counts several times. A hypothesis that does not parse has no nodes.
    """
    unordered = _unordered(notation)

    def nodes(tree: Tree) -> Counter[object]:
        counts: Counter[object] = Counter()
        positions = zip(tree.labels, tree.parents.tolist(), tree.branches.tolist(), strict=True)
        for label, parent, branch in positions:
            above = tree.labels[parent] if parent >= 0 else None
            any_place = above is not None and untyped(above) in unordered
            counts[label, above, None if any_place else branch] += 1
        return counts

    return _overlaps(nodes, _parsed(hypotheses, references, notation))


def production_parts(hypotheses: Sequence[str], references: Sequence[str], notation: str) -> Parts:
    """The productions of all trees, for F1, counted like the nodes in `node_parts`.

    A production is the label of an interior node with those of its children, in order but below a
    label that `CALCULI` calls unordered; so do Quirk et al. (2015).
    """

    unordered = _unordered(notation)

    def productions(tree: Tree) -> Counter[object]:
        counts: Counter[object] = Counter()
        for label, children in zip(tree.labels, tree.children(), strict=True):
            below = [tree.labels[child] for child in children]
            if below:
                counts[label, *(sorted(below) if untyped(label) in unordered else below)] += 1
        return counts

    return _overlaps(productions, _parsed(hypotheses, references, notation))


def micro_f1(common: float, total: float) -> float:
    """Micro-averaged F1 in percent of summed parts; 100 without any on either side."""
    return 200 * common / total if total else 100.0


def check_aligned(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Refuse lists that cannot be scored."""
    for name, lines in (("hypotheses", hypotheses), ("references", references)):
        if isinstance(lines, str):
            raise OptionError(
                f"the {name} are a single text; give a list with a text for each line"
            )
        for line, text in enumerate(lines, start=1):
            if not isinstance(text, str):
                raise OptionError(f"line {line} of the {name} is {text!r:.80}; it must be a text")
    if len(hypotheses) != len(references):
        raise OptionError(
            f"{len(hypotheses)} hypotheses cannot be scored against {len(references)} references"
        )
    if len(references) == 0:  # an array or a column of a table, too
        raise OptionError("there are no lines to score")


def _unordered(notation: str) -> frozenset[str]:
    return CALCULI[notation].unordered if notation in CALCULI else frozenset()


def _parsed(
    hypotheses: Sequence[str], references: Sequence[str], notation: str
) -> list[tuple[Tree | None, Tree]]:
    check_aligned(hypotheses, references)
    expected = parse_references(references, notation)
    outputs = (parse_hypothesis(hypothesis, notation) for hypothesis in hypotheses)
    return list(zip(outputs, expected, strict=True))


def parse_references(references: Sequence[str], notation: str) -> list[Tree]:
    """The trees of references, all of which must be trees."""
    parse = get_format(notation).parse
    trees = []
    for line, reference in enumerate(references, start=1):
        try:
            trees.append(parse(reference))
        except TreeError as error:
            # Else the wrong format would look like a model that gets nothing right.
            raise OptionError(f"reference {line} is not {notation}: {error}") from None
    return trees


def parse_hypothesis(hypothesis: str, notation: str) -> Tree | None:
    """The tree of an output, None where it is none."""
    try:
        return get_format(notation).parse(hypothesis)
    except TreeError:
        return None


def _overlaps(
    items_of: Callable[[Tree], Counter[object]], pairs: list[tuple[Tree | None, Tree]]
) -> Parts:
    counts = []
    for output, reference in pairs:
        left = Counter() if output is None else items_of(output)
        right = items_of(reference)
        counts.append(((left & right).total(), left.total() + right.total()))
    return counts
