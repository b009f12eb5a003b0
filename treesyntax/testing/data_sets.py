"""What every data set promises, for the test of a data set of your own."""

from __future__ import annotations

import contextlib
import io
import tempfile
from pathlib import Path

from treesyntax.data.sets import Part, get_set
from treesyntax.data.sets.making import get
from treesyntax.data.sets.reading import read_inputs
from treesyntax.errors import TreeError
from treesyntax.testing.expect import expect
from treesyntax.trees.formats import parse_tree

PARTS = ("train", "valid", "test")
MORE = 3
"""Training examples that are added, where that can be done."""


def check_data_set(name: str, folder: str | Path | None = None) -> None:
    """Check that a data set keeps all that data sets promise.

    It says what it is, whose licence it has and whom to cite. It has train, valid and test; in each part the columns
    are as long as each other, every line is one line with words in it, and trees have the words of their source. The
    same seed makes the same examples. Files from the web have a checksum. What adds training examples leaves all
    others as they are. ``treesyntax data get`` makes its folder.

    Args:
        name: the data set.
        folder: has its published files; needed where it is made from files without an address.

    Raises:
        AssertionError: for the first broken promise.
        OptionError: if there is no such data set, or its files cannot be fetched.
        InputError: if its files are missing or damaged.
    """
    data, source = get_set(name), None if folder is None else Path(folder)
    for fact in ("title", "licence", "citation"):
        expect(name, bool(getattr(data, fact)), f"it has no {fact}")
    for published in data.inputs:
        described = not published.address or (
            published.address.startswith("https://") and len(published.sha256) == 64
        )
        expect(name, described, f"{published.names[0]} needs an https address with its sha256")
    texts = read_inputs(data, source)
    splits = data.make(texts, 1)
    for split in PARTS:
        expect(name, len(splits.get(split, Part())) > 0, f"it has no examples for {split}")
    for split, lines in splits.items():
        _expect_lines(name, split, lines)
    expect(name, data.make(texts, 1) == splits, "the same seed makes other examples")
    expect(name, [*data.make(texts, 2)] == [*splits], "another seed makes other parts")
    if data.extend is not None:
        longer, size = data.make(texts, 1), len(splits["train"])
        data.extend(longer, size + MORE, 1)
        grown = longer.pop("train")
        expect(name, len(grown) == size + MORE, f"extend leaves {len(grown)} training examples")
        other_splits = {split: lines for split, lines in splits.items() if split != "train"}
        same = grown.chosen(range(size)) == splits["train"] and longer == other_splits
        expect(name, same, "extend changes examples that were there")
    with tempfile.TemporaryDirectory() as temporary, contextlib.redirect_stdout(io.StringIO()):
        get(name, Path(temporary, name), source, 1, 1)


def _expect_lines(name: str, split: str, lines: Part) -> None:
    columns = {"targets": lines.targets, "trees": lines.trees, "categories": lines.categories}
    for column, texts in columns.items():
        as_many = len(texts) == len(lines) or (not texts and column != "targets")
        expect(name, as_many, f"{split} has {len(lines)} sources, but {len(texts)} {column}")
    for texts in (lines.sources, *columns.values()):
        for number, text in enumerate(texts, start=1):
            whole = bool(text.strip()) and text.splitlines() == [text]
            expect(name, whole, f"{split}, example {number}: {text[:40]!r} is not one line of text")
    for number, (source, text) in enumerate(zip(lines.sources, lines.trees, strict=False), start=1):
        try:
            tree = parse_tree(text, "ptb")
        except TreeError as error:
            raise AssertionError(f"{name}: {split}, tree {number}: {error}") from error
        words = [label for label, word in zip(tree.labels, tree.words, strict=True) if word >= 0]
        expect(
            name, words == source.split(), f"{split}, tree {number} has other words than its source"
        )
