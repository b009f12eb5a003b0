"""Metrics over hypotheses and references, one line of text each.

A metric is named on the command line as ``exact``, ``bleu``, ``chrf``, ``tree:NOTATION`` or
``wellformed:NOTATION``, where NOTATION is one of the tree formats.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from sacrebleu.metrics import BLEU, CHRF

from treesyntax import __version__
from treesyntax.errors import OptionError, TreeError
from treesyntax.formats import FORMATS, get_format
from treesyntax.tree import Tree


class Score(NamedTuple):
    """A number with what it takes to compare it with another.

    Attributes:
        metric: the name it was asked for by.
        value: percent, or points from 0 to 100.
        signature: how it was computed.
        n: number of lines.
    """

    metric: str
    value: float
    signature: str
    n: int


def exact(hypotheses: Sequence[str], references: Sequence[str]) -> list[Score]:
    """Percentage of hypotheses with the tokens of their reference; white space does not count.

    Raises:
        OptionError: if there are no lines, or not as many of both.
    """
    return [_share("exact", exact_items(hypotheses, references), "exact|tok:space")]


def tree(hypotheses: Sequence[str], references: Sequence[str], notation: str) -> list[Score]:
    """Percentage of hypotheses that parse to the tree of their reference.

    Raises:
        OptionError: as for `exact`; also if there is no such notation, or a reference is malformed.
    """
    name = f"tree:{notation}"
    return [_share(name, tree_items(hypotheses, references, notation), name)]


def wellformed(hypotheses: Sequence[str], references: Sequence[str], notation: str) -> list[Score]:
    """Percentage of hypotheses that parse. Blank ones, which are empty trees, do not count.

    Raises:
        OptionError: as for `exact`; also if there is no such notation.
    """
    _check_aligned(hypotheses, references)
    name = f"wellformed:{notation}"
    return [_share(name, [bool(_parse_hypothesis(text, notation)) for text in hypotheses], name)]


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> list[Score]:
    """Corpus BLEU of sacreBLEU (Post 2018) with its default settings, on raw text.

    Raises:
        OptionError: as for `exact`.
    """
    return _sacrebleu("bleu", BLEU(), hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[Score]:
    """Corpus chrF2 of sacreBLEU (Popović 2015), on raw text.

    Raises:
        OptionError: as for `exact`.
    """
    return _sacrebleu("chrf", CHRF(), hypotheses, references)


def exact_items(hypotheses: Sequence[str], references: Sequence[str]) -> list[bool]:
    """Which hypotheses are right in the sense of `exact`."""
    _check_aligned(hypotheses, references)
    pairs = zip(hypotheses, references, strict=True)
    return [hypothesis.split() == reference.split() for hypothesis, reference in pairs]


def tree_items(hypotheses: Sequence[str], references: Sequence[str], notation: str) -> list[bool]:
    """Which hypotheses are right in the sense of `tree`."""
    _check_aligned(hypotheses, references)
    wanted = _parse_references(references, notation)
    found = (_parse_hypothesis(hypothesis, notation) for hypothesis in hypotheses)
    return [left == right for left, right in zip(found, wanted, strict=True)]


METRICS: dict[str, Callable[[Sequence[str], Sequence[str]], list[Score]]] = {
    "exact": exact,
    "bleu": bleu,
    "chrf": chrf,
    **{f"tree:{name}": partial(tree, notation=name) for name in FORMATS},
    **{f"wellformed:{name}": partial(wellformed, notation=name) for name in FORMATS},
}
# The metrics that judge each line by itself, for tests of significance.
ITEM_METRICS: dict[str, Callable[[Sequence[str], Sequence[str]], list[bool]]] = {
    "exact": exact_items,
    **{f"tree:{name}": partial(tree_items, notation=name) for name in FORMATS},
}


def get_metric(name: str) -> Callable[[Sequence[str], Sequence[str]], list[Score]]:
    """The metric of that name.

    Raises:
        OptionError: if there is none; the message lists the names.
    """
    if name not in METRICS:
        raise OptionError(f"no metric is named {name!r}; there are {', '.join(METRICS)}")
    return METRICS[name]


def _check_aligned(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references):
        raise OptionError(
            f"{len(hypotheses)} hypotheses cannot be scored against {len(references)} references"
        )
    if not references:
        raise OptionError("there are no lines to score")


def _parse_references(references: Sequence[str], notation: str) -> list[Tree]:
    parse = get_format(notation).parse
    trees = []
    for line, reference in enumerate(references, start=1):
        try:
            trees.append(parse(reference))
        except TreeError as error:
            # Else a mistyped notation would look like a model that gets nothing right.
            raise OptionError(f"reference {line} is not {notation}: {error}") from None
    return trees


def _parse_hypothesis(hypothesis: str, notation: str) -> Tree | None:
    try:
        return get_format(notation).parse(hypothesis)
    except TreeError:
        return None


def _share(metric: str, right: Sequence[bool], settings: str) -> Score:
    value = 100 * sum(right) / len(right)
    return Score(metric, value, f"{settings}|v:{__version__}", len(right))


def _sacrebleu(
    name: str, metric: BLEU | CHRF, hypotheses: Sequence[str], references: Sequence[str]
) -> list[Score]:
    _check_aligned(hypotheses, references)
    value = metric.corpus_score(hypotheses, [references]).score
    return [Score(name, value, str(metric.get_signature()), len(references))]
