"""What the generated sets share: trees under construction, and parts without repeats."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from treesyntax.data.sets.base import Part, brackets
from treesyntax.errors import OptionError
from treesyntax.trees.formats.notation import Node, to_tree
from treesyntax.trees.tree import NO_WORD, Tree

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


def make_parts(seed: int, known: Draw, new: Draw, numbers: dict[str, int]) -> dict[str, Part]:
    """Parts by number; ``gen`` is drawn by ``new``, all others by ``known``; no source is in two of them."""
    rng, seen = random.Random(seed), set[str]()
    splits = {name: Part() for name in numbers}
    for name, examples in splits.items():
        fill(examples, numbers[name], rng, new if name == "gen" else known, seen)
    return splits


def extend_train(splits: dict[str, Part], number: int, seed: int, known: Draw) -> None:
    """Add training examples up to a number; the parts that there are stay as they are."""
    seen = {source for examples in splits.values() for source in examples.sources}
    fill(splits["train"], number, random.Random(f"{seed} extended"), known, seen)
