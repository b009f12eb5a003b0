"""Metrics of strings, trees and programs: values, signatures and refusals."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF, TER
from support.helpers import HYPOTHESES, REFERENCES, value

from treesyntax import __version__
from treesyntax.errors import OptionError
from treesyntax.metrics import ITEM_METRICS, METRICS, OF_USERS, get_metric, register_metric, score
from treesyntax.trees.formats import FORMATS

lines = st.lists(st.text("ab ", max_size=5), min_size=1, max_size=6)


OF_ANY = ("tree", "program", "wellformed", "f1", "productions")


@pytest.mark.parametrize(
    ("metric", "percent", "signature"),
    [
        ("exact", 25.0, "exact|tok:space"),
        ("tree:lambda", 50.0, "tree:lambda"),
        ("program:lambda", 50.0, "program:lambda"),
        ("wellformed:lambda", 50.0, "wellformed:lambda"),
        ("wellformed:for", 0.0, "wellformed:for"),
    ],
)
def test_shares_and_signatures(metric: str, percent: float, signature: str) -> None:
    assert METRICS[metric](HYPOTHESES, REFERENCES) == [
        (metric, percent, f"{signature}|v:{__version__}", 4, "", "")
    ]


def test_items_say_which_lines_are_right() -> None:
    assert ITEM_METRICS["exact"](HYPOTHESES, REFERENCES) == [True, False, False, False]
    assert ITEM_METRICS["tree:lambda"](HYPOTHESES, REFERENCES) == [True, False, True, False]


def test_verbs_of_the_main_clause_and_of_the_relative_clause_count_apart() -> None:
    wanted = "the otter that my wolves follow helps the crane ."
    right = {  # main verb, clause's verb
        wanted: (True, True),
        "the otter that my wolves follows helps the crane .": (True, False),
        "the otter that my wolves follow help the crane .": (False, True),
        "helps": (True, False),
        "the otter that my wolves followed helped the crane .": (False, False),
        "": (False, False),
        "the otter near my wolf helps the crane .": (True, False),
        "some lizard that your ponies follow helps": (True, True),  # nothing else counts
    }
    hypotheses, references = list(right), [wanted] * len(right)
    for number, name in enumerate(("main_verb", "clause_verb")):
        assert ITEM_METRICS[name](hypotheses, references) == [
            judged[number] for judged in right.values()
        ]
    assert METRICS["main_verb"](hypotheses, references)[0].value == pytest.approx(62.5)
    assert ITEM_METRICS["clause_verb"](["the otter naps ."], ["the otters nap ."]) == [True]


def test_the_first_word_alone_counts() -> None:
    hypotheses = ["does it do", " does she", "do it", "", "it"]
    references = ["does it", "does it", "does it", "it", ""]
    assert ITEM_METRICS["first_word"](hypotheses, references) == [True, True, False, False, False]
    assert METRICS["first_word"](hypotheses, references)[0].value == pytest.approx(40)


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
    [(kind.__name__.lower(), kind()) for kind in (BLEU, CHRF, TER)],
)
def test_sacrebleu_metrics_are_sacrebleus(metric: str, of_sacrebleu: BLEU) -> None:
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
    assert message == (
        "no metric is named 'tree:lamda'; there are bleu, chrf, chrf++, ter, exact, accuracy, first_word, main_verb, clause_verb, micro_f1, token_accuracy, span_f1, macro_f1, bleu:TOKENIZER "
        "with TOKENIZER one of none, char, zh, intl, ja-mecab, ko-mecab, flores101, flores200, tree:NOTATION, "
        "program:NOTATION, wellformed:NOTATION, top1:NOTATION, top2:NOTATION, f1:NOTATION, productions:NOTATION with NOTATION "
        f"one of {', '.join(FORMATS)}, unordered:sexpr, unordered:sexpr_bare, unordered:prolog, "
        "modulo:sexpr, modulo:sexpr_bare, modulo:prolog, "
        "dong_lapata:sexpr, dong_lapata:sexpr_bare, dong_lapata:prolog, "
        "compiled:coffeescript; each may end in :unseen, and in @CATEGORY"
    )


@pytest.mark.parametrize("name", ["exact", "bleu", "macro_f1", "tree:ptb"])
def test_what_are_no_lines_of_text_is_refused(name: str):
    """A single text was scored letter by letter."""
    line = "(S a)"
    for lines, problem in (
        (line, "are a single text; give a list with a text for each line"),
        ([line, None], "line 2 of the {} is None; it must be a text"),
        ([[line]], r"line 1 of the {} is \['\(S a\)'\]; it must be a text"),
        ([nan], "line 1 of the {} is nan; it must be a text"),
    ):
        for kind, both in (
            ("hypotheses", (lines, [line])),
            ("references", ([line] * len(lines), lines)),
        ):
            with pytest.raises(OptionError, match=problem.format(kind)):
                score(name, *both)
    column = np.array([line, line])
    assert score(name, column, column) == score(name, [line, line], [line, line])


@pytest.mark.parametrize(
    "metric", ["exact", "bleu", "chrf", "modulo:sexpr", *(f"{kind}:lambda" for kind in OF_ANY)]
)
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


@pytest.mark.parametrize("kind", [kind for kind in OF_ANY if kind != "wellformed"])
def test_every_metric_reports_malformed_references(kind: str) -> None:
    with pytest.raises(OptionError, match="^reference 1 is not sexpr: 1 parenthesis still open"):
        get_metric(f"{kind}:sexpr")(["a"], ["( a"])


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("of_mine", 1, "True, False or None"),
        ("of_mine", "yes", "True, False or None"),
        ("f1_of_mine", 0.5, "two whole numbers"),
        ("f1_of_mine", (3, 4), "two whole numbers"),
    ],
)
def test_what_a_metric_of_a_user_says_of_a_line_is_checked(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object, wanted: str
):
    for attribute in ("known", "origins"):
        monkeypatch.setattr(OF_USERS, attribute, {**getattr(OF_USERS, attribute)})
    register_metric(name)(lambda hypotheses, references: [value for _ in references])
    with pytest.raises(OptionError, match=f"for line 1, not {wanted}"):
        score(name, ["a"], ["a"])


def test_a_metric_of_ours_keeps_its_name():
    with pytest.raises(ValueError, match="two metrics are named bleu"):
        register_metric("bleu")(lambda hypotheses, references: [])
