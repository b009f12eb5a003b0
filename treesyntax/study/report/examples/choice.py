"""The lines that one row has right and its baseline wrong, and the other way, as text to be shown.

Outputs are of a model, and a study's folder may be of somebody else: pages and Markdown escape all of
it, and what cannot be printed, such as marks that turn the direction of writing, is replaced here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from treesyntax.metrics.kinds import KINDS, RIGHT
from treesyntax.metrics.trees import parse_hypothesis
from treesyntax.study.recipe.recipe import Method
from treesyntax.study.report.examples.kinds import Verdicts, first_difference
from treesyntax.study.results.outputs import Outputs
from treesyntax.study.run.steps import Run
from treesyntax.trees.tree import Tree

EACH_WAY = 2
"""Examples of a row that is right and of one that is wrong."""
AROUND = 40
"""Tokens that are shown before and after a mark."""
LONGEST = 60
"""Letters of a token that are shown."""
WHOLE = 30
"""Nodes of a tree that is shown whole; of a larger one, subtrees beside the mark are folded."""
MOST_NODES = 40
INDENT = "· "
ELLIPSIS = "…"


class Marked(NamedTuple):
    """A line of text with a part that stands out; "" for none."""

    before: str
    marked: str = ""
    after: str = ""


class Example(NamedTuple):
    """One line of the test set.

    Attributes:
        heading: its number, and who is right and wrong.
        texts: source, reference and outputs, each with its name.
        trees: the reference's and an output's tree, each with its name, if both are trees.
        note: what the difference is, if trees say so.
    """

    heading: str
    texts: tuple[tuple[str, Marked], ...]
    trees: tuple[tuple[str, tuple[Marked, ...]], ...]
    note: str


class Examples(NamedTuple):
    """A row beside its baseline.

    Attributes:
        heading: the two, and how many lines only one of them has right in all runs.
        shown: the examples, those that the row has right first.
    """

    heading: str
    shown: tuple[Example, ...]


def choose_examples(outputs: Outputs, verdicts: Verdicts) -> list[Examples]:
    """For each row with another than its baseline right, the lines that tell the two most apart."""
    recipe, pairs = outputs.plan.recipe, []
    for method in recipe.methods:
        baseline = recipe.baseline_of(method)
        if baseline and {method.name, baseline.name} <= verdicts.letters.keys():
            pairs.append(_of_pair(outputs, verdicts, method, baseline))
    return [pair for pair in pairs if pair.shown]


def _of_pair(outputs: Outputs, verdicts: Verdicts, method: Method, baseline: Method) -> Examples:
    row_shares, baseline_shares = (_shares(verdicts, row) for row in (method, baseline))
    only = [sum(a == 1 and b == 0 for a, b in zip(*pair, strict=True))
            for pair in ((row_shares, baseline_shares), (baseline_shares, row_shares))]  # fmt: skip
    heading = (
        f"{method.name} and {baseline.name} (lines that every run of one has right and none of the "
        f"other: {only[0]} and {only[1]})"
    )
    shown = [
        _example(outputs, verdicts, line, (better, worse))
        for better, worse, first, second in (
            (method, baseline, row_shares, baseline_shares),
            (baseline, method, baseline_shares, row_shares),
        )
        for line in _lines(outputs, baseline, first, second)
    ]  # fmt: skip
    return Examples(heading, tuple(shown))


def _shares(verdicts: Verdicts, method: Method) -> list[float]:
    """For each line the share of runs that have it right."""
    runs = list(verdicts.letters[method.name].values())
    return [column.count(RIGHT) / len(runs) for column in zip(*runs, strict=True)]


def _lines(
    outputs: Outputs, baseline: Method, better: Sequence[float], worse: Sequence[float]
) -> list[int]:
    """The lines with the largest difference, short ones first, each pair of source and reference once."""
    references, sources = outputs.references(baseline.name), outputs.sources(baseline.name)
    gaps = [
        better_share - worse_share for better_share, worse_share in zip(better, worse, strict=True)
    ]
    order = sorted(range(len(gaps)), key=lambda line: (-gaps[line], len(references[line])))
    chosen: dict[object, int] = {}
    for line in order:
        if gaps[line] <= 0 or len(chosen) == EACH_WAY:
            break
        chosen.setdefault((sources[line], references[line]), line)
    return list(chosen.values())


def _example(
    outputs: Outputs, verdicts: Verdicts, line: int, rows: tuple[Method, Method]
) -> Example:
    better, worse = rows
    right, wrong = (
        next(Run(row, seed) for seed, letters in verdicts.letters[row.name].items()
             if (letters[line] == RIGHT) is wanted)
        for row, wanted in ((better, True), (worse, False))
    )  # fmt: skip
    reference = outputs.references(worse.name)[line]
    source = outputs.sources((outputs.plan.recipe.baseline_of(worse) or worse).name)[line]
    output, good = (outputs.text(outputs.output(run))[line] for run in (wrong, right))
    notation = verdicts.notations[worse.name]
    trees = [
        (parse_hypothesis(text, notation) or None) if notation else None
        for text in (output, reference)
    ]
    outlines, note = _outlines(trees[0], trees[1], notation, wrong.name)
    position = None if outlines else first_token(output, reference)
    heading = (
        f"Line {line + 1}: right in {_runs(verdicts, better, line)}, "
        f"wrong in {_runs(verdicts, worse, line, False)}"
    )
    texts = (("source", clipped(shown_source(source))), ("reference", clipped(reference, position)),
             (f"{wrong.name}, wrong", clipped(output, position) if output.strip() else Marked("", "empty")),
             (f"{right.name}, right", clipped(good)))  # fmt: skip
    letter = verdicts.letters[worse.name][wrong.seed][line]
    said = "; ".join(filter(None, (KINDS.get(letter, ""), note)))
    same = good.split() == reference.split()
    return Example(heading, texts[:3] if same else texts, outlines, said)


def _runs(verdicts: Verdicts, row: Method, line: int, right: bool = True) -> str:
    letters: list[str] = [text[line] for text in verdicts.letters[row.name].values()]
    count = sum((letter == RIGHT) is right for letter in letters)
    return f"{count} of {len(letters)} runs of {row.name}"


def shown_source(source: object) -> str:
    """A line of the source, or the labels of its tree; "" where it is not known."""
    return (
        " ".join(source) if isinstance(source, tuple) else source if isinstance(source, str) else ""
    )


def printable(text: str) -> str:
    """The same with a replacement character for what cannot be printed."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def _token(text: str) -> str:
    return printable(text if len(text) <= LONGEST else text[:LONGEST] + ELLIPSIS)


def first_token(output: str, reference: str) -> int:
    """The index of the first token in which two lines differ."""
    pairs = zip_longest(output.split(), reference.split())
    return next((index for index, (token, expected) in enumerate(pairs) if token != expected), 0)


def clipped(text: str, position: int | None = None) -> Marked:
    """The tokens of a line around the one that is marked."""
    tokens = text.split()
    middle = AROUND if position is None else position
    low = max(0, middle - AROUND)
    shown = [_token(token) for token in tokens[low : middle + AROUND + 1]]
    before, after = [ELLIPSIS] * (low > 0), [ELLIPSIS] * (len(tokens) > middle + AROUND + 1)
    if position is None:
        return Marked(" ".join([*before, *shown, *after]))
    mark = shown[position - low] if position < len(tokens) else "(ends here)"
    return Marked(
        " ".join([*before, *shown[: position - low]]),
        mark,
        " ".join([*shown[position - low + 1 :], *after]),
    )


def _outlines(
    output: Tree | None, reference: Tree | None, notation: str, run: str
) -> tuple[tuple[tuple[str, tuple[Marked, ...]], ...], str]:
    """Both trees with their first difference, and in words where one of them has no node there."""
    if output is None or reference is None:
        return (), ""
    way = first_difference(output, reference, notation)
    if not way:
        return (), ""
    output_node, reference_node = way[-1]
    note = "the output lacks the marked node" if output_node is None else ""
    note = (
        "the reference has nothing in place of the marked node" if reference_node is None else note
    )
    above = way[-2:][0]
    outlines = (
        ("reference", outline(reference, reference_node, above[1])),
        (run, outline(output, output_node, above[0])),
    )
    return outlines, note


def outline(tree: Tree, mark: int | None, above: int | None = 0) -> tuple[Marked, ...]:
    """A line a node, indented by depth, with one marked.

    Of a large tree those subtrees are left out that neither lead to the mark nor stand beside the way.

    Args:
        tree: at least one node.
        mark: the node; None where the tree lacks it.
        above: the node below which it would stand then.
    """
    node = end = (above or 0) if mark is None else mark
    way = {-1}
    while node >= 0:
        way.add(node)
        node = int(tree.parents[node])
    parents, depths = tree.parents.tolist(), tree.depths.tolist()
    last = tree.last_descendants.tolist()
    whole = len(tree) <= WHOLE
    nodes = [node for node in range(len(tree)) if whole or parents[node] in way]
    at = nodes.index(end)
    low = max(0, min(at - MOST_NODES // 2, len(nodes) - MOST_NODES))
    lines = [Marked(ELLIPSIS)] * (low > 0)
    first = depths[nodes[low]]
    for node in nodes[low : low + MOST_NODES]:
        indent, label = INDENT * max(0, depths[node] - first), _token(tree.labels[node])
        left_out = last[node] - node if not whole and node not in way else 0
        after = f"  ({left_out} below)" if left_out else ""
        if node == mark:
            lines.append(Marked(indent, label, after))
        else:
            lines.append(Marked(indent + label + after))
    return tuple(lines + [Marked(ELLIPSIS)] * (low + MOST_NODES < len(nodes)))
