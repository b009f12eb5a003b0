"""Which lines a metric counts, by the end of its name: all, those that training does not have, those of a category."""

from __future__ import annotations

from collections.abc import Sequence

from treesyntax.errors import OptionError

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
        masks.append([f"{one}/".startswith(f"{category}/") for one in categories])
    elif category:
        masks.append(None)
    known = [mask for mask in masks if mask is not None]
    return [all(line) for line in zip(*known, strict=True)] if masks and known == masks else None


def unseen_lines(
    sources: Sequence[str], references: Sequence[str],
    train_sources: Sequence[str], train_references: Sequence[str],
) -> list[bool]:  # fmt: skip
    """Which pairs of source and reference are not in the training data, white space aside.

    Raises:
        OptionError: if sources and references differ in number, in training or test.
    """
    for one, other in ((sources, references), (train_sources, train_references)):
        if len(one) != len(other):
            raise OptionError(f"{len(one)} sources do not belong to {len(other)} references")
    seen = set(_pairs(train_sources, train_references))
    return [pair not in seen for pair in _pairs(sources, references)]


def _pairs(sources: Sequence[str], references: Sequence[str]) -> list[tuple[str, str]]:
    spaced = zip(sources, references, strict=True)
    return [(" ".join(source.split()), " ".join(reference.split())) for source, reference in spaced]
