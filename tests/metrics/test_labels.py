"""Metrics of classes and tags equal those of scikit-learn and seqeval, on all lines and on any."""

from __future__ import annotations

import random

import numpy as np
import pytest

from treesyntax.errors import OptionError
from treesyntax.metrics import columns_of, measured, score, score_of_lines
from treesyntax.metrics.labels import macro_f1
from treesyntax.metrics.line_file import pack, unpack
from treesyntax.metrics.runs import compare_corpus_scores

CLASSES = ["good", "bad", "so-so"]
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


def classes(seed: int, lines: int = 60) -> tuple[list[str], list[str]]:
    draw = random.Random(seed)
    return draw.choices(CLASSES, k=lines), draw.choices(CLASSES, [5, 3, 1], k=lines)


def tags(seed: int, lines: int = 40) -> tuple[list[str], list[str]]:
    draw = random.Random(seed)
    references = [draw.choices(TAGS, k=draw.randrange(1, 9)) for _ in range(lines)]
    outputs = [[tag if draw.random() < 0.7 else draw.choice(TAGS) for tag in r] for r in references]
    return [" ".join(line) for line in outputs], [" ".join(line) for line in references]


@pytest.mark.parametrize("seed", range(3))
def test_f1_of_classes_equals_scikit_learns(seed: int):
    sklearn = pytest.importorskip("sklearn.metrics")
    outputs, references = classes(seed)
    for name, kind in (("macro_f1", "macro"), ("micro_f1", "micro")):
        wanted = 100 * sklearn.f1_score(references, outputs, average=kind)
        assert score(name, outputs, references).value == pytest.approx(wanted, abs=1e-9)
    right = 100 * sklearn.accuracy_score(references, outputs)
    assert score("accuracy", outputs, references).value == pytest.approx(right, abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_f1_of_spans_equals_seqevals(seed: int):
    seqeval = pytest.importorskip("seqeval.metrics", reason="span_f1 needs seqeval")
    outputs, references = tags(seed)
    pair = [[line.split() for line in lines] for lines in (references, outputs)]
    assert score("span_f1", outputs, references).value == pytest.approx(
        100 * seqeval.f1_score(*pair), abs=1e-9
    )
    assert score("token_accuracy", outputs, references).value == pytest.approx(
        100 * seqeval.accuracy_score(*pair), abs=1e-9
    )


@pytest.mark.parametrize("name", ["accuracy", "micro_f1", "macro_f1", "token_accuracy"])
def test_the_score_of_some_lines_is_that_of_their_statistics(name: str):
    outputs, references = classes(5)
    chosen = [number for number, wanted in enumerate(references) if wanted != "so-so"]
    lines = measured(name, outputs, references).lines
    alone = score(name, [outputs[n] for n in chosen], [references[n] for n in chosen]).value
    if name != "macro_f1":  # whose classes are those of the references of all
        assert score_of_lines(name, lines[chosen]) == pytest.approx(alone, abs=1e-9)
    counted = [wanted != "so-so" for wanted in references]
    of_category = measured(f"{name}@rest", outputs, references, counted)
    assert of_category.score().value == score_of_lines(name, lines[chosen])
    assert score_of_lines(name, lines) == pytest.approx(score(name, outputs, references).value)
    assert unpack(pack(lines), len(lines), columns_of(name)).tolist() == lines.tolist()


def test_a_class_that_the_references_lack_costs_recall_alone():
    outputs, references = ["other", "good"], ["good", "good"]
    assert score("macro_f1", outputs, references).value == pytest.approx(200 / 3)


def test_tags_that_are_lacking_count_as_wrong():
    assert score("token_accuracy", ["A B"], ["A B C D"]).value == 50
    assert score("token_accuracy", ["A B C D E"], ["A B"]).value == 100


def test_tags_that_are_of_no_spans_are_refused(recwarn: pytest.WarningsRecorder):
    """seqeval takes each for a span and warns once a tag."""
    pytest.importorskip("seqeval", reason="span_f1 needs seqeval")
    with pytest.raises(
        OptionError, match=r"and no tag of the references begins so \(DET\); for one"
    ):
        score("span_f1", ["DET NOUN"], ["DET VERB"])
    assert not recwarn.list
    for tags in ("O O", "B I O", "S-PER O"):
        assert score("span_f1", [tags], [tags]).value == 100


def test_runs_are_compared_in_macro_f1():
    runs = [measured("macro_f1", *classes(seed)[:1], classes(0)[1]).lines for seed in range(3)]
    better = [measured("macro_f1", classes(0)[1], classes(0)[1]).lines for _ in range(3)]
    result = compare_corpus_scores(np.stack(better, 1), np.stack(runs, 1), macro_f1)
    assert result.difference == pytest.approx(
        100 - np.mean([score_of_lines("macro_f1", lines) for lines in runs])
    )
