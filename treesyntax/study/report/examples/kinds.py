"""Which lines each run has right, and the first node in which an output differs from its reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from treesyntax.metrics import ITEM_METRICS, plain_name
from treesyntax.metrics.equivalence import CALCULI, untyped
from treesyntax.metrics.kinds import RIGHT
from treesyntax.study.results.outputs import Outputs, tree_format
from treesyntax.trees.tree import Tree

Difference = tuple[int | None, int | None]
"""A node of the output and the one in its place in the reference; None for none."""


def first_difference(output: Tree, reference: Tree, notation: str) -> list[Difference]:
    """The first node, in preorder, in which an output differs from its reference, and the way to it.

    Below a label whose children may come in any order, equal subtrees are no difference wherever
    they stand.

    Returns:
        Pairs of nodes from the root on; the last one differs, those before have equal labels. Empty
        for trees without a difference.
    """
    unordered = CALCULI[notation].unordered if notation in CALCULI else frozenset()
    numbers: dict[object, int] = {}
    codes = [_codes(tree, unordered, numbers) for tree in (output, reference)]
    below = [tree.children() for tree in (output, reference)]
    at: Difference | None = (0, 0) if codes[0][0] != codes[1][0] else None
    way = []
    while at is not None:
        way.append(at)
        output_node, reference_node = at
        if (
            output_node is None
            or reference_node is None
            or output.labels[output_node] != reference.labels[reference_node]
        ):
            break
        children = [list(below[0][output_node]), list(below[1][reference_node])]
        if untyped(output.labels[output_node]) in unordered:
            children = [
                _without(
                    mine, codes[side], [codes[1 - side][child] for child in children[1 - side]]
                )
                for side, mine in enumerate(children)
            ]
        pairs: Iterable[Difference] = zip_longest(children[0], children[1])
        at = next((pair for pair in pairs if _differ(pair, codes)), None)
    return way


def _differ(pair: Difference, codes: list[list[int]]) -> bool:
    output_node, reference_node = pair
    return (
        output_node is None
        or reference_node is None
        or codes[0][output_node] != codes[1][reference_node]
    )


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
        if untyped(label) in unordered:
            below = tuple(sorted(codes[child] for child in children[node]))
        codes[node] = numbers.setdefault((label, below), len(numbers))
    return codes


EXACT = "exact"


@dataclass(frozen=True)
class Verdicts:
    """Letters for each line of the test set by row and run.

    Attributes:
        metrics: by row, what says whether a line is right.
        notations: by row the format of its target's trees; "" where it is not known.
        letters: by row, for each seed a string of `RIGHT`, `WRONG` and the letters of `KINDS`.
    """

    metrics: Mapping[str, str]
    notations: Mapping[str, str]
    letters: Mapping[str, Mapping[int, str]]

    @property
    def metric(self) -> str:
        """The metric's name, or the names where rows on other test sets have another."""
        return " or ".join(dict.fromkeys(self.metrics.values()))

    def counts(self, row: str) -> Counter[str]:
        """How often each letter stands in all runs of a row."""
        return Counter("".join(self.letters[row].values()))


def judging_metric(score: Sequence[str], primary: str) -> str:
    """The first metric that judges each line, the primary one before others; ``exact`` without any."""
    names = [plain_name(name) for name in (primary, *score)]
    return next((name for name in names if name in ITEM_METRICS), EXACT)


def find_verdicts(outputs: Outputs) -> Verdicts:
    """The letters of all runs with results."""
    recipe = outputs.plan.recipe
    metrics = {row.name: judging_metric(recipe.score, row.primary) for row in recipe.methods}
    scored = {(row, seed) for row, seed, _ in outputs.scored}
    letters: dict[str, dict[int, str]] = {}
    notations = {method.name: tree_format(recipe, method, "target") for method in recipe.methods}
    for run in outputs.plan.runs:
        row, file = run.method.name, outputs.output(run)
        if (row, run.seed) not in scored or not file.is_file() or not outputs.has_references(row):
            continue
        if len(outputs.text(file)) == len(outputs.references(row)):
            right = outputs.statistics(row, run.seed, metrics[row])[:, 0] > 0
            kinds = outputs.kinds(row, run.seed, notations[row])
            letters.setdefault(row, {})[run.seed] = judge(kinds, right.tolist())
    return Verdicts(metrics, notations, letters)


def judge(kinds: str, right: Sequence[bool]) -> str:
    """A letter a line: what the metric says is right has no kind.

    Args:
        kinds: of each line, see :func:`treesyntax.metrics.kinds.kinds_of`.
        right: which lines the metric says are right.
    """
    return "".join(RIGHT if well else kind for kind, well in zip(kinds, right, strict=True))
