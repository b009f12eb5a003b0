"""Random FOR programs in two styles.

"drissi" follows the generator of Drissi et al. (2018, "Program language translation using a
grammar-driven tree-to-tree model"). "chen" has the forms of Chen et al. (2018, "Tree-to-tree
neural networks for program translation", SYN-S and SYN-L): sequences and expressions grow to the
left, so right operands are a variable or constant. That paper gives the grammar and the mean
lengths (20 and 50 tokens) but no probabilities; those are ours.

`declared` counts the variables that may be read. A program begins with one, a0.
Functions recurse over a size that shrinks by a factor, so their depth is logarithmic in it.
"""

from __future__ import annotations

import random
from enum import StrEnum

from treesyntax.trees.formats.notation import Node, to_tree
from treesyntax.trees.tree import Tree

LARGEST_CONSTANT = 10

_KINDS = ("<ASSIGN>", "<IF>", "<FOR>", "<SEQ>")
_COMPARISONS = ("<EQUAL>", "<LE>", "<GE>")
_OPERATORS = ("<PLUS>", "<MINUS>")
# The usual length in tokens of a step of the style chen whose bodies are single assignments.
_ASSIGN_COST, _IF_COST, _FOR_COST = 4, 16, 19


class Style(StrEnum):
    """The distribution that programs are drawn from."""

    DRISSI = "drissi"
    CHEN = "chen"


def draw_program(rng: random.Random, style: Style, size: int) -> Tree:
    """A random FOR program.

    Args:
        rng: the only source of randomness.
        style: the distribution.
        size: drissi: the n that the program starts with; chen: the middle of the range from
            which its budget in tokens is drawn evenly, 3 size / 4 to 5 size / 4.
    """
    if style is Style.DRISSI:
        program, _ = _drissi_statement(rng, size, declared=1)
    else:
        program = _chen_statement(rng, rng.randint(size * 3 // 4, size * 5 // 4), declared=1)
    return to_tree(program)


def variable_name(index: int) -> str:
    """The name of a variable by its number; the translation to LAMBDA takes a8 and a9 for itself."""
    return f"a{index if index < 8 else index + 2}"


def _name(index: int) -> Node:
    return Node(variable_name(index))


def _variable(index: int) -> Node:
    return Node("<VAR>", (_name(index),))


def _operand(rng: random.Random, declared: int) -> Node:
    if rng.randrange(2):
        return _variable(rng.randrange(declared))
    return Node("<CONST>", (Node(str(rng.randint(0, LARGEST_CONSTANT))),))


def _target(rng: random.Random, declared: int, new: float) -> tuple[int, int]:
    """The variable to set, a new one with probability `new`, and the number declared then."""
    if rng.random() < new:
        return declared, declared + 1
    return rng.randrange(declared), declared


def _drissi_statement(rng: random.Random, size: int, declared: int) -> tuple[Node, int]:
    """A statement and the number of variables declared after it."""
    kind = rng.choices(_KINDS, (2, 1, 1, 1))[0] if size > 0 else "<ASSIGN>"
    if kind == "<ASSIGN>":
        value = _drissi_expression(rng, 3, declared)
        index, declared = _target(rng, declared, new=1 / 6)
        return Node(kind, (_variable(index), value)), declared
    if kind == "<SEQ>":
        first, declared = _drissi_statement(rng, size // 2, declared)
        second, declared = _drissi_statement(rng, size // 2 - 1, declared)
        return Node(kind, (first, second)), declared
    if kind == "<IF>":
        test = _drissi_comparison(rng, size // 3 - 1, declared)
        branches = (_drissi_statement(rng, size // 3 - 2, declared)[0] for _ in range(2))
        return Node(kind, (test, *branches)), declared
    start = _drissi_expression(rng, size // 4 - 1, declared)
    index, inside = _target(rng, declared, new=4 / 5)
    test = _drissi_comparison(rng, size // 4, inside)
    step = _drissi_expression(rng, size // 4, inside)
    body, _ = _drissi_statement(rng, size // 4 - 1, inside)
    return Node(kind, (_name(index), start, test, step, body)), declared


def _drissi_comparison(rng: random.Random, size: int, declared: int) -> Node:
    label = rng.choice(_COMPARISONS)
    operands = (_drissi_expression(rng, size // 3 - 1, declared) for _ in range(2))
    return Node(label, tuple(operands))


def _drissi_expression(rng: random.Random, size: int, declared: int) -> Node:
    if size <= 0 or rng.randrange(2):
        return _operand(rng, declared)
    label = rng.choice(_OPERATORS)
    left = _drissi_expression(rng, size // 2 - 1, declared)
    return Node(label, (left, _drissi_expression(rng, size // 2 - 2, declared)))


def _chen_statement(rng: random.Random, budget: int, declared: int) -> Node:
    """``Seq ::= Single | Seq ; Single`` of about `budget` tokens; only its own steps declare."""
    statement, declared, cost = _chen_step(rng, budget, declared)
    budget -= cost
    while budget > _ASSIGN_COST:
        step, declared, cost = _chen_step(rng, budget - 1, declared)
        statement = Node("<SEQ>", (statement, step))
        budget -= cost + 1
    return statement


def _chen_step(rng: random.Random, budget: int, declared: int) -> tuple[Node, int, int]:
    """A step, the number of variables declared after it, and about how many tokens it has."""
    costs = {"<ASSIGN>": _ASSIGN_COST, "<IF>": _IF_COST, "<FOR>": _FOR_COST}
    kinds = [kind for kind, cost in costs.items() if cost <= budget]
    kind = rng.choice(kinds or ["<ASSIGN>"])
    if kind == "<ASSIGN>":
        value = _chen_expression(rng, declared)
        index, declared = _target(rng, declared, new=1 / 6)
        return Node(kind, (_variable(index), value)), declared, _ASSIGN_COST
    # Three quarters at most, so that nesting is logarithmic in the budget.
    cost = rng.randint(costs[kind], max(costs[kind], budget * 3 // 4))
    spare = cost - costs[kind]
    if kind == "<IF>":
        test = _chen_comparison(rng, declared)
        share = _ASSIGN_COST + spare // 2
        branches = (_chen_statement(rng, share, declared) for _ in range(2))
        return Node(kind, (test, *branches)), declared, cost
    start = _chen_expression(rng, declared)
    index, inside = _target(rng, declared, new=4 / 5)
    test, step = _chen_comparison(rng, inside), _chen_expression(rng, inside)
    body = _chen_statement(rng, _ASSIGN_COST + spare, inside)
    return Node(kind, (_name(index), start, test, step, body)), declared, cost


def _chen_comparison(rng: random.Random, declared: int) -> Node:
    label = rng.choice(_COMPARISONS)
    return Node(label, tuple(_chen_expression(rng, declared) for _ in range(2)))


def _chen_expression(rng: random.Random, declared: int) -> Node:
    """``Expr ::= Var | Const | Expr + Var | Expr - Const | …``: an operand ends 3 in 4."""
    expression = _operand(rng, declared)
    while rng.randrange(4) == 0:
        expression = Node(rng.choice(_OPERATORS), (expression, _operand(rng, declared)))
    return expression
