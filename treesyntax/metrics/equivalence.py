"""Logical forms that differ only in the order of conjuncts and the names of bound variables.

Two kinds of variables. In the λ-calculus a binder's first child is its variable, bound in the
binder's other children; each occurrence is replaced by the number of binders between the two (de
Bruijn 1972), which no order of conjuncts changes. In Prolog a name means the same variable in the
whole goal, so a one-to-one map between the variables of both goals is searched for: variables
are coloured by the places where they occur, until the colours change no more
(Weisfeiler & Leman 1968); variables that still look alike are tried in turn. No way is known that is
quick for all goals (it is as hard as comparing graphs), so the search ends undecided after `EFFORT`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from treesyntax.trees.tree import Tree


class Calculus(NamedTuple):
    """Which labels are variables, and where the order of children has no meaning, whatever their types (`untyped`).

    Attributes:
        variable: matches the label of a leaf that is a variable.
        binders: labels whose first child is the variable that they bind; a variable without
            binder is a constant. Empty if a variable is bound by the whole form.
        unordered: labels whose children may come in any order.
        fixed: variables that keep their name, as the one that the answer is.
        anonymous: the name that means another variable each time.
    """

    variable: re.Pattern[str]
    binders: frozenset[str]
    unordered: frozenset[str]
    fixed: str = ""
    anonymous: str = ""


LAMBDA_CALCULUS = Calculus(
    re.compile(r"\$\w+"),
    frozenset(
        ("lambda", "exists", "forall", "the", "count", "sum", "max", "min", "argmax", "argmin")
    ),
    frozenset({"and", "or"}),
)
PROLOG = Calculus(
    re.compile(r"[A-Z_]\w*"), frozenset(), frozenset({",", ";"}), fixed="ANS", anonymous="_"
)
# By notation: the λ-calculus of ATIS and GeoQuery, the goals of Jobs640 (Dong & Lapata 2016).
CALCULI = {"sexpr": LAMBDA_CALCULUS, "sexpr_bare": LAMBDA_CALCULUS, "prolog": PROLOG}
NO_NAME = re.compile(r"(?!)")

NO_VARIABLE = -1

EFFORT = 200_000
"""Nodes that the comparison of two forms may look at, about half a second."""
LEAST_ROUNDS = 4
"""Refinements of the colours that two forms of any size get."""


def untyped(label: str) -> str:
    """A label without its type, which GeoQuery's first forms have: ``and`` of ``and:<t*,t>``, ``$0`` of ``$0:e``."""
    return label.partition(":")[0] or label


def with_names(calculus: Calculus) -> Calculus:
    """The same, but every name counts: nothing but order is without meaning."""
    return calculus._replace(variable=NO_NAME, binders=frozenset())


class _UndecidedError(Exception):
    """The effort was not enough."""


class _Form(NamedTuple):
    """A tree whose bound variables have lost their names.

    Attributes:
        labels: a label a node; that of a variable is what is known without its colour.
        variables: for each node the number of the variable whose colour counts, or -1.
        children: of each node.
        parents: of each node, -1 for the root.
        unordered: whether the order of a node's children has no meaning.
    """

    labels: list[str]
    variables: list[int]
    children: list[list[int]]
    parents: list[int]
    unordered: list[bool]


def equivalent(left: Tree, right: Tree, calculus: Calculus) -> bool | None:
    """Whether renaming bound variables and reordering children makes one tree the other.

    Linear in the nodes, up to sorting, for bound variables with binders; for others it depends on
    how much they look alike. None if that is not known after `EFFORT`.
    """
    if len(left) != len(right):
        return False
    if left == right:
        return True
    forms = (_form(left, calculus), _form(right, calculus))
    known = [Counter(zip(form.labels, map(bool, form.children), strict=True)) for form in forms]
    size = max(forms[0].variables, default=NO_VARIABLE) + 1
    if known[0] != known[1] or size != max(forms[1].variables, default=NO_VARIABLE) + 1:
        return False
    rounds = iter(range(max(LEAST_ROUNDS, EFFORT // (2 * max(len(left), 1)))))
    branches = [iter([([0] * size, [0] * size)])]
    while branches:
        colours = next(branches[-1], None)
        if colours is None:
            branches.pop()
            continue
        try:
            refined = _refined(forms, colours, rounds)
        except _UndecidedError:
            return None
        if refined is None:
            continue
        alike = [colour for colour, number in Counter(refined[0]).items() if number > 1]
        if not alike:
            return True
        branches.append(_partners(*refined, alike[0]))
    return False


def _partners(
    left: list[int], right: list[int], colour: int
) -> Iterator[tuple[list[int], list[int]]]:
    """The colours after each choice of a partner for the first variable of a colour."""
    first = _marked(left, left.index(colour))
    for number, partner_colour in enumerate(right):
        if partner_colour == colour:
            yield first, _marked(right, number)


def _marked(colours: list[int], number: int) -> list[int]:
    return [-1 if index == number else colour for index, colour in enumerate(colours)]


def _refined(
    forms: tuple[_Form, _Form], colours: tuple[list[int], list[int]], rounds: Iterator[int]
) -> tuple[list[int], list[int]] | None:
    """Colours that occurrences cannot refine any more; None if they tell the forms apart."""
    left, right = colours
    for _ in rounds:
        numbers: dict[object, int] = {}
        codes = [
            _codes(form, form_colours, numbers)
            for form, form_colours in zip(forms, (left, right), strict=True)
        ]
        if codes[0][:1] != codes[1][:1]:
            return None
        classes = len(set(left))
        left, right = (
            _recoloured(form, form_colours, code, numbers)
            for form, form_colours, code in zip(forms, (left, right), codes, strict=True)
        )
        if len(set(left)) == classes:
            return left, right
    raise _UndecidedError


def _codes(form: _Form, colours: list[int], numbers: dict[object, int]) -> list[int]:
    """A number for each node's subtree, equal for those that are equal up to order."""
    codes = [0] * len(form.labels)
    for node in range(len(codes) - 1, -1, -1):
        below = [codes[child] for child in form.children[node]]
        variable = form.variables[node]
        colour = None if variable == NO_VARIABLE else colours[variable]
        ordered_codes = tuple(sorted(below) if form.unordered[node] else below)
        codes[node] = numbers.setdefault((form.labels[node], colour, ordered_codes), len(numbers))
    return codes


def _recoloured(
    form: _Form, colours: list[int], codes: list[int], numbers: dict[object, int]
) -> list[int]:
    """Each variable's colour from its old one and the places where it occurs."""
    occurrences: list[list[int]] = [[] for _ in colours]
    contexts: list[int] = []
    positions = [0] * len(codes)
    for node, parent in enumerate(form.parents):
        above, index = -1, 0
        if parent >= 0:
            above = contexts[parent]
            index = NO_VARIABLE if form.unordered[parent] else positions[parent]
            positions[parent] += 1
        contexts.append(numbers.setdefault((above, index, codes[node], "place"), len(numbers)))
        if form.variables[node] != NO_VARIABLE:
            occurrences[form.variables[node]].append(contexts[node])
    return [
        numbers.setdefault((colour, tuple(sorted(variable_contexts)), "variable"), len(numbers))
        for colour, variable_contexts in zip(colours, occurrences, strict=True)
    ]


def _form(tree: Tree, calculus: Calculus) -> _Form:
    named = _with_binders if calculus.binders else _without_binders
    labels, variables = named(tree, calculus)
    unordered = [untyped(label) in calculus.unordered for label in tree.labels]
    return _Form(labels, variables, tree.children(), tree.parents.tolist(), unordered)


def _without_binders(tree: Tree, calculus: Calculus) -> tuple[list[str], list[int]]:
    numbers: dict[object, int] = {}
    labels, variables = list(tree.labels), [NO_VARIABLE] * len(tree)
    for node in _variable_leaves(tree, calculus):
        label = labels[node]
        if label != calculus.fixed:
            name = node if label == calculus.anonymous else label
            variables[node] = numbers.setdefault(name, len(numbers))
            labels[node] = ""
    return labels, variables


def _with_binders(tree: Tree, calculus: Calculus) -> tuple[list[str], list[int]]:
    labels, leaves = list(tree.labels), set(_variable_leaves(tree, calculus))
    parents, last = tree.parents.tolist(), tree.last_descendants.tolist()
    binders = [0] * len(tree)  # above each node, with the node itself
    is_binder = [untyped(label) in calculus.binders for label in tree.labels]
    scopes: dict[str, list[tuple[int, int]]] = {}  # last node and number of binders
    for node, parent in enumerate(parents):
        above = binders[parent] if parent >= 0 else 0
        binds = node + 1 in leaves and parents[node + 1] == node
        binders[node] = above + (binds and is_binder[node])
        if node not in leaves:
            continue
        name = untyped(tree.labels[node])
        open_scopes = scopes.setdefault(name, [])
        while open_scopes and open_scopes[-1][0] < node:
            open_scopes.pop()
        if parent == node - 1 and parent >= 0 and is_binder[parent]:
            open_scopes.append((last[parent], above))
        if open_scopes:
            # No variable's name is empty, so no label of the text can look like this.
            labels[node] = f"$ {above - open_scopes[-1][1]}{labels[node].removeprefix(name)}"
    return labels, [NO_VARIABLE] * len(tree)


def _variable_leaves(tree: Tree, calculus: Calculus) -> list[int]:
    return [node for node in tree.leaves if calculus.variable.fullmatch(untyped(tree.labels[node]))]
