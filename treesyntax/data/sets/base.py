"""What a data set is: where its files come from, and what is made of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from treesyntax.data.sets.folder import Files, checked_sizes
from treesyntax.errors import OptionError
from treesyntax.jobs import imports
from treesyntax.jobs.imports import Registry
from treesyntax.trees.formats.base import subtrees_ending
from treesyntax.trees.tree import Tree

SAMPLE_SEED = 1
GEN, BOTH = "gen", "both"


@dataclass(frozen=True)
class Input:
    """A published file that a data set is made from.

    Attributes:
        names: paths under which a user's folder may hold it, with or without ``.gz`` behind them.
        address: where it is published; "" for nowhere.
        sha256: of its contents, unpacked, as they were published; "" if unknown.
        member: its name in the ZIP archive at the address; "" where the address has the file itself.
    """

    names: tuple[str, ...]
    address: str = ""
    sha256: str = ""
    member: str = ""


@dataclass
class Part:
    """Aligned lines: one of train, valid and test, or a test set of its own.

    Attributes:
        sources: what is read.
        targets: what is written.
        trees: the sources' trees, in Penn brackets; empty for none.
        categories: as the authors name them; empty for none.
    """

    sources: list[str] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)
    trees: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.sources)

    def add(self, source: str, target: str, tree: str = "", category: str = "") -> None:
        """Append one example."""
        self.sources.append(source)
        self.targets.append(target)
        self.trees += [tree] if tree else []
        self.categories += [category] if category else []

    def chosen(self, lines: Sequence[int]) -> Part:
        """Some of the examples, in this order."""
        columns = (self.sources, self.targets, self.trees, self.categories)
        return Part(*([column[line] for line in lines] if column else [] for column in columns))

    def files(self, name: str) -> Files:
        """Its files: ``NAME.src``, ``NAME.tgt`` and, where there are any, ``NAME.ptb`` and ``NAME.category``."""
        columns = (self.sources, self.targets, self.trees, self.categories)
        suffixes = ("src", "tgt", "ptb", "category")
        pairs = zip(suffixes, columns, strict=True)
        return {f"{name}.{suffix}": column for suffix, column in pairs if column}


Texts = Mapping[str, bytes]
"""The contents of each input by its first name."""
Make = Callable[[Texts, int], dict[str, Part]]
"""Makes the parts from the inputs, and a seed for what is drawn."""
Extend = Callable[[dict[str, Part], int, int], None]
"""Adds training examples to the parts up to a number, drawn by a seed; no source is in two parts."""


@dataclass(frozen=True)
class DataSet:
    """A data set by name.

    Attributes:
        title: what is translated into what.
        licence: as its authors state it.
        citation: the paper.
        make: its parts; ``train``, ``valid``, ``test`` and others.
        inputs: the files that it is made from; none if it is generated.
        notes: further facts, such as how parts are drawn.
        home: the subfolder of a user's folder that may hold the files; "" for one of the set's name.
        extend: adds training examples to the parts; None if there are no more.
    """

    name: str
    title: str
    licence: str
    citation: str
    make: Make
    inputs: tuple[Input, ...] = ()
    notes: str = ""
    home: str = ""
    extend: Extend | None = None

    @property
    def origin(self) -> str:
        """Where it comes from, in a word or two."""
        if not self.inputs:
            return "generated"
        return "download" if all(file.address for file in self.inputs) else "needs --from"


SETS: Registry[DataSet] = Registry("data set", imports.DATA_SETS)
"""All data sets by name: those of this package, and those of users."""


def register_data_set(data: DataSet) -> DataSet:
    """Make a data set known under its name, in a file of your own.

    Raises:
        ValueError: if another data set has that name, or it is no plain word.
    """
    SETS.add(data.name, data, data.make)
    return data


def brackets(tree: Tree) -> str:
    """A constituency tree in Penn brackets; for labels and words without brackets, and quick."""
    pieces = []
    for label, word, ends in zip(
        tree.labels, tree.words.tolist(), subtrees_ending(tree), strict=True
    ):
        pieces.append(f"{label if word >= 0 else '(' + label}{')' * ends}")
    return " ".join(pieces)


def sample(examples: Part, number: int) -> Part:
    """So many examples of each category, or of the whole, the same ones always; all if there are fewer."""
    rng = random.Random(SAMPLE_SEED)
    homes: dict[str, list[int]] = {}
    for line in range(len(examples)):
        homes.setdefault(examples.categories[line] if examples.categories else "", []).append(line)
    chosen = [line for home in homes.values() for line in rng.sample(home, min(number, len(home)))]
    return examples.chosen(sorted(chosen))


def joined(splits: Mapping[str, Part], names: Sequence[str]) -> Part:
    """Some parts one after another, with categories ``PART/CATEGORY``; trees where each of them has some."""
    whole = Part()
    for name in names:
        examples = splits[name]
        for column in ("sources", "targets", "trees"):
            getattr(whole, column).extend(getattr(examples, column))
        categories = examples.categories or [""] * len(examples)
        whole.categories += [f"{name}/{category}".rstrip("/") for category in categories]
    whole.trees = whole.trees if len(whole.trees) == len(whole) else []
    return whole


def hold_out(examples: Part, number: int, seed: int) -> tuple[Part, Part]:
    """All but some of the examples, and these, drawn by a seed; no copy of one stays."""
    pairs = list(zip(examples.sources, examples.targets, strict=True))
    different = list(dict.fromkeys(pairs))
    if number >= len(different):
        raise OptionError(
            f"{number} examples are to be held out, but the published file has {len(different)} "
            "different ones; check the files of --from"
        )
    drawn = set(random.Random(seed).sample(different, number))
    first = {pair: line for line, pair in reversed(list(enumerate(pairs)))}
    rest = [line for line, pair in enumerate(pairs) if pair not in drawn]
    return examples.chosen(rest), examples.chosen(sorted(first[pair] for pair in drawn))


def part_files(splits: Mapping[str, Part], number: int, small_train: Sequence[int] = ()) -> Files:
    """The files of all parts.

    Args:
        splits: by name.
        number: with one, each but train is also written as ``NAME.sample``. ``test`` and ``gen``, in and out of
            the distribution of training, are also written as one test set, ``both``.
        small_train: for each of these numbers ``train.N`` has the first N training examples of a random order that
            is always the same. A smaller set is part of a larger one.
    """
    files: Files = {}
    for name, examples in splits.items():
        files |= examples.files(name)
    samples = {
        name: sample(examples, number)
        for name, examples in splits.items()
        if number and name != "train"
    }
    for name, examples in samples.items():
        files |= examples.files(f"{name}.sample")
    if {"test", GEN} <= splits.keys():
        files |= joined(splits, ("test", GEN)).files(BOTH)
        files |= joined(samples, ("test", GEN)).files(f"{BOTH}.sample") if samples else {}
    order = list(range(len(splits["train"]))) if small_train else []
    random.Random(SAMPLE_SEED).shuffle(order)
    for size in checked_sizes(small_train, len(order)):
        files |= splits["train"].chosen(sorted(order[:size])).files(f"train.{size}")
    return files


def overlaps(splits: Mapping[str, Part]) -> dict[str, Any]:
    """How many pairs of each other part also stand in train."""
    train = set(zip(splits["train"].sources, splits["train"].targets, strict=True))
    return {
        f"{name}_in_train": sum(
            pair in train for pair in zip(examples.sources, examples.targets, strict=True)
        )
        for name, examples in splits.items()
        if name != "train"
    }
