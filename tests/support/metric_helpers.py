"""What the tests of metrics share: a program and its translations, right and wrong."""

from __future__ import annotations

from treesyntax.metrics import get_metric

REFERENCES = ["let a0 = 7 in unit", "let a1 = 2 in unit", "let a0 = a1 - 3 in unit", "unit"]
HYPOTHESES = ["let a0 =  7 in unit ", "let a1 = 2 in", "let a0 = ( a1 ) - 3 in unit", "let a0"]


def value(name: str, hypotheses: list[str], references: list[str]) -> float:
    (score,) = get_metric(name)(hypotheses, references)
    assert score.metric == name
    assert score.n == len(references)
    return score.value
