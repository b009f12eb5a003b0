"""What the generated sets share: trees under construction, and parts without repeats."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from treesyntax.data.sets.base import DataSet, Part, Texts, brackets
from treesyntax.errors import OptionError
from treesyntax.trees.formats.notation import Node, to_tree
from treesyntax.trees.tree import NO_WORD, Tree

NUMBERS = {"train": 20_000, "valid": 1_000, "test": 1_000, "gen": 2_000}
"""Examples in each part of a set that is drawn."""
MOST_DRAWS = 10_000
"""Draws in a row that give nothing new before it is an error."""


class Example(NamedTuple):
    """One example; a tree whose leaves are the words of the source, or none."""

    source: str
    target: str
    tree: Node | None
    category: str


Draw = Callable[[random.Random], Example | None]


def word(kind: str, text: str) -> Node:
    """A word below its kind."""
    return Node(kind, (Node(text),))


def words_of(root: Node) -> list[str]:
    """The leaves from left to right."""
    leaves: list[str] = []
    agenda = [root]
    while agenda:
        node = agenda.pop()
        if not node.children:
            leaves.append(node.label)
        agenda.extend(reversed(node.children))
    return leaves


def with_words(root: Node) -> Tree:
    """The tree with its leaves as words."""
    tree = to_tree(root)
    words = [NO_WORD] * len(tree)
    for number, leaf in enumerate(tree.leaves):
        words[leaf] = number
    return Tree(tree.parents, tree.labels, words)


def fill(examples: Part, number: int, rng: random.Random, draw: Draw, seen: set[str]) -> None:
    """Add so many examples whose sources are in no part yet."""
    barren = 0
    while len(examples) < number:
        example = draw(rng)
        if example is None or example.source in seen:
            barren += 1
            if barren == MOST_DRAWS:
                raise OptionError(f"only {len(examples)} of {number} different examples were found")
            continue
        barren = 0
        seen.add(example.source)
        tree = brackets(with_words(example.tree)) if example.tree else ""
        examples.add(example.source, example.target, tree, example.category)


def drawn_set(name: str, title: str, citation: str, notes: str, known: Draw, new: Draw) -> DataSet:
    """A data set that needs no files: its examples are drawn by a seed.

    Args:
        name: see `DataSet`, as title, citation and notes.
        title: what is translated into what.
        citation: the paper.
        notes: how ``gen`` differs from training.
        known: draws an example for each part but ``gen``.
        new: draws one for ``gen``.
    """
    make, extend = partial(_make, known, new), partial(_extend, known)
    return DataSet(name, title, "ours", citation, make, (), notes, extend=extend)


def _make(known: Draw, new: Draw, _: Texts, seed: int) -> dict[str, Part]:
    """All parts; no source is in two of them."""
    rng, seen = random.Random(seed), set[str]()
    splits = {name: Part() for name in NUMBERS}
    for name, examples in splits.items():
        fill(examples, NUMBERS[name], rng, new if name == "gen" else known, seen)
    return splits


def _extend(known: Draw, splits: dict[str, Part], number: int, seed: int) -> None:
    """Add training examples up to a number; the parts that there are stay as they are."""
    seen = {source for examples in splits.values() for source in examples.sources}
    fill(splits["train"], number, random.Random(f"{seed} extended"), known, seen)
