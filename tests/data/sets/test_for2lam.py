"""The notations FOR and LAMBDA and the translation between them."""

from __future__ import annotations

import gzip
import json
import pickle
import random
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import SHARED, needs_data
from support.helpers import JSONL, nested

from treesyntax.data.sets.for2lam import translate
from treesyntax.data.sets.for_programs import Style, draw_program
from treesyntax.errors import TreeError
from treesyntax.trees.formats import FORMATS, Format, RecordError
from treesyntax.trees.formats.for2lam import FOR, LAMBDA
from treesyntax.trees.tree import Tree

REFERENCE = SHARED / "data" / "for2lam_valid"
needs_reference = needs_data(REFERENCE)
programs = st.builds(
    draw_program,
    st.integers(0, 2**32).map(random.Random),
    st.sampled_from(Style),
    st.integers(0, 200),
)

EXAMPLE = "for a1 = a0 ; a0 > 10 ; a1 do a1 = a1 endfor"
EXAMPLE_TREE = [
    "<FOR>", "a1", ["<VAR>", "a0"], ["<GE>", ["<VAR>", "a0"], ["<CONST>", 10]], ["<VAR>", "a1"],
    ["<ASSIGN>", ["<VAR>", "a1"], ["<VAR>", "a1"]],
]  # fmt: skip
TRANSLATED = (
    "letrec a9 a1 = if a0 > 10 then let a8 = let a1 = a1 in unit in a9 a1 else unit in a9 a0"
)


def tree_of(nested: Any) -> Tree:
    """The tree of nested lists [label, child …]."""
    return JSONL.parse(json.dumps(nested))


def test_the_example_is_parsed_and_translated() -> None:
    tree = FOR.parse(EXAMPLE)
    assert tree == tree_of(EXAMPLE_TREE)
    assert (tree.words == -1).all()
    assert LAMBDA.write(translate(tree)) == TRANSLATED
    assert LAMBDA.parse(TRANSLATED) == translate(tree)


@pytest.mark.parametrize(
    ("text", "nested"),
    [
        ("a0 = 1 + 2 - 3", ["<MINUS>", ["<PLUS>", ["<CONST>", 1], ["<CONST>", 2]], ["<CONST>", 3]]),
        (
            "a0 = 1 - ( 2 + 3 )",
            ["<MINUS>", ["<CONST>", 1], ["<PLUS>", ["<CONST>", 2], ["<CONST>", 3]]],
        ),
        ("a0 = a12", ["<VAR>", "a12"]),
    ],
)
def test_expressions_group_to_the_left(text: str, nested: Any) -> None:
    tree = tree_of(["<ASSIGN>", ["<VAR>", "a0"], nested])
    assert FOR.parse(text) == tree
    assert FOR.write(tree) == text


def test_sequences_group_to_the_left() -> None:
    one, two, three = (["<ASSIGN>", ["<VAR>", "a0"], ["<CONST>", n]] for n in (1, 2, 3))
    left, right = ["<SEQ>", ["<SEQ>", one, two], three], ["<SEQ>", one, ["<SEQ>", two, three]]
    assert FOR.write(tree_of(left)) == "a0 = 1 ; a0 = 2 ; a0 = 3"
    assert FOR.write(tree_of(right)) == "a0 = 1 ; ( a0 = 2 ; a0 = 3 )"
    assert FOR.parse("a0 = 1 ; ( a0 = 2 ; a0 = 3 )") == tree_of(right)
    # Parentheses that change nothing are accepted, wherever the grammar has a place for them.
    assert FOR.parse(" ( ( a0 = 1 ;\ta0 = 2 ) ; ( a0 = ( 3 ) ) ) ") == tree_of(left)


def test_a_blank_line_is_the_empty_tree() -> None:
    for notation in (FOR, LAMBDA):
        assert len(notation.parse(" \t")) == 0
        assert notation.write(Tree([], [])) == ""
    assert len(translate(Tree([], []))) == 0


@pytest.mark.parametrize(
    ("notation", "text", "message"),
    [
        (FOR, "a0 =", "the program ends after token 2, expected a variable (not a8 or a9), a number or ("),
        (FOR, "a0 = 1 ;", "the program ends after token 4, expected if, for, ( or a variable (not a8 or a9)"),
        (FOR, "a8 = 1", "token 1 is 'a8', expected if, for, ( or a variable (not a8 or a9)"),
        (FOR, "( a0 = 1", "the program ends after token 4, expected )"),
        (FOR, "a0 = 1 )", "token 4 is ')', expected the end of the program"),
        (FOR, "a0 1", "token 2 is '1', expected ="),
        (FOR, "if a0 then", "token 3 is 'then', expected ==, < or >"),
        (FOR, "if 1 < 2 < 3", "token 5 is '<', expected then"),
        (FOR, "for 1 = 2", "token 2 is '1', expected a variable (not a8 or a9)"),
        (FOR, "a0 = ²", "token 3 is '²', expected a variable (not a8 or a9), a number or ("),
        (FOR, "a07 = 1", "token 1 is 'a07', expected if, for, ( or a variable (not a8 or a9)"),
        (FOR, "a number = 1", "token 1 is 'a', expected if, for, ( or a variable (not a8 or a9)"),
        (FOR, "let a0 = 1 in unit", "token 1 is 'let', expected if, for, ( or a variable (not a8 or a9)"),
        (LAMBDA, "let a9 = 1 in unit", "token 2 is 'a9', expected a variable (not a8 or a9)"),
        (LAMBDA, "let a8 = 1 in unit", "token 4 is '1', expected let, letrec, if, a9 or unit"),
        (LAMBDA, "let a0 = unit in unit", "token 4 is 'unit', expected a variable (not a8 or a9), a number or ("),
        (LAMBDA, "letrec a1 a2 = unit in unit", "token 2 is 'a1', expected a9"),
        (LAMBDA, "a9 1 + 2", "token 3 is '+', expected the end of the program"),
        (LAMBDA, "if 1 < 2 then unit", "the program ends after token 6, expected else"),
    ],
)  # fmt: skip
def test_malformed_programs_name_the_token(notation: Format, text: str, message: str) -> None:
    with pytest.raises(RecordError) as caught:
        notation.parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("nested", "message"),
    [
        (["<VAR>", "a0"], "node 0 is '<VAR>', where for expects a statement"),
        (["<LET>", "a8"], "node 0 is '<LET>', where for expects a statement"),
        (["<ASSIGN>", ["<VAR>", "a0"], "7"], "node 3 is '7', where for expects an expression"),
        (["<SEQ>", "a0"], "the children of node 0, '<SEQ>', do not fit '{statement} ; {step}'"),
        (["<ASSIGN>", ["<VAR>", "a8"], ["<CONST>", 7]],
         "the children of node 1, '<VAR>', do not fit '{name}'"),
        (["<ASSIGN>", ["<VAR>", ["a0", "a1"]], ["<CONST>", 7]],
         "the children of node 1, '<VAR>', do not fit '{name}'"),
    ],
)  # fmt: skip
def test_trees_that_are_no_programs_are_refused(nested: Any, message: str) -> None:
    with pytest.raises(TreeError) as caught:
        FOR.write(tree_of(nested))
    assert str(caught.value) == message


def test_a_let_without_a_fitting_form_is_refused() -> None:
    with pytest.raises(TreeError, match=r"do not fit 'let .a8. = .* or 'let .variable. = "):
        LAMBDA.write(tree_of(["<LET>", "a8", ["<UNIT>"]]))


def test_what_programs_have_no_place_for_is_refused() -> None:
    tree = FOR.parse("a0 = 1")
    gaps = tree.branches.copy()
    gaps[3] = 2
    for odd in (
        Tree(tree.parents, tree.labels, words=range(len(tree))),
        Tree(tree.parents, tree.labels, relations=["r"] * len(tree)),
        Tree(tree.parents, tree.labels, branches=gaps),
    ):
        with pytest.raises(TreeError, match="for has no place for relations, word positions or"):
            FOR.write(odd)


def test_formats_are_registered_and_can_go_to_other_processes() -> None:
    assert FORMATS["for"] is FOR
    assert FORMATS["lambda"] is LAMBDA
    assert pickle.loads(pickle.dumps(FOR)).parse(EXAMPLE) == FOR.parse(EXAMPLE)


@settings(deadline=None, max_examples=60)
@given(programs)
def test_programs_survive_writing_and_parsing(tree: Tree) -> None:
    assert FOR.parse(FOR.write(tree)) == tree
    translation = translate(tree)
    assert LAMBDA.parse(LAMBDA.write(translation)) == translation


@settings(deadline=None, max_examples=60)
@given(programs)
def test_programs_have_the_children_that_their_notation_names(tree: Tree) -> None:
    for notation, program in ((FOR, tree), (LAMBDA, translate(tree))):
        assert notation.root(program.labels[0])
        for label, children in zip(program.labels, program.children(), strict=True):
            wanted = notation.children(label)
            assert wanted is not None
            assert len(children) == len(wanted.child_labels)
            assert not wanted.more
            for place, child in zip(wanted.child_labels, children, strict=True):
                assert place(program.labels[child])


def slow_translation(program: Any) -> Any:
    """The five rules as they are written down, recursively, over nested lists."""
    match program:
        case ["<ASSIGN>", variable, value]:
            return ["<LET>", variable, value, "<UNIT>"]
        case ["<IF>", test, yes, no]:
            return ["<IF>", test, slow_translation(yes), slow_translation(no)]
        case ["<FOR>", name, start, test, step, body]:
            again = ["<LET>", "a8", slow_translation(body), ["<APP>", "a9", step]]
            loop = ["<IF>", test, again, "<UNIT>"]
            return ["<LETREC>", "a9", name, loop, ["<APP>", "a9", start]]
        case ["<SEQ>", ["<ASSIGN>", variable, value], rest]:
            return ["<LET>", variable, value, slow_translation(rest)]
        case ["<SEQ>", first, rest]:
            return ["<LET>", "a8", slow_translation(first), slow_translation(rest)]
    raise AssertionError(program)


@settings(deadline=None, max_examples=60)
@given(programs)
def test_translation_follows_the_rules(tree: Tree) -> None:
    assert nested(translate(tree)) == slow_translation(nested(tree))


def test_only_statements_with_all_their_children_are_translated() -> None:
    with pytest.raises(TreeError) as caught:
        translate(tree_of(["<SEQ>", ["<ASSIGN>", ["<VAR>", "a0"], ["<CONST>", 1]]]))
    assert str(caught.value) == (
        "node 0, '<SEQ>', has 1 children instead of 2; only FOR programs can be translated"
    )


@needs_reference
def test_the_reference_pairs_are_parsed_printed_and_translated() -> None:
    lines = [(REFERENCE / f"valid.{side}").read_text().splitlines() for side in ("src", "tgt")]
    with gzip.open(REFERENCE / "valid.jsonl.gz", "rt") as stream:
        expected = list(map(json.loads, stream))
    for source, target, wanted in islice(zip(*lines, expected, strict=True), 0, None, 5):
        trees = FOR.parse(source), LAMBDA.parse(target)
        assert trees == (tree_of(wanted["for"]), tree_of(wanted["lambda"])), source
        assert (FOR.write(trees[0]), LAMBDA.write(trees[1])) == (source, target)
        assert translate(trees[0]) == trees[1], source
