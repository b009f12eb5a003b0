"""Metrics over lines of labels: the class of a text, or a tag for each word.

`accuracy` is whether a line has the labels of its reference. The others count parts, so that the score of
any lines is a function of sums over them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from treesyntax.errors import OptionError, need_package
from treesyntax.metrics.trees import Parts, check_aligned

MACRO = "macro_f1"
OUTSIDE = "O"
SPAN_TAG = re.compile(r"[BIES](-|$)")
"""How the tags of spans that seqeval knows begin."""


def micro_parts(hypotheses: Sequence[str], references: Sequence[str]) -> Parts:
    """Labels in common, and labels in both: with one label a line, F1 is the accuracy."""
    pairs = zip(*_labels(hypotheses, references), strict=True)
    return [
        ((Counter(output) & Counter(reference)).total(), len(output) + len(reference))
        for output, reference in pairs
    ]


def token_parts(hypotheses: Sequence[str], references: Sequence[str]) -> Parts:
    """Words with the tag of the reference, and twice all words; so F1 is the share of right tags."""
    return [
        (sum(map(str.__eq__, output, reference)), 2 * len(reference))
        for output, reference in zip(*_labels(hypotheses, references), strict=True)
    ]


def span_parts(hypotheses: Sequence[str], references: Sequence[str]) -> Parts:
    """Spans of tags such as B-PER I-PER in common, and spans in both.

    What a span is, seqeval decides, in its lenient mode as conlleval: one that begins with I- counts too.

    Raises:
        OptionError: if seqeval is not installed, or no tag of the references is of a span.
    """
    need_package("seqeval", "huggingface", "the metric span_f1")
    from seqeval.metrics.sequence_labeling import get_entities

    outputs, true_tags = _labels(hypotheses, references)
    _check_spans({tag for tags in true_tags for tag in tags})
    counts = []
    for output, reference in zip(outputs, true_tags, strict=True):
        spans = [set(get_entities(tags)) for tags in (output, reference)]
        counts.append((len(spans[0] & spans[1]), len(spans[0]) + len(spans[1])))
    return counts


def _check_spans(tags: set[str]) -> None:
    """Refuse tags such as NOUN, each of which seqeval would take for a span of its own, with a warning."""
    others = sorted(tags - {OUTSIDE})
    if others and not any(SPAN_TAG.match(tag) for tag in others):
        raise OptionError(
            f"span_f1 counts spans such as B-PER I-PER, and no tag of the references begins so ({others[0]}); "
            "for one tag a word take --metric token_accuracy"
        )


def class_parts(
    hypotheses: Sequence[str], references: Sequence[str], of: Sequence[str] | None = None
) -> NDArray[np.float64]:
    """What the mean of the F1 of each class is a function of.

    The classes are those of the references; what is said beyond them only costs recall.

    Args:
        hypotheses: one output a line.
        references: as many.
        of: the references that have the classes, of the whole test set where some lines are scored; None for these.

    Returns:
        [lines, 2 * classes]: how often both have each class, then how often either has it.
    """
    outputs, true_labels = _labels(hypotheses, references)
    classes = sorted(
        {label for line in (references if of is None else of) for label in line.split()}
    )
    number = {label: index for index, label in enumerate(classes)}
    counts = np.zeros((len(true_labels), 2 * len(classes)))
    for line, (ours, theirs) in enumerate(zip(outputs, true_labels, strict=True)):
        for label, count in (Counter(ours) & Counter(theirs)).items():
            counts[line, number[label]] = count
        for label, count in (Counter(ours) + Counter(theirs)).items():
            if label in number:
                counts[line, len(classes) + number[label]] = count
    return counts


def macro_f1(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over classes of F1 in percent; a class counts that a line has or says, of those of the test set.

    Args:
        sums: [samples, 2 * classes], see `class_parts`.
    """
    common, total = np.split(sums, 2, axis=-1)
    scores = 200 * common / np.maximum(total, 1e-9)
    present = total > 0
    count = present.sum(-1)
    return np.where(count > 0, (scores * present).sum(-1) / np.maximum(count, 1), 100.0)


def _labels(
    hypotheses: Sequence[str], references: Sequence[str]
) -> tuple[list[list[str]], list[list[str]]]:
    check_aligned(hypotheses, references)
    return [line.split() for line in hypotheses], [line.split() for line in references]
