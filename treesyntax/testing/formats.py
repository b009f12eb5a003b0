"""What every tree format promises, for the test of a format of your own."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from treesyntax.errors import InputError, TreeError
from treesyntax.testing.expect import expect
from treesyntax.trees.formats import Format, get_format, read_trees, write_trees
from treesyntax.trees.tree import Tree

LABELS = ("a", "B", "", " ", "(", ")", "()", "a b", "\\", '"', "'", ",", "#", "\t", "\n", "\u2028", "🌲", "-1", "=")  # fmt: skip
"""Labels of nodes that a format keeps or refuses."""
LARGE = 3_000
"""Levels, and children, of the largest trees."""


def check_format(name: str, texts: Sequence[str]) -> None:
    """Check that a tree format keeps all that formats promise.

    What is read is written and read back alike, in a file too. A damaged text is a tree or a `TreeError` of one
    line, and nothing else. Any tree is written so that it is read back alike, or refused. Files that are no text are
    refused with their name. The examples have the children that the format says its nodes have.

    Args:
        name: the format.
        texts: some records of it, all different.

    Raises:
        AssertionError: for the first broken promise.
        OptionError: if there is no such format.
        TreeError: if one of the texts is no tree.
    """
    tree_format = get_format(name)
    trees = [tree_format.parse(text) for text in texts]
    expect(name, bool(trees) and all(map(len, trees)), "give texts of trees with nodes")
    for text, tree in zip(texts, trees, strict=True):
        try:
            written = tree_format.write(tree)
        except TreeError as error:
            raise AssertionError(f"{name}: {text[:60]!r} is read, but not written") from error
        again = _read(tree_format, written)
        expect(name, again == tree, f"{text[:60]!r} is another tree once it is written and read")
        _expect_children(tree_format, tree)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"trees{tree_format.suffix}")
        write_trees(path, trees, name)
        expect(name, [*read_trees(path, name)] == trees, "a file of the trees is read otherwise")
        path.write_bytes(b"\xff\xfe\x00(")
        try:
            list(read_trees(path, name))
            expect(name, False, "a file that is no text is read without an error")
        except InputError:
            pass
    for text in _damaged(texts):
        try:
            tree_format.parse(text)
        except TreeError as error:
            expect(name, "\n" not in str(error), f"the message about {text[:60]!r} has two lines")
        except Exception as error:
            kind = type(error).__name__
            raise AssertionError(f"{name}: {text[:60]!r} raises {kind}, not TreeError") from error
    for tree in _any_trees():
        try:
            text = tree_format.write(tree)
        except TreeError:
            continue
        again = _read(tree_format, text)
        expect(name, again == tree, f"a tree is written as {text[:60]!r} and read otherwise")


def _read(tree_format: Format, text: str) -> Tree | None:
    """The tree of what the format wrote; None if it refuses that."""
    try:
        return tree_format.parse(text)
    except TreeError:
        return None


def _damaged(texts: Sequence[str]) -> Iterator[str]:
    rng = random.Random(1)
    yield from ("", " ", "\x00", *LABELS, "(" * LARGE, ")" * LARGE, "( a " * LARGE)
    for text in texts:
        for _ in range(200):
            start, end = sorted(rng.choices(range(len(text) + 1), k=2))
            yield text[:start] + text[end:]
            yield text[:start] + rng.choice(LABELS) + text[start:]
            yield text[:end] + text[start:]


def _any_trees() -> Iterator[Tree]:
    rng = random.Random(1)
    yield Tree([], [])
    yield Tree([*range(-1, LARGE - 1)], ["a"] * LARGE)
    yield Tree([-1] + [0] * (LARGE - 1), ["a"] * LARGE)
    for number in range(300):
        size = rng.randint(1, 6)
        # In preorder the parent of a node is the node before it or one above that.
        parents = [-1]
        while len(parents) < size:
            parent = len(parents) - 1
            while parents[parent] >= 0 and rng.random() < 0.5:
                parent = parents[parent]
            parents.append(parent)
        yield Tree(parents, [rng.choice(LABELS[: 2 + number // 10]) for _ in parents])


def _expect_children(tree_format: Format, tree: Tree) -> None:
    name = tree_format.name
    expect(
        name,
        tree_format.root(tree.labels[0]),
        f"{tree.labels[0]!r} is no root by the format's root",
    )
    for label, below in zip(tree.labels, tree.children(), strict=True):
        children = tree_format.children(label)
        fits = children is None or children.may_be(len(below))
        expect(name, fits, f"{label!r} has {len(below)} children, which children() does not allow")
