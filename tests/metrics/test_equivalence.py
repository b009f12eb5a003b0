"""Logical forms and goals up to the order of conjuncts and the names of variables."""

from __future__ import annotations

import time
from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import value
from support.strategies import trees

from treesyntax.errors import OptionError
from treesyntax.metrics import get_metric
from treesyntax.metrics.equivalence import CALCULI, equivalent, with_names
from treesyntax.metrics.trees import modulo_items
from treesyntax.trees.tree import Tree


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
        ("( lambda $0:e ( and:<t*,t> ( p:<e,t> $0 ) ( q $0 ) ) )",
         "( lambda $1:e ( and:<t*,t> ( q $1 ) ( p:<e,t> $1 ) ) )", True),
        ("( lambda $0:e ( p $0 ) )", "( lambda $0:i ( p $0 ) )", False),
        ("( and:<t*,t> a b )", "( or:<t*,t> b a )", False),
        ("( p:t a b )", "( p:t b a )", False),
    ],
)  # fmt: skip
def test_logical_forms_up_to_order_and_names(left: str, right: str, same: bool) -> None:
    assert value("modulo:sexpr", [left], [right]) == 100 * same
    assert value("modulo:sexpr_bare", [left[1:-1]], [right[1:-1]]) == 100 * same
    assert value("modulo:sexpr", [left], [left]) == 100


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("( and ( p $0 ) ( q c ) )", "( and ( q c ) ( p $0 ) )", True),
        ("( and a ( or b c ) )", "( and ( or c b ) a )", True),
        ("( and:<t*,t> a b )", "( and:<t*,t> b a )", True),
        ("( and a b b )", "( and a a b )", False),
        ("( p a b )", "( p b a )", False),
        ("( lambda $0 e ( p $0 ) )", "( lambda $1 e ( p $1 ) )", False),
    ],
)
def test_logical_forms_up_to_order(left: str, right: str, same: bool) -> None:
    assert value("unordered:sexpr", [left], [right]) == 100 * same
    assert value("unordered:sexpr_bare", [left[1:-1]], [right[1:-1]]) == 100 * same


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


def in_order(form: Nested) -> Nested:
    """The form with the conjuncts of every node sorted, as Dong & Lapata 2016 do."""
    label, below = form
    children = [in_order(child) for child in below]
    return label, tuple(sorted(children) if label in ("and", "or") else children)


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
    ordered = in_order(nested(left)) == in_order(nested(other))
    assert equivalent(left, other, with_names(calculus)) == ordered
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


def ring(names: list[str]) -> str:
    return ", ".join(f"p({a}, {b})" for a, b in zip(names, names[1:] + names[:1], strict=True))


@pytest.mark.parametrize("rings", [3, 4, 50])
def test_what_takes_too_long_is_undecided_and_counted(rings: int) -> None:
    """Five-cycles and a hexagon against five-cycles and two triangles: trying takes minutes."""
    pentagons = [ring([f"V{n}_{k}" for k in range(5)]) for n in range(rings)]
    six = [*pentagons, ring([f"X{k}" for k in range(6)])]
    twice_three = [*pentagons, ring(["Y0", "Y1", "Y2"]), ring(["Z0", "Z1", "Z2"])]
    goals = [", ".join(parts) for parts in (six, twice_three)]
    begin = time.process_time()
    (score,) = get_metric("modulo:prolog")([goals[0], "p(A)"], [goals[1], "p(B)"])
    assert time.process_time() - begin < 5
    assert (score.value, score.n) == (50, 2)
    assert score.signature.startswith("modulo:prolog|undecided:1|v:")
    assert modulo_items(goals, goals[::-1], "prolog") == [None, None]
    assert modulo_items(goals, goals, "prolog") == [True, True]


def test_other_notations_have_no_such_freedom() -> None:
    with pytest.raises(OptionError, match="no metric is named 'modulo:ptb'"):
        get_metric("modulo:ptb")
    with pytest.raises(OptionError, match="^ptb has no conjuncts and bound variables; sexpr, sex"):
        modulo_items(["(S a)"], ["(S a)"], "ptb")
