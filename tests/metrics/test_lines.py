"""The score of any lines is a function of the sum of what each contributes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER

from treesyntax.metrics import METRICS, columns_of, get_metric, measured, score_of_lines

WORDS = ["the", "a", "tree", "grows", "green", "leaves", "and", "so", ",", "."]
SACREBLEU = {
    "bleu": BLEU(),
    "bleu:char": BLEU(tokenize="char"),
    "chrf": CHRF(),
    "chrf++": CHRF(word_order=2),
    "ter": TER(),
}


def corpus(seed: int, lines: int = 40) -> tuple[list[str], list[str]]:
    """Outputs and references of all lengths, some of them empty, some the same."""
    draw = random.Random(seed)
    references = [" ".join(draw.choices(WORDS, k=draw.randrange(1, 12))) for _ in range(lines)]
    outputs = []
    for reference in references:
        words = [word if draw.random() < 0.7 else draw.choice(WORDS) for word in reference.split()]
        outputs.append(
            " ".join(words[: draw.randrange(len(words) + 1)] if draw.random() < 0.3 else words)
        )
    return outputs, references


@pytest.mark.parametrize("name", SACREBLEU)
@given(chosen=st.sets(st.integers(0, 39), min_size=1), seed=st.integers(0, 3))
@settings(max_examples=25, deadline=None)
def test_the_score_of_any_lines_is_sacrebleus(name: str, chosen: set[int], seed: int):
    outputs, references = corpus(seed)
    lines = sorted(chosen)
    found = score_of_lines(name, measured(name, outputs, references).lines[lines])
    parts = [outputs[line] for line in lines], [[references[line] for line in lines]]
    assert found == pytest.approx(SACREBLEU[name].corpus_score(*parts).score, abs=1e-9)


TREES = ["( f x )", "( f ( g y ) x )", "( and p q )", "( lambda $0 e ( p $0 ) )", "x"]


@pytest.mark.parametrize(
    "name", ["exact", "first_word", "tree:sexpr", "modulo:sexpr", "f1:sexpr", "productions:sexpr", "wellformed:sexpr"]
)  # fmt: skip
@given(st.sets(st.integers(0, 19), min_size=1))
@settings(max_examples=15, deadline=None)
def test_the_score_of_any_lines_is_that_of_these_lines_alone(name: str, chosen: set[int]):
    draw = random.Random(1)
    references = draw.choices(TREES, k=20)
    outputs = [draw.choice([*TREES, "( f", ""]) for _ in references]
    result, lines = measured(name, outputs, references), sorted(chosen)
    (alone,) = METRICS[name]([outputs[n] for n in lines], [references[n] for n in lines])
    assert result.lines.shape == (20, columns_of(name))
    own = np.isin(np.arange(20), lines)
    assert result.score(own) == alone
    assert score_of_lines(name, result.lines[lines]) == alone.value


def test_lines_in_the_training_data_contribute_nothing_to_unseen():
    unseen = [True, False, True]
    result = measured("exact:unseen", ["a", "b", "x"], ["a", "b", "c"], unseen)
    assert result.lines.tolist() == [[1], [0]]
    assert [result.score()] == get_metric("exact:unseen", unseen)(["a", "b", "x"], ["a", "b", "c"])
    assert result.score().signature.endswith("|lines:unseen")
