"""CoffeeScript and JavaScript as lines of tokens with their parse trees."""

from __future__ import annotations

import gzip
import json
import pickle
import random
import re
from itertools import islice

import pytest
from reliability.figures import amount
from support import SHARED, needs_data

from treesyntax.data.sets.coffeescript_programs import Vocabulary, draw_tokens
from treesyntax.data.sets.for_to_lambda import translate
from treesyntax.errors import OptionError, TreeError
from treesyntax.trees.formats import FORMATS, Format, javascript
from treesyntax.trees.formats.base import RecordError
from treesyntax.trees.formats.coffeescript import COFFEESCRIPT
from treesyntax.trees.formats.for2lam import FOR, LAMBDA
from treesyntax.trees.formats.javascript import JAVASCRIPT
from treesyntax.trees.formats.jsonl import JSONL
from treesyntax.trees.formats.tokens import coffeescript_source, javascript_tokens
from treesyntax.trees.linearizations import LINEARIZATIONS, get_linearization
from treesyntax.trees.tree import Tree

REFERENCE = SHARED / "data" / "cs_js_drissi"
needs_reference = needs_data(REFERENCE)
DEEP = amount(3_000, 10_000)  # Python itself nests 1,000 calls


def nested(notation: Format, text: str) -> object:
    return json.loads(JSONL.write(notation.parse(text)))


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a0", "a0"),
        ("a0 = 1", ["<ASSIGN>", "a0", "=", "1"]),
        ("1 + 2 * 3", ["<PLUS>", "1", "+", ["<TIMES>", "2", "*", "3"]]),
        ("1 + 2 + 3", ["<PLUS>", ["<PLUS>", "1", "+", "2"], "+", "3"]),
        ("1 == 2 + 3", ["<EQUAL>", "1", "==", ["<PLUS>", "2", "+", "3"]]),
        ("( 1 )", ["<PARENTHESES>", "(", "1", ")"]),
        ("1 <NL> 2 <NL> 3", ["<BLOCK>", "1", "<NL>", "2", "<NL>", "3"]),
        ("if 1 <IND> 2 <DED>", ["<IF>", "if", "1", ["<INDENTED>", "<IND>", "2", "<DED>"]]),
        (
            "if 1 <IND> 2 <DED> <NL> else <IND> 3 <DED>",
            [
                "<ELSE>", "if", "1", ["<INDENTED>", "<IND>", "2", "<DED>"], "<NL>", "else",
                ["<INDENTED>", "<IND>", "3", "<DED>"],
            ],
        ),
        ("while 1 <IND> 2 <DED>", ["<WHILE>", "while", "1", ["<INDENTED>", "<IND>", "2", "<DED>"]]),
        (
            "if 1 then 2 else 3 if 4",
            ["<THEN>", "if", "1", "then", "2", "else", ["<POSTFIX_IF>", "3", "if", "4"]],
        ),
        # As the compiler groups them, see test_coffeescript_compiler.
        ("1 if 2 if 3", ["<POSTFIX_IF>", ["<POSTFIX_IF>", "1", "if", "2"], "if", "3"]),
        ("1 while 2 while 3", ["<POSTFIX_WHILE>", "1", "while", ["<POSTFIX_WHILE>", "2", "while", "3"]]),
        ("1 while 2 if 3", ["<POSTFIX_IF>", ["<POSTFIX_WHILE>", "1", "while", "2"], "if", "3"]),
        ("1 if 2 while 3", ["<POSTFIX_IF>", "1", "if", ["<POSTFIX_WHILE>", "2", "while", "3"]]),
    ],
)  # fmt: skip
def test_coffeescript_trees(text: str, tree: object) -> None:
    assert nested(COFFEESCRIPT, text) == tree


def test_javascript_trees() -> None:
    block = ["<STATEMENT_BLOCK>", "{", ["<EXPRESSION_STATEMENT>", "1", ";"], "}"]
    test = ["<PARENTHESIZED_EXPRESSION>", "(", ["<BINARY_EXPRESSION>", "a0", "===", "1"], ")"]
    assert nested(JAVASCRIPT, "while ( a0 === 1 ) { 1 ; }") == [
        "<PROGRAM>", ["<WHILE_STATEMENT>", "while", test, block],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "leaves"),
    [
        ('let x = f("a  b", \'\', "don\\\'t go");', ['"', "a␣␣b", '"']),
        ("x = `t ${ x } u ${ `b ${ c } d` }` ;", ["`", "t␣", "${", "x", "}", "␣u␣", "${"]),
        ("y = a / /b c/g ;", ["/", "/", "b␣c", "/", "g"]),
        ("a + b // c  d", ["b", "//␣c␣␣d"]),
        ("a /* c d */ + b", ["a", "/*␣c␣d␣*/", "+"]),
        (
            '<a b = "c d" >hi there < b /> x{ y } z</ a >',
            [">", "hi␣there␣", "<", "b", "/>", "␣x", "{"],
        ),
        ("html`<b> ${ x } y</b>`", ["`", "<b>␣", "${", "x", "}", "␣y</b>", "`"]),
    ],
)
def test_spaces_in_the_text_of_javascript_are_visible_and_come_back(
    text: str, leaves: list[str]
) -> None:
    tree = JAVASCRIPT.parse(text)
    shown = " ".join(tree.labels[node] for node in tree.leaves)
    assert " ".join(leaves) in shown
    written = JAVASCRIPT.write(tree)
    assert JAVASCRIPT.parse(written) == tree
    assert re.findall(r"\w+", written) == re.findall(r"\w+", text)
    assert get_linearization("preorder").tokens(tree) == list(tree.labels)


def test_javascript_whose_white_space_is_no_space_is_refused() -> None:
    with pytest.raises(RecordError, match=r"holds white space other than spaces \(U\+0009\)"):
        JAVASCRIPT.parse('x = "a\tb"')


@pytest.mark.parametrize(
    ("notation", "text", "message"),
    [
        (COFFEESCRIPT, "a0 = = 1", "token 3 is '=', expected (, a name or a number"),
        (COFFEESCRIPT, "a0 +", "the program ends after token 2, expected (, a name or a number"),
        (COFFEESCRIPT, "if a <IND> b", "the program ends after token 4, expected <DED>"),
        (COFFEESCRIPT, "a <DED>", "token 2 is '<DED>', expected the end of the program"),
        (COFFEESCRIPT, "a0 = é", "token 3 is 'é', expected (, a name or a number"),
        (COFFEESCRIPT, "else", "token 1 is 'else', expected (, a name, a number, if or while"),
        (JAVASCRIPT, "a0 = = 1 ;", "token 3, '=', does not fit JavaScript's grammar"),
        (JAVASCRIPT, "a0 = ( 1 ;", "after token 4 JavaScript needs ')'"),
        (JAVASCRIPT, "a0 ; }", "token 3, '}', does not fit JavaScript's grammar"),
    ],
)
def test_malformed_programs_name_the_token(notation: Format, text: str, message: str) -> None:
    with pytest.raises(RecordError) as caught:
        notation.parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("notation", [COFFEESCRIPT, JAVASCRIPT], ids=lambda entry: entry.name)
def test_blank_lines_and_line_ends(notation: Format) -> None:
    assert len(notation.parse(" ")) == 0
    assert notation.write(Tree([], [])) == ""
    with pytest.raises(RecordError, match="a line end inside a record"):
        notation.parse("a0\na1")
    with pytest.raises(TreeError, match=f"^{notation.name} cannot hold this tree"):
        notation.write(Tree([-1, 0], ["<OTHER>", "a0"]))
    assert FORMATS[notation.name] is notation
    assert pickle.loads(pickle.dumps(notation)).parse("a0") == notation.parse("a0")


def test_random_programs_survive_writing_and_parsing_and_growing() -> None:
    rng = random.Random(4)
    for size in range(60):
        text = " ".join(draw_tokens(rng, size, Vocabulary()))
        tree = COFFEESCRIPT.parse(text)
        assert COFFEESCRIPT.write(tree) == text
        for name in ("bracketed", "lcrs_dfs", "lcrs_bfs", "nary_dfs", "nary_bfs"):
            linearization = LINEARIZATIONS[name]
            assert linearization.tree is not None
            assert linearization.tree(linearization.tokens(tree)) == tree


@pytest.mark.parametrize(
    ("notation", "opening", "core", "closing"),
    [
        (COFFEESCRIPT, "(", "1", ")"),
        (COFFEESCRIPT, "if 1 <IND>", "1", "<DED>"),
        (COFFEESCRIPT, "1 <NL>", "1", ""),
        (COFFEESCRIPT, "1 while", "1", ""),
        (COFFEESCRIPT, "", "1", "+ 1"),
        (FOR, "for a1 = 1 ; a1 < 2 ; 3 do", "a0 = 1", "endfor"),
        (FOR, "a0 = 1 ; (", "a0 = 1 ; a0 = 2", ")"),
        (FOR, "", "a0 = 1", "; a0 = 2"),
        (FOR, "", "a0 = 1", "- a0"),
        (LAMBDA, "let a0 = 1 in", "unit", ""),
        (LAMBDA, "let a8 =", "unit", "in unit"),
        (JAVASCRIPT, "while ( 1 ) {", "1 ;", "}"),
        (JAVASCRIPT, "1 +", "1 ;", ""),
    ],
)
def test_deeply_nested_programs(notation: Format, opening: str, core: str, closing: str):
    text = " ".join([*[opening] * DEEP, core, *[closing] * DEEP]).strip()
    tree = notation.parse(text)
    assert tree.depths.max() >= (DEEP if notation in (FOR, LAMBDA) else 1)
    assert notation.write(tree) == text
    if notation is FOR:
        assert translate(tree).depths.max() >= DEEP


def test_token_lines_become_source_and_back() -> None:
    tokens = "if 1 <IND> 2 <DED> <NL> else <IND> while 3 <IND> 4 <DED> <DED> <NL> a0"
    source = "if 1\n\t2\nelse\n\twhile 3\n\t\t4\na0"
    assert coffeescript_source(tokens) == source
    assert javascript_tokens("x1 = (y===2);\n\nf.push(3 * 4);") == (
        "x1 = ( y === 2 ) ; f . push ( 3 * 4 ) ;"
    )


@needs_reference
def test_reference_programs_are_tokenised_and_parsed() -> None:
    with gzip.open(REFERENCE / "valid.raw.jsonl.gz", "rt") as stream:
        raw = [json.loads(line) for line in islice(stream, 500)]
    lines = {}
    for name in ("coffee", "js"):
        with gzip.open(REFERENCE / f"valid.{name}.gz", "rt") as stream:
            lines[name] = [line.rstrip("\n") for line in islice(stream, 500)]
    assert [javascript_tokens(entry["js"]) for entry in raw] == lines["js"]
    for notation, name in ((COFFEESCRIPT, "coffee"), (JAVASCRIPT, "js")):
        for text in lines[name]:
            assert notation.write(notation.parse(text)) == text


def test_a_grammar_of_another_version_is_told_with_its_remedy(monkeypatch):
    """Other packages pin tree-sitter, and pip installs it beside a grammar that it cannot load."""

    def incompatible(pointer: object) -> None:
        raise ValueError("Incompatible Language version 15. Must be between 13 and 14")

    monkeypatch.setattr("tree_sitter.Language", incompatible)
    javascript._parser.cache_clear()
    with pytest.raises(OptionError, match=r"version 15.*; run: pip install --upgrade tree-sitter "):
        JAVASCRIPT.parse("a ;")
    monkeypatch.undo()
    assert JAVASCRIPT.parse("a ;").labels[0] == "<PROGRAM>"
