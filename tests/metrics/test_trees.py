"""F1 over trees, linearizations as text, and metrics over the lines that training has not seen."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from support import shared
from support.helpers import HYPOTHESES, REFERENCES, value
from support.strategies import trees

from treesyntax import __version__
from treesyntax.errors import OptionError, TreeError
from treesyntax.files import read_lines
from treesyntax.metrics import METRICS, get_metric, unseen_lines
from treesyntax.trees.formats import FORMATS, get_format
from treesyntax.trees.linearizations import MALFORMED, from_linearization, get_linearization
from treesyntax.trees.tree import Tree


@pytest.mark.parametrize(
    ("hypothesis", "reference", "f1", "productions"),
    [
        # Of 4 and 4 nodes the root and a agree; no production does.
        ("(S (A a) (B b))", "(S (A a) (C c))", 2 * 3 / 10, 2 * 1 / 6),
        ("(S (A a))", "(S (A a) (B b))", 2 * 3 / 8, 2 * 1 / 5),
        ("(S (A a) (A a))", "(S (A a) (A a))", 1, 1),
        ("(S (A a) (A a))", "(S (A a))", 2 * 3 / 8, 2 * 1 / 5),
        ("(S", "(S (A a))", 0, 0),
        ("(X (A a))", "(S (A a))", 2 * 1 / 6, 2 * 1 / 4),
    ],
)
def test_f1_by_hand(hypothesis: str, reference: str, f1: float, productions: float) -> None:
    assert value("f1:ptb", [hypothesis], [reference]) == pytest.approx(100 * f1)
    assert value("productions:ptb", [hypothesis], [reference]) == pytest.approx(100 * productions)


def test_f1_is_pooled_over_lines_and_signed() -> None:
    hypotheses, references = ["(S (A a))", "(S"], ["(S (A a))", "(S (A a) (B b))"]
    (score,) = METRICS["f1:ptb"](hypotheses, references)
    assert score[:4] == ("f1:ptb", pytest.approx(600 / 11), f"f1:ptb|avg:micro|v:{__version__}", 2)
    assert value("productions:ptb", hypotheses, references) == pytest.approx(400 / 7)


def test_the_place_of_a_conjunct_does_not_count_but_that_of_an_argument_does() -> None:
    assert value("f1:sexpr", ["( and a b c )"], ["( and c a b )"]) == 100
    assert value("f1:sexpr", ["( f a b c )"], ["( f c a b )"]) == 25
    for metric in ("f1:sexpr", "productions:sexpr"):
        assert value(metric, ["( and:<t*,t> a b c )"], ["( and:<t*,t> c a b )"]) == 100
    assert value("productions:sexpr", ["( and a b c )"], ["( and c a b )"]) == 100
    assert value("productions:sexpr", ["( f a b c )"], ["( f c a b )"]) == 0
    assert value("f1:jsonl", ['["and", "a", "b"]'], ['["and", "b", "a"]']) < 100


def test_f1_of_nothing_is_perfect() -> None:
    assert value("f1:sexpr", [""], [""]) == value("productions:sexpr", ["a"], ["b"]) == 100
    assert value("f1:sexpr", ["a"], [""]) == 0


@settings(deadline=None, max_examples=50)
@given(trees(max_nodes=12), trees(max_nodes=12))
def test_f1_is_symmetric_and_1_for_equal_trees_only(left: Tree, right: Tree) -> None:
    one, other = (get_format("jsonl").write(tree) for tree in (left, right))
    for kind in ("f1:jsonl", "productions:jsonl"):
        assert value(kind, [one], [other]) == value(kind, [other], [one])
        assert value(kind, [one], [one]) == 100
        assert 0 <= value(kind, [one], [other]) <= 100
    if sorted(left.labels) != sorted(right.labels):
        assert value("f1:jsonl", [one], [other]) < 100


# Linearizations and unseen lines


def test_tokens_of_a_linearization_become_text() -> None:
    assert (
        from_linearization("lambda/3 $0/0 e/0 p/1 $0/0", "nary_dfs", "sexpr")
        == "( lambda $0 e ( p $0 ) )"
    )
    with pytest.raises(TreeError, match="is the last, but 1 slot is still open"):
        from_linearization("p/1", "nary_bfs", "sexpr")
    with pytest.raises(
        OptionError, match="^the tokens of the linearization preorder do not determine"
    ):
        from_linearization("p", "preorder", "sexpr")


@pytest.mark.parametrize("notation", FORMATS)
def test_the_malformed_line_is_malformed_everywhere(notation: str) -> None:
    assert value(f"wellformed:{notation}", [MALFORMED], [""]) == 0


def test_unseen_lines_are_those_whose_pair_is_new() -> None:
    train = (["q1", "q2", "q  3"], ["a", "b", "c"])
    assert unseen_lines(["q1", "q1", "q2", "q 3 "], ["a", "b", "a", "c"], *train) == [
        False, True, True, False,
    ]  # fmt: skip
    with pytest.raises(OptionError, match="^2 sources do not belong to 1 references$"):
        unseen_lines(["a", "b"], ["a"], [], [])
    with pytest.raises(OptionError, match="^1 sources do not belong to 0 references$"):
        unseen_lines(["a"], ["a"], ["b"], [])


@pytest.mark.parametrize("name", ["exact", "chrf", "tree:lambda", "f1:lambda", "wellformed:lambda"])
def test_scores_of_unseen_lines_are_those_of_these_lines(name: str) -> None:
    unseen = [False, True, True, False]
    (score,) = get_metric(f"{name}:unseen", unseen)(HYPOTHESES, REFERENCES)
    (wanted,) = get_metric(name)(HYPOTHESES[1:3], REFERENCES[1:3])
    assert score[:4] == (
        f"{name}:unseen", wanted.value, f"{wanted.signature}|lines:unseen", 2,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("unseen", "message"),
    [
        (None, "exact:unseen needs the training data, to know what is in it"),
        ([False], "exact:unseen: every line is in the training data, so none is left to score"),
        ([True, True], "2 sources do not belong to 1 references"),
    ],
)
def test_unseen_needs_lines(unseen: list[bool] | None, message: str) -> None:
    with pytest.raises(OptionError, match=f"^{message}$"):
        get_metric("exact:unseen", unseen)(["a"], ["a"])


OVERLAPS = [("atis_lambda_dl", 94, 448), ("geo_lambda_dl", 115, 280), ("jobs_prolog_dl", 80, 140)]


@pytest.mark.parametrize(("folder", "seen", "size"), OVERLAPS)
def test_overlaps_of_the_semantic_parsing_data(folder: str, seen: int, size: int) -> None:
    data = shared("data", folder)
    test, train = (
        [list(read_lines(data / f"{split}.{side}")) for side in ("src", "tgt")]
        for split in ("test", "train")
    )
    assert unseen_lines(*test, *train).count(False) == seen
    assert len(test[0]) == size
    notation = {"a": "sexpr", "g": "sexpr_bare", "j": "prolog"}[folder[0]]
    assert value(f"modulo:{notation}", test[1], test[1]) == 100


def test_the_channels_and_functions_of_trigger_action_programs() -> None:
    references = ["(IF (A (f x)) (B (g y)))"] * 4
    hypotheses = [
        "(IF (A (f z)) (B (g y)))",  # other arguments
        "(IF (A (h x)) (B (g y)))",  # another function
        "(IF (C (f x)) (B (g y)))",  # another channel
        "(IF (A",
    ]
    assert value("top1:ptb", hypotheses, references) == 50
    assert value("top2:ptb", hypotheses, references) == 25
    assert value("tree:ptb", hypotheses, references) == 0


@pytest.mark.parametrize(
    "linearization", ["bracketed", "bracketed_twice", "nary_dfs", "nary_bfs", "lcrs_dfs"]
)
@pytest.mark.parametrize(
    ("notation", "line"),
    [
        ("ptb", "(S (NP (D the) (N cat)) (VP (V sees) (NP (N dogs))))"),
        ("mrg", "( (S (NP (N cats)) (VP (V sleep))) )"),
    ],
)
def test_leaves_of_constituency_trees_are_words_again(
    linearization: str, notation: str, line: str
) -> None:
    tree = get_format(notation).parse(line)
    assert (
        from_linearization(
            " ".join(get_linearization(linearization).tokens(tree)), linearization, notation
        )
        == line
    )
