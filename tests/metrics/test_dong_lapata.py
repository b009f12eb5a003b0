"""What Dong & Lapata's program counts: a table of outputs and verdicts, made by reading it."""

from __future__ import annotations

import pytest

from treesyntax.errors import OptionError
from treesyntax.metrics import ITEM_METRICS
from treesyntax.metrics.dong_lapata import is_right

FORM = "( lambda $0 e ( and ( flight $0 ) ( from $0 boston ) ) )"
LAMBDA = [
    # output, reference, verdict
    (FORM, FORM, True),
    ("( lambda $0 e ( and ( from $0 boston ) ( flight $0 ) ) )", FORM, True),
    ("( lambda $1 e ( and ( flight $1 ) ( from $1 boston ) ) )", FORM, False),
    ("( lambda $0 e ( and ( flight $0 ) ( flight $0 ) ( from $0 boston ) ) )", FORM, True),
    ("( lambda $0 e ( and ( flight $0 ) ) )", FORM, False),
    # Closing brackets at the end: missing ones are added, ones too many removed.
    ("( lambda $0 e ( and ( flight $0 ) ( from $0 boston", FORM, True),
    (FORM + " )", FORM, True),
    (FORM + " ) ) )", FORM, True),
    # The last tokens are removed, whichever they are.
    ("( f $0 ) ) x", "( f $0 ) )", True),
    ("( f $0 ) ) x", "( f $0 )", True),
    ("( a ) ) b c", "( a ) ) b", True),
    ("f ) x", "f", True),
    # What stands behind a bracket that closes nothing is lost, up to the next that opens.
    (") a (", "", True),
    (") a ( b", "b", True),
    (") a ( ( b )", "( b )", True),
    ("( or b a )", "( or a b )", True),
    ("( or a b a )", "( or a b )", True),
    ("( or a b a )", "( or a b b )", True),
    # A bracket around one token has the text of the token: of both the later one stays.
    ("( and a ( a ) )", "( and ( a ) )", True),
    ("( and ( a ) a )", "( and a )", True),
    ("( and ( a ) a )", "( and ( a ) )", False),
    ("( max b a )", "( max a b )", False),
    # Outer conjunctions are sorted before inner ones, by their text as it was.
    ("( and ( or b a ) ( or a c ) )", "( and ( or a b ) ( or a c ) )", False),
    ("( and ( or b a ) ( f x ) )", "( and ( f x ) ( or a b ) )", True),
    ("( = $0 <U> )", "( = $0 <U> )", True),
    ("( = $0 <U> )", "( = $0 x:ci )", False),
    ("", FORM, False),
]
GOAL = "job ( ANS ) , salary ( ANS , 5 )"
PROLOG = [
    (GOAL, GOAL, True),
    ("salary ( ANS , 5 ) , job ( ANS )", GOAL, False),
    ("job ( ANS ) , salary ( ANS , 5", GOAL, True),
    (GOAL + " )", GOAL, True),
    # `and` is not in the vocabulary of these goals, so the program looks for <U> instead.
    ("f ( <U> , b , a )", "f ( <U> , a , b )", True),
    ("f ( and , b , a )", "f ( and , a , b )", False),
]


@pytest.mark.parametrize(("output", "reference", "right"), LAMBDA)
def test_verdicts_on_forms(output: str, reference: str, right: bool) -> None:
    assert is_right(output, reference) is right


@pytest.mark.parametrize(("output", "reference", "right"), PROLOG)
def test_verdicts_on_goals(output: str, reference: str, right: bool) -> None:
    assert ITEM_METRICS["dong_lapata:prolog"]([output], [reference]) == [right]


def test_it_is_neither_exact_nor_unordered() -> None:
    outputs = [
        FORM + " )",
        "( lambda $0 e ( and ( from $0 boston ) ( flight $0 ) ) )",
        "( and a a b )",
    ]
    references = [FORM, FORM, "( and a b )"]
    names = ("exact", "unordered:sexpr", "dong_lapata:sexpr")
    assert [ITEM_METRICS[name](outputs, references) for name in names] == [
        [False, False, False], [False, True, False], [True, True, True],
    ]  # fmt: skip


def test_references_must_be_forms() -> None:
    with pytest.raises(OptionError, match="reference 1 is not sexpr"):
        ITEM_METRICS["dong_lapata:sexpr"](["( a )"], ["( a ) )"])
