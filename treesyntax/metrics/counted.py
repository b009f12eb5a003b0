"""Which lines a metric counts, by the end of its name: all, those that training does not have, those of a category."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from treesyntax.errors import InputError, OptionError
from treesyntax.files import read_lines

UNSEEN = ":unseen"
OF = "@"
"""Stands between a metric and a category, of whose lines alone it is: ``exact@gen``."""


def plain_name(name: str) -> str:
    """The name of a metric without what says which lines it counts."""
    return name.partition(OF)[0].removesuffix(UNSEEN)


def counted_lines(
    name: str, unseen: Sequence[bool] | None, categories: Sequence[str] | None
) -> list[bool] | None:
    """Which lines a metric counts; None for all, and where it is not known.

    Args:
        name: of the metric.
        unseen: of `unseen_lines`, for a name with `UNSEEN`.
        categories: the category of each line, for a name with `OF`.
    """
    metric, _, category = name.partition(OF)
    masks = [] if not metric.endswith(UNSEEN) else [unseen]
    if category and categories is not None:
        masks.append(
            [f"{line_category}/".startswith(f"{category}/") for line_category in categories]
        )
    elif category:
        masks.append(None)
    known = [mask for mask in masks if mask is not None]
    return [all(line) for line in zip(*known, strict=True)] if masks and known == masks else None


def read_categories(path: Path, references: Path, size: int) -> list[str]:
    """Return the category of each line of a test set, without white space around it.

    Args:
        path: the file of categories.
        references: the file of the test set.
        size: its number of lines.

    Raises:
        InputError: if the file cannot be read, or has another number of lines than the test set.
    """
    categories = [" ".join(line.split()) for line in read_lines(path)]
    if len(categories) != size:
        cause = f"has {len(categories)} lines, but {references} has {size}"
        raise InputError(path, None, cause, "name the category of each line")
    return categories


def unseen_lines(
    sources: Iterable[str], references: Iterable[str],
    train_sources: Iterable[str], train_references: Iterable[str],
) -> list[bool]:  # fmt: skip
    """Which pairs of source and reference are not in the training data, white space aside.

    Raises:
        OptionError: if sources and references differ in number, in training or test.
    """
    test_pairs = [*_pairs(sources, references)]
    wanted = {source for source, _ in test_pairs}
    # Of a large training set no more is kept than what may be among them.
    seen = {pair for pair in _pairs(train_sources, train_references) if pair[0] in wanted}
    return [pair not in seen for pair in test_pairs]


def _pairs(sources: Iterable[str], references: Iterable[str]) -> Iterator[tuple[str, str]]:
    counts = [0, 0]
    for source, reference in zip_longest(sources, references):
        counts[0] += source is not None
        counts[1] += reference is not None
        if source is not None and reference is not None:
            yield " ".join(source.split()), " ".join(reference.split())
    if counts[0] != counts[1]:
        raise OptionError(f"{counts[0]} sources do not belong to {counts[1]} references")
