"""Metrics and ``treesyntax score``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from treesyntax import __version__
from treesyntax.cli import main
from treesyntax.errors import OptionError
from treesyntax.formats import FORMATS
from treesyntax.metrics import ITEM_METRICS, METRICS, get_metric

REFERENCES = ["let a0 = 7 in unit", "let a1 = 2 in unit", "let a0 = a1 - 3 in unit", "unit"]
HYPOTHESES = ["let a0 =  7 in unit ", "let a1 = 2 in", "let a0 = ( a1 ) - 3 in unit", "let a0"]

lines = st.lists(st.text("ab ", max_size=5), min_size=1, max_size=6)


def value(name: str, hypotheses: list[str], references: list[str]) -> float:
    (score,) = get_metric(name)(hypotheses, references)
    assert score.metric == name
    assert score.n == len(references)
    return score.value


@pytest.mark.parametrize(
    ("metric", "percent", "signature"),
    [
        ("exact", 25.0, "exact|tok:space"),
        ("tree:lambda", 50.0, "tree:lambda"),
        ("wellformed:lambda", 50.0, "wellformed:lambda"),
        ("wellformed:for", 0.0, "wellformed:for"),
    ],
)
def test_shares_and_signatures(metric: str, percent: float, signature: str) -> None:
    assert METRICS[metric](HYPOTHESES, REFERENCES) == [
        (metric, percent, f"{signature}|v:{__version__}", 4)
    ]


def test_items_say_which_lines_are_right() -> None:
    assert ITEM_METRICS["exact"](HYPOTHESES, REFERENCES) == [True, False, False, False]
    assert ITEM_METRICS["tree:lambda"](HYPOTHESES, REFERENCES) == [True, False, True, False]


@settings(deadline=None, max_examples=50)
@given(st.data(), lines)
def test_exact_counts_equal_token_strings(data: st.DataObject, references: list[str]) -> None:
    size = len(references)
    hypotheses = data.draw(st.lists(st.text("ab ", max_size=5), min_size=size, max_size=size))
    right = 0
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        right += " ".join(hypothesis.split()) == " ".join(reference.split())
    assert value("exact", hypotheses, references) == pytest.approx(100 * right / size)
    assert value("exact", references, references) == 100


def test_tree_sees_structure_not_spelling() -> None:
    assert value("tree:for", ["( a0 = 1 ; a0 = 2 )"], ["a0 = 1 ; a0 = 2"]) == 100
    assert value("tree:for", ["a0 = 1 - ( 2 + 3 )"], ["a0 = 1 - 2 + 3"]) == 0
    assert value("tree:ptb", ["(S (NP a)(VP b))"], ["(S  (NP a) (VP b))"]) == 100
    assert value("tree:sexpr", ["(f x (g y))"], ["(f (g y) x)"]) == 0


def test_blank_hypotheses_are_not_well_formed() -> None:
    assert value("wellformed:lambda", ["", " ", "unit"], ["unit"] * 3) == pytest.approx(100 / 3)
    assert value("tree:lambda", ["", "unit"], ["", ""]) == 50


def test_deep_hypotheses_are_scored() -> None:
    text = "a0 = 1 ; ( " * 10_000 + "a0 = 1" + " )" * 10_000
    assert value("tree:for", [text], [text]) == 100


@pytest.mark.parametrize(
    ("metric", "of_sacrebleu"),
    [("bleu", sacrebleu.metrics.BLEU()), ("chrf", sacrebleu.metrics.CHRF())],
)
def test_sacrebleu_metrics_are_sacrebleus(metric: str, of_sacrebleu: sacrebleu.BLEU) -> None:
    hypotheses = ["the cat sat on the mat .", "a dog"]
    references = ["the cat sat on a mat .", "a small dog"]
    (score,) = METRICS[metric](hypotheses, references)
    assert score.value == of_sacrebleu.corpus_score(hypotheses, [references]).score
    assert 0 < score.value < 100
    assert score.signature == str(of_sacrebleu.get_signature())
    assert f"version:{sacrebleu.__version__}" in score.signature


def test_an_unknown_metric_is_answered_with_all_names() -> None:
    with pytest.raises(OptionError) as caught:
        get_metric("tree:lamda")
    message = str(caught.value)
    assert message.startswith("no metric is named 'tree:lamda'; there are exact, bleu, chrf, tree:")
    assert all(f"tree:{name}" in message and f"wellformed:{name}" in message for name in FORMATS)


@pytest.mark.parametrize("metric", ["exact", "bleu", "chrf", "tree:lambda", "wellformed:lambda"])
def test_lists_that_do_not_fit_are_refused(metric: str) -> None:
    with pytest.raises(OptionError, match="^2 hypotheses cannot be scored against 1 references$"):
        METRICS[metric](["unit", "unit"], ["unit"])
    with pytest.raises(OptionError, match="^there are no lines to score$"):
        METRICS[metric]([], [])


def test_a_reference_of_another_notation_is_reported() -> None:
    with pytest.raises(OptionError) as caught:
        METRICS["tree:lambda"](["unit", "unit"], ["unit", "a0 = 1"])
    assert str(caught.value) == (
        "reference 2 is not lambda: token 1 is 'a0', expected let, letrec, if, a9 or unit"
    )


def score(tmp_path: Path, hypotheses: str, references: str, *more: str) -> int:
    (tmp_path / "hyp").write_text(hypotheses, encoding="utf-8")
    (tmp_path / "ref").write_text(references, encoding="utf-8")
    paths = ["--reference", str(tmp_path / "ref"), "--hypothesis", str(tmp_path / "hyp")]
    return main(["score", *paths, *more])


def test_the_command_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = ["--metric", "exact", "--metric", "tree:lambda"]
    assert score(tmp_path, "\n".join(HYPOTHESES), "\n".join(REFERENCES), *metrics) == 0
    assert capsys.readouterr().out == (
        f"exact         25.00  n=4  exact|tok:space|v:{__version__}\n"
        f"tree:lambda   50.00  n=4  tree:lambda|v:{__version__}\n"
    )


def test_the_command_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert score(tmp_path, "a\nb\n", "a\nc\n", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [
        {"metric": "exact", "value": 50.0, "signature": f"exact|tok:space|v:{__version__}", "n": 2}
    ]


@pytest.mark.parametrize(
    ("hypotheses", "references", "more", "message"),
    [
        ("a\n", "a\nb\n", [], "{0}/hyp: has 1 lines, but {0}/ref has 2; score the output of the very same set"),
        ("", "", [], "{0}/ref: is empty; there is nothing to score"),
        ("a\n", "a\n", ["--metric", "tree:lambda"],
         "reference 1 is not lambda: token 1 is 'a', expected let, letrec, if, a9 or unit"),
    ],
)  # fmt: skip
def test_the_command_refuses(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    hypotheses: str,
    references: str,
    more: list[str],
    message: str,
) -> None:
    assert score(tmp_path, hypotheses, references, *more) == 2
    assert capsys.readouterr().err == f"treesyntax score: {message.format(tmp_path)}\n"


def test_the_command_refuses_unknown_metrics_and_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert score(tmp_path, "a\n", "a\n", "--metric", "accuracy") == 2
    assert "no metric is named 'accuracy'; there are exact," in capsys.readouterr().err
    assert main(["score", "--reference", str(tmp_path / "x"), "--hypothesis", "y"]) == 2
    assert "x: cannot be read (No such file or directory)" in capsys.readouterr().err
