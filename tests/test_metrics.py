"""Metrics and ``treesyntax score``."""

from __future__ import annotations

import json
from collections import Counter
from itertools import permutations
from pathlib import Path

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import trees

from treesyntax import __version__
from treesyntax.cli import main
from treesyntax.equivalence import CALCULI, equivalent
from treesyntax.errors import OptionError, TreeError
from treesyntax.files import read_lines
from treesyntax.formats import FORMATS, get_format
from treesyntax.linearize import get_view
from treesyntax.metrics import ITEM_METRICS, METRICS, get_metric, unseen_lines
from treesyntax.tree import Tree
from treesyntax.tree_scores import MALFORMED, from_view, modulo_items

REFERENCES = ["let a0 = 7 in unit", "let a1 = 2 in unit", "let a0 = a1 - 3 in unit", "unit"]
HYPOTHESES = ["let a0 =  7 in unit ", "let a1 = 2 in", "let a0 = ( a1 ) - 3 in unit", "let a0"]

lines = st.lists(st.text("ab ", max_size=5), min_size=1, max_size=6)


OF_ANY = ("tree", "program", "wellformed", "f1", "productions")


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
    assert message == (
        "no metric is named 'tree:lamda'; there are bleu, chrf, ter, exact, tree:NOTATION, "
        "program:NOTATION, wellformed:NOTATION, top1:NOTATION, top2:NOTATION, f1:NOTATION, productions:NOTATION with NOTATION "
        f"one of {', '.join(FORMATS)}, modulo:sexpr, modulo:sexpr_bare, modulo:prolog; "
        "each may end in :unseen"
    )


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


def test_program_accuracy_is_equality_of_trees() -> None:
    (score,) = METRICS["program:lambda"](HYPOTHESES, REFERENCES)
    assert score == ("program:lambda", 50.0, f"program:lambda|v:{__version__}", 4)


# Order and names


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("( and ( p $0 ) ( q c ) )", "( and ( q c ) ( p $0 ) )", True),
        ("( and a b b )", "( and b a b )", True),
        ("( and a b b )", "( and a a b )", False),
        ("( and a ( or b c ) )", "( and ( or c b ) a )", True),
        ("( and a b )", "( or a b )", False),
        ("( p a b )", "( p b a )", False),
        ("( lambda $0 e ( p $0 ) )", "( lambda $1 e ( p $1 ) )", True),
        ("( lambda $0 e ( p $0 ) )", "( lambda $1 e ( p $0 ) )", False),
        ("( p $0 )", "( p $1 )", False),
        ("( lambda $0 e ( exists $1 ( p $0 $1 ) ) )", "( lambda $1 e ( exists $0 ( p $1 $0 ) ) )", True),
        ("( lambda $0 e ( exists $1 ( p $0 $1 ) ) )", "( lambda $1 e ( exists $0 ( p $0 $1 ) ) )", False),
        ("( lambda $0 e ( exists $0 ( p $0 ) ) )", "( lambda $0 e ( exists $1 ( p $1 ) ) )", True),
        ("( and ( exists $0 ( p $0 ) ) ( q $0 ) )", "( and ( q $0 ) ( exists $1 ( p $1 ) ) )", True),
        ("( argmax $0 ( and ( p $0 ) ( q $0 ) ) ( r $0 ) )",
         "( argmax $2 ( and ( q $2 ) ( p $2 ) ) ( r $2 ) )", True),
        ("( argmax $0 ( p $0 ) ( r $0 ) )", "( argmax $0 ( r $0 ) ( p $0 ) )", False),
        ("( and ( exists $0 ( and ( p $0 ) ( r $0 ) ) ) ( exists $1 ( q $1 ) ) )",
         "( and ( exists $0 ( q $0 ) ) ( exists $1 ( and ( r $1 ) ( p $1 ) ) ) )", True),
        ("( f $0 ( p $0 ) )", "( f $1 ( p $1 ) )", False),
    ],
)  # fmt: skip
def test_logical_forms_up_to_order_and_names(left: str, right: str, same: bool) -> None:
    assert value("modulo:sexpr", [left], [right]) == 100 * same
    assert value("modulo:sexpr_bare", [left[1:-1]], [right[1:-1]]) == 100 * same
    assert value("modulo:sexpr", [left], [left]) == 100


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("job(ANS), p(ANS, A), q(A)", "q(B), p(ANS, B), job(ANS)", True),
        ("job(ANS), p(ANS, A)", "job(A), p(A, ANS)", False),
        ("p(A, B), p(B, A)", "p(X, Y), p(Y, X)", True),
        ("p(A, B), p(B, C)", "p(A, B), p(C, B)", False),
        ("p(A, A)", "p(A, B)", False),
        ("p(A), p(B)", "p(A), p(A)", False),
        ("p(_), q(_)", "p(A), q(B)", True),
        ("p(_), q(_)", "p(A), q(A)", False),
        ("p(a) ; q(b)", "q(b) ; p(a)", True),
        ("\\+ (p(A), q(A))", "\\+ (q(B), p(B))", True),
        ("p('A')", "p('B')", False),
        # Two rings of three against one of six: nothing but trying tells them apart.
        ("p(A,B), p(B,C), p(C,A), p(D,E), p(E,F), p(F,D)",
         "p(A,B), p(B,C), p(C,D), p(D,E), p(E,F), p(F,A)", False),
        ("p(A,B), p(B,C), p(C,A), p(D,E), p(E,F), p(F,D)",
         "p(A,C), p(C,E), p(E,A), p(B,D), p(D,F), p(F,B)", True),
    ],
)  # fmt: skip
def test_goals_up_to_order_and_names(left: str, right: str, same: bool) -> None:
    assert value("modulo:prolog", [left], [right]) == 100 * same
    assert value("modulo:prolog", [right], [left]) == 100 * same


Nested = tuple[str, tuple["Nested", ...]]


def nested(tree: Tree, node: int = 0) -> Nested:
    return tree.labels[node], tuple(nested(tree, child) for child in tree.children()[node])


def alike(left: Nested, right: Nested, pairs: tuple[tuple[str, str], ...]) -> bool:
    """Equality up to order and names by definition; ``pairs`` are bound names, innermost first."""
    (one, left_below), (other, right_below) = left, right
    if len(left_below) != len(right_below):
        return False
    if not left_below and one[0] == other[0] == "$":
        first = next((p for p in pairs if one == p[0] or other == p[1]), None)
        return one == other if first is None else first == (one, other)
    if one != other:
        return False
    bound = [below[0] for below in (left_below, right_below) if below and not below[0][1]]
    if one == "exists" and len(bound) == 2 and all(name[0] == "$" for name, _ in bound):
        pairs = ((bound[0][0], bound[1][0]), *pairs)
    orders = permutations(right_below) if one in ("and", "or") else [right_below]
    return any(
        all(alike(a, b, pairs) for a, b in zip(left_below, order, strict=True)) for order in orders
    )


FORM_LABELS = st.sampled_from(["and", "and", "or", "exists", "exists", "p", "$0", "$1", "$2", "c"])


@settings(deadline=None, max_examples=300)
@given(st.data(), trees(labels=FORM_LABELS, max_nodes=9))
def test_order_and_names_by_definition(data: st.DataObject, left: Tree) -> None:
    # A shuffled and renamed copy, right or wrong: the definition tells.
    names = data.draw(st.permutations(["$0", "$1", "$2"]))
    changed = data.draw(st.lists(st.booleans(), min_size=9, max_size=9))
    labels = [
        names[int(label[1])] if label[0] == "$" and changed[node] else label
        for node, label in enumerate(left.labels)
    ]
    parents = data.draw(st.sampled_from([left, *_with_other_order(left)])).parents
    right = _with_other_order(Tree(left.parents, labels))
    other = data.draw(st.sampled_from([Tree(left.parents, labels), Tree(parents, labels), *right]))
    calculus = CALCULI["sexpr"]
    assert equivalent(left, other, calculus) == alike(nested(left), nested(other), ())
    assert equivalent(left, left, calculus)


def _with_other_order(tree: Tree) -> list[Tree]:
    """The tree with the children of one node reversed, for every node."""
    found = []
    for turned, below in enumerate(tree.children()):
        if len(below) < 2:
            continue
        order, stack = [], [(0, -1)]
        while stack:
            node, parent = stack.pop()
            children = tree.children()[node]
            stack += [(c, len(order)) for c in (children if node == turned else children[::-1])]
            order.append((parent, tree.labels[node]))
        found.append(Tree([parent for parent, _ in order], [label for _, label in order]))
    return found


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.sampled_from("ABCD"), st.sampled_from("ABCD")), min_size=2, max_size=5),
    st.data(),
)
def test_goals_by_trying_all_renamings(edges: list[tuple[str, str]], data: st.DataObject) -> None:
    drawn = data.draw(st.permutations(edges))
    names = dict(zip("ABCD", data.draw(st.permutations("WXYZ")), strict=True))
    other = [(names[a], names[b]) for a, b in drawn]
    if data.draw(st.booleans()):
        other[0] = (other[0][1], other[0][0])
    wanted = any(
        Counter((new["ABCD".index(a)], new["ABCD".index(b)]) for a, b in edges) == Counter(other)
        for new in permutations("WXYZ")
    )
    texts = [", ".join(f"p({a}, {b})" for a, b in goal) for goal in (edges, other)]
    assert value("modulo:prolog", texts[:1], texts[1:]) == 100 * wanted


def test_many_like_variables_and_deep_forms_take_no_time() -> None:
    goal = ", ".join(f"p(A{n}, B{n})" for n in range(60))
    assert value("modulo:prolog", [goal], [goal.replace("A", "C")]) == 100
    deep = "( and a " * 10_000 + "a" + " )" * 10_000
    bound = "( exists $0 " * 10_000 + "$0" + " )" * 10_000
    assert value("modulo:sexpr", [deep, bound], [deep, bound.replace("$0", "$1")]) == 100


def test_other_notations_have_no_such_freedom() -> None:
    with pytest.raises(OptionError, match="no metric is named 'modulo:ptb'"):
        get_metric("modulo:ptb")
    with pytest.raises(OptionError, match="^ptb has no conjuncts and bound variables; sexpr, sex"):
        modulo_items(["(S a)"], ["(S a)"], "ptb")


# F1


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
    assert score == ("f1:ptb", pytest.approx(600 / 11), f"f1:ptb|avg:micro|v:{__version__}", 2)
    assert value("productions:ptb", hypotheses, references) == pytest.approx(400 / 7)


def test_the_place_of_a_conjunct_does_not_count_but_that_of_an_argument_does() -> None:
    assert value("f1:sexpr", ["( and a b c )"], ["( and c a b )"]) == 100
    assert value("f1:sexpr", ["( f a b c )"], ["( f c a b )"]) == 25
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


# Views and unseen lines


def test_tokens_of_a_view_become_text() -> None:
    assert (
        from_view("lambda/3 $0/0 e/0 p/1 $0/0", "nary_dfs", "sexpr") == "( lambda $0 e ( p $0 ) )"
    )
    with pytest.raises(TreeError, match="is the last, but 1 slot is still open"):
        from_view("p/1", "nary_bfs", "sexpr")
    with pytest.raises(OptionError, match="^the tokens of the view preorder do not determine"):
        from_view("p", "preorder", "sexpr")


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
    assert score == (
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
    data = Path(__file__).parents[2] / "shared" / "data" / folder
    if not data.is_dir():
        pytest.skip(f"the data of {folder} is not there")
    test, train = (
        [list(read_lines(data / f"{split}.{side}")) for side in ("src", "tgt")]
        for split in ("test", "train")
    )
    assert unseen_lines(*test, *train).count(False) == seen
    assert len(test[0]) == size
    notation = {"a": "sexpr", "g": "sexpr_bare", "j": "prolog"}[folder[0]]
    assert value(f"modulo:{notation}", test[1], test[1]) == 100


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


def unseen_files(tmp_path: Path, train_target: str = "a\nb\n") -> list[str]:
    texts = {"source": "x\ny\n", "train-source": "x\nz\n", "train-target": train_target}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return [part for name in texts for part in (f"--{name}", str(tmp_path / name))]


def test_the_command_scores_unseen_lines_beside_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = ["--metric", "exact", "--metric", "exact:unseen", "--json"]
    assert score(tmp_path, "a\nb\n", "a\nc\n", *metrics, *unseen_files(tmp_path)) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(s["metric"], s["value"], s["n"]) for s in found] == [
        ("exact", 50.0, 2), ("exact:unseen", 0.0, 1),
    ]  # fmt: skip
    assert found[1]["signature"] == f"exact|tok:space|v:{__version__}|lines:unseen"


def test_the_command_refuses_unseen_without_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metric = ["--metric", "exact:unseen"]
    assert score(tmp_path, "a\nb\n", "a\nc\n", *metric) == 2
    assert capsys.readouterr().err == "treesyntax score: metrics with :unseen need --source\n"
    assert score(tmp_path, "a\n", "a\n", *metric, *unseen_files(tmp_path)) == 2
    assert f"{tmp_path}/source: has 2 lines, but {tmp_path}/ref has 1; give the files of the" in (
        capsys.readouterr().err
    )
    assert score(tmp_path, "a\nb\n", "a\nc\n", *metric, *unseen_files(tmp_path, "a\n")) == 2
    assert "train-source: has 2 lines, but" in capsys.readouterr().err
    assert score(tmp_path, "a\n", "a\n", "--metric", "exakt:unseen") == 2
    assert "no metric is named 'exakt'" in capsys.readouterr().err


def test_the_command_refuses_unknown_metrics_and_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert score(tmp_path, "a\n", "a\n", "--metric", "accuracy") == 2
    assert "no metric is named 'accuracy'; there are bleu," in capsys.readouterr().err
    assert main(["score", "--reference", str(tmp_path / "x"), "--hypothesis", "y"]) == 2
    assert "x: cannot be read (No such file or directory)" in capsys.readouterr().err


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


@pytest.mark.parametrize("view", ["bracketed", "nary_dfs", "nary_bfs", "lcrs_dfs"])
@pytest.mark.parametrize(
    ("notation", "line"),
    [
        ("ptb", "(S (NP (D the) (N cat)) (VP (V sees) (NP (N dogs))))"),
        ("mrg", "( (S (NP (N cats)) (VP (V sleep))) )"),
    ],
)
def test_leaves_of_constituency_trees_are_words_again(view: str, notation: str, line: str) -> None:
    tree = get_format(notation).parse(line)
    assert from_view(" ".join(get_view(view).tokens(tree)), view, notation) == line
