"""FunQL forms: what trees they are, and that these print back to the same text."""

from __future__ import annotations

import gzip
from collections import defaultdict

import pytest
from support import shared
from support.helpers import PROLOG, nested

from treesyntax.errors import TreeError
from treesyntax.trees.formats.funql import FUNQL

FORMS = [
    ("all", "all"),
    ("answer _a all", ["answer", ["_a", "all"]]),
    ("answer _a kind b", ["answer", ["_a", ["kind", "b"]]]),
    (
        "answer _a ( intersection _b kind c _d all ( or _e kind f _g h ) )",
        ["answer", ["_a", ["intersection", ["_b", ["kind", "c"]], ["_d", "all"],
                           ["or", ["_e", ["kind", "f"]], ["_g", "h"]]]]],
    ),
    ("answer _equals kind a _b kind c",
     ["answer", ["_equals", ["kind", "a"], ["_b", ["kind", "c"]]]]),
    ("count _a ( or kind b kind c )", ["count", ["_a", ["or", ["kind", "b"], ["kind", "c"]]]]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), FORMS)
def test_forms(text, expected):
    tree = FUNQL.parse(text)
    assert nested(tree) == expected
    assert FUNQL.write(tree) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("answer", "an argument of 'answer' or a ')' is missing"),
        ("a b c", "'c' follows the end of the form"),
        ("( _a b )", "token 1 is '(', but no intersection or or follows"),
        ("intersection _a b", "token 1 is 'intersection' without '(' before it"),
        ("( or )", "token 3 is ')', expected a name"),
        ("_a b )", "token 3 is ')', expected a name"),
        ("( or _a )", "token 4 is ')', expected a name"),
        ("( or _a b", "an argument of 'or' or a ')' is missing"),
        (
            "answer(exclude(state(all), next_to_2(x)))",
            "token 1, 'answer(exclude(state(all),', holds '('",
        ),
        ("answer(stateid('new york'))", "the FunQL of GeoQuery, as prolog"),
        (
            "answer ( state ( all ) )",
            "follows; read forms such as answer(state(all)), the FunQL of",
        ),
        ("answer _a 'b'", 'token 3, "\'b\'", holds "\'"; here arguments follow a name without'),
        ("answer _a b,", "token 3, 'b,', holds ','"),
        ("answer _a ‘b’", "token 3, '‘b’', holds '‘'"),
        ("answer a .", "the form ends with a full stop"),
    ],
)
def test_faulty_forms_are_refused(text, message):
    with pytest.raises(TreeError) as caught:
        FUNQL.parse(text)
    assert message in str(caught.value)


def test_the_other_funql_is_read_as_prolog():
    form = "answer ( exclude ( state ( all ) , next_to_2 ( stateid ( 'new york' ) ) ) )"
    tree = PROLOG.parse(form)
    assert nested(tree) == [
        "answer", ["exclude", ["state", "all"], ["next_to_2", ["stateid", "'new␣york'"]]]
    ]  # fmt: skip
    assert PROLOG.write(tree) == form


def test_published_forms_print_back_and_a_name_has_one_number_of_arguments():
    arities = defaultdict(set)
    for part in ("train", "dev", "test"):
        file = shared("data", "atis_funql_length", f"{part}.tsv.gz")
        with gzip.open(file, "rt", encoding="utf-8") as stream:
            for line in list(stream)[::4]:
                form = line.rstrip("\n").split("\t")[1]
                tree = FUNQL.parse(form)
                assert FUNQL.write(tree) == form
                for label, arity in zip(tree.labels, tree.arities.tolist(), strict=True):
                    arities[label].add(arity)
    assert {name for name, found in arities.items() if len(found) > 1} <= {"intersection", "or"}
