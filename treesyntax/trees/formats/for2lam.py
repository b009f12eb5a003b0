"""FOR and LAMBDA, the two toy programming languages of Drissi et al. (2018), one program a line.

FOR is imperative (``for a1 = 0 ; a1 < 9 ; a1 + 1 do a0 = a1 endfor``), LAMBDA functional
(``let a0 = 7 in unit``). Tokens are separated by white space. ``;``, ``+`` and ``-`` group to the
left, so only their right operands, and the argument of a9, are printed in parentheses.
"""

from __future__ import annotations

from functools import partial

from treesyntax.trees.formats.base import Format, line_records
from treesyntax.trees.formats.notation import Leaf, Notation, parse_program
from treesyntax.trees.formats.notation_printer import print_program

_LEAVES = {
    # The translation from FOR takes a8 for terms and a9 for functions, so no variable has them.
    "name": Leaf("a variable (not a8 or a9)", "a([0-7]|[1-9][0-9]+)"),
    "number": Leaf("a number", "[0-9]+"),
}
_EXPRESSIONS = {
    "variable": ["<VAR> {name}"],
    "operand": ["<VAR> {name}", "<CONST> {number}", "( {expression} )"],
    "expression": [
        "{operand}",
        "<PLUS> {expression} + {operand}",
        "<MINUS> {expression} - {operand}",
    ],
    "comparison": [
        "<EQUAL> {expression} == {expression}",
        "<LE> {expression} < {expression}",
        "<GE> {expression} > {expression}",
    ],
}
_FOR = Notation(
    "for",
    "statement",
    {
        "statement": ["{step}", "<SEQ> {statement} ; {step}"],
        "step": [
            "<IF> if {comparison} then {statement} else {statement} endif",
            "<FOR> for {name} = {expression} ; {comparison} ; {expression} do {statement} endfor",
            "<ASSIGN> {variable} = {expression}",
            "( {statement} )",
        ],
        **_EXPRESSIONS,
    },
    _LEAVES,
)
_LAMBDA = Notation(
    "lambda",
    "term",
    {
        "term": [
            "<LET> let [a8] = {term} in {term}",
            "<LET> let {variable} = {expression} in {term}",
            "<LETREC> letrec [a9] {name} = {term} in {term}",
            "<IF> if {comparison} then {term} else {term}",
            "<APP> [a9] {operand}",
            "<UNIT> unit",
        ],
        **_EXPRESSIONS,
    },
    _LEAVES,
)


def _format(grammar: Notation) -> Format:
    return Format(
        name=grammar.name,
        suffix=f".{grammar.name}",
        records=line_records,
        parse=partial(parse_program, grammar),
        write=partial(print_program, grammar),
        root=grammar.root,
        children=grammar.children,
    )


FOR, LAMBDA = _format(_FOR), _format(_LAMBDA)
