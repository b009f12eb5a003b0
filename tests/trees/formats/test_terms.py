"""S-expressions, Prolog and JSON lines: every term is written as it was read."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import shared
from support.helpers import BARE, EMPTY, JSONL, PROLOG, SEXPR, nested, structure
from support.strategies import trees

from treesyntax.errors import TreeError
from treesyntax.files import read_lines
from treesyntax.remarks import remarks_of
from treesyntax.trees.formats import FORMATS, RecordError
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.tree import Tree

# S-expressions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("( f a b )", ["f", "a", "b"]),
        ("x", "x"),
        ("( x )", ["()", "x"]),
        ("( )", "()"),
        ("( ( f a ) b )", ["()", ["f", "a"], "b"]),
        ("( ( ) )", ["()", "()"]),
        ("( f ( x ) ( ) )", ["f", ["()", "x"], "()"]),
        ("( lambda $0 e ( f $0 ) )", ["lambda", "$0", "e", ["f", "$0"]]),
    ],
)
def test_sexpr_by_example(text, expected):
    tree = SEXPR.parse(text)
    assert nested(tree) == expected
    assert SEXPR.write(tree) == text
    assert SEXPR.parse(text.replace(" (", "(").replace(") ", ")\t")) == tree


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lambda $0 e ( f $0 )", ["lambda", "$0", "e", ["f", "$0"]]),
        ("c0", "c0"),
        ("( f a )", ["()", ["f", "a"]]),
        ("( f a ) b", ["()", ["f", "a"], "b"]),
        ("( )", ["()", "()"]),
    ],
)
def test_sexpr_bare_by_example(text, expected):
    assert nested(BARE.parse(text)) == expected
    assert BARE.write(BARE.parse(text)) == text


def test_a_full_stop_behind_a_bare_expression_is_refused():
    with pytest.raises(RecordError, match="the expression ends with a full stop; take it off"):
        BARE.parse("lambda $0 e ( f $0 ) .")
    assert BARE.parse(".").labels == (".",)


@pytest.mark.parametrize(
    ("reader", "text", "said"),
    [
        (SEXPR, "( and flight($0) )", "names right before a bracket"),
        (SEXPR, "( and ( flight $0 ) )", None),
        (SEXPR, "(f (g x)(h y))", None),
        (SEXPR, "(f $0:<e,t> (g))", None),
        (SEXPR, '("f"(g "a")"b"\'"c")', "names right before a bracket"),
        (SEXPR, "( event what 's on )", "quotes right before a name"),
        (SEXPR, "( f '( a ) ''( b ) don't \"it 's\" `c )", None),
        (SEXPR, "( ( ( A cat ) ( on ( a mat ) ) ) . )", "pairs of pairs and words alone"),
        (SEXPR, "( ( f a ) ( g a b ) )", None),
        (SEXPR, "( f ( g a ) )", None),
        (SEXPR, "( ( f a ) ( ) )", None),
        (BARE, "( lambda $0 e ( f $0 ) )", "brackets around the whole tree"),
        (BARE, "what is it\tcapital:<c,t> ( s0 )", "tabs between words"),
        (BARE, "what is the capital", "four items or more without brackets"),
        (BARE, "SELECT name FROM t", "four items or more without brackets"),
        (BARE, "SELECT count ( * ) FROM t WHERE age > 5", "signs between what they compare"),
        (BARE, "> ( f $0 ) ( < a b ) ( string >= )", None),
        (BARE, "capital:c s0 s1", None),
        (BARE, "f ( a )\t", None),
        (BARE, "( f a ) b", None),
        (BARE, "lambda $0 e ( f $0 )", None),
    ],
)
def test_expressions_that_look_like_something_else_are_counted(reader, text, said):
    with remarks_of("x.sexpr") as remarks:
        reader.parse(text)
    assert [said in kind.content for kind in remarks.findings] == [True] * bool(said)


@pytest.mark.parametrize(
    "text", ["( f 'new york' )", "(f 'texas')", "(f '(a b) 'c d')", "(f “new york”)"]
)
def test_strings_in_other_quotes_are_refused(text):
    with pytest.raises(RecordError, match="is in other quotes than the double ones"):
        SEXPR.parse(text)


@pytest.mark.parametrize("text", ["(f 'a 'b)", "(f o'hare 'x)", "(f '(a b) 'c)"])
def test_quotes_of_lisp_are_read(text):
    assert "quote" in SEXPR.parse(text).labels


@settings(deadline=None, max_examples=150)
@given(st.recursive(st.sampled_from("abc"), lambda item: st.lists(item, max_size=3)))
def test_every_list_is_written_as_it_was_read(value):
    def spelled(item: object) -> str:
        return f"( {' '.join(map(spelled, item))} )" if isinstance(item, list) else str(item)

    text = " ".join(spelled(value).split())
    assert SEXPR.write(SEXPR.parse(text)) == text
    if isinstance(value, list) and value:
        bare = " ".join(map(spelled, value))
        assert BARE.write(BARE.parse(bare)).split() == bare.split()


# Prolog


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("job ( ANS )", ["job", "ANS"]),
        ("a", "a"),
        ("a , b , c", [",", "a", "b", "c"]),
        ("a , ( b , c )", [",", "a", [",", "b", "c"]]),
        ("a ; b , c ; d", [";", "a", [",", "b", "c"], "d"]),
        ("( a ; b ) , c", [",", [";", "a", "b"], "c"]),
        ("( a , b ) ; c", [";", ["()", [",", "a", "b"]], "c"]),
        ("\\+ a , b", [",", ["\\+", "a"], "b"]),
        ("\\+ ( a , b )", ["\\+", [",", "a", "b"]]),
        ("\\+ \\+ ( a )", ["\\+", ["\\+", ["()", "a"]]]),
        ("\\+ ( ( r ( A ) ) )", ["\\+", ["()", ["()", ["r", "A"]]]]),
        ("( ( a ; b ) ) , c", [",", ["()", ["()", [";", "a", "b"]]], "c"]),
        ("f ( a ; b , c )", ["f", [";", "a", "b"], "c"]),
        ("f ( ( a , b ) , c )", ["f", [",", "a", "b"], "c"]),
        ("f ( ( a , b ) ; c )", ["f", [";", [",", "a", "b"], "c"]]),
        ("f ( ( a ; b ) )", ["f", ["()", [";", "a", "b"]]]),
        ("f ( \\+ ( a , b ) )", ["f", ["\\+", [",", "a", "b"]]]),
        ("const ( A , 'new, (york' )", ["const", "A", "'new,␣(york'"]),
        ("'it''s' ( 'a\\'b' )", ["'it''s'", "'a\\'b'"]),
        ("'new  york' ( \"a 'b\" )", ["'new␣␣york'", '"a␣\'b"']),
        (
            "f ( _ , -1.5 , 'a\\=b' , 1e-3 , <unk_1> )",
            ["f", "_", "-1.5", "'a\\=b'", "1e-3", "<unk_1>"],
        ),
        ("= ( A , + )", ["=", "A", "+"]),
    ],
)
def test_prolog_by_example(text, expected):
    tree = PROLOG.parse(text)
    assert nested(tree) == expected
    assert PROLOG.write(tree) == text
    if not re.search("['\"]", text):
        assert PROLOG.parse(text.replace(" ", "")) == tree
        assert PROLOG.parse(text.replace(" ", "\t  ")) == tree


@settings(deadline=None, max_examples=150)
@given(
    st.recursive(
        st.sampled_from(["a", "X", "'q r'"]),
        lambda goal: st.one_of(
            st.builds("( {} )".format, goal),
            st.builds("\\+ {}".format, goal),
            st.builds("{} , {}".format, goal, goal),
            st.builds("{} ; {}".format, goal, goal),
            st.builds("f ( {} )".format, goal),
            st.builds("g ( {} , {} )".format, goal, goal),
        ),
        max_leaves=8,
    )
)
def test_every_goal_is_written_as_it_was_read(text):
    assert PROLOG.write(PROLOG.parse(text)) == text


@settings(deadline=None, max_examples=100)
@given(
    st.recursive(
        st.sampled_from("abX"),
        lambda item: st.one_of(
            st.tuples(st.just("\\+"), item),
            st.tuples(st.sampled_from([",", ";"]), item, item),
            st.tuples(st.sampled_from("fg"), item, item),
        ),
        max_leaves=10,
    )
)
def test_every_operator_tree_can_be_written(value):
    listed = json.dumps(value)
    tree = JSONL.parse(listed)
    assert PROLOG.parse(PROLOG.write(tree)) == tree


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("f(a), g(b).", "f(a),g(b)"),
        ("f(a) .", "f(a)"),
        ("p, q.", "p,q"),
        ("f('new york').", "f('new york')"),
    ],
)
def test_the_full_stop_of_a_clause_is_left_out_and_counted(text, same):
    with remarks_of("x.pl") as remarks:
        assert PROLOG.parse(text) == PROLOG.parse(same)
    (said,) = remarks.texts()
    assert "holds the full stop of a clause; it is left out of the tree" in said
    with remarks_of("x.pl") as remarks:
        PROLOG.write(PROLOG.parse(same))
    assert not remarks.findings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("setof(X, Y^(p(X,Y)), L)", "'Y^' is no name, variable or number; of operators only , ; and \\+ are"),
        ("a:-b,c", "'a:-b' is no name"),
        ("f(A), A>2", "'A>2' is no name"),
        ("p(A-B)", "'A-B' is no name, variable or number; of operators only , ; and \\+ are read: write"),
        ("p(mid-west)", "or quote the name, 'a-b'"),
        ("p(a).q(b)", "'.q(' follows a complete term"),
        ("p(a.b)", "'a.b' is no name"),
        ("p({a})", "'{a}' is no name"),
        ("p(‘a’)", "'‘a’' is no name"),
        ("p（a）", "'p（a）' is no name"),
        ("p(a) % why", "'%' begins a comment; take comments out"),
        ("%why", "'%' begins a comment; take comments out"),
        ("/* why */ f(a)", "'/*' begins a comment; take comments out"),
        ("p('a\tb')", "holds white space other than spaces (U+0009); labels become tokens"),
        ('p("a)', 'the quoted atom "a) has no end; close it with "'),
    ],
)  # fmt: skip
def test_prolog_refuses_what_would_be_another_term(text, message):
    with pytest.raises(RecordError, match=re.escape(message)):
        PROLOG.parse(text)


# JSON lines


@settings(deadline=None, max_examples=100)
@given(trees(st.text(st.characters(exclude_categories=["Cs"], exclude_characters=" ␣"))))
def test_nested_lists_agree_with_the_json_module(tree):
    assert json.loads(JSONL.write(tree)) == nested(tree)
    for ascii_only in (True, False):
        for separators in ((",", ":"), (" , ", " : ")):
            text = json.dumps(nested(tree), ensure_ascii=ascii_only, separators=separators)
            assert JSONL.parse(text) == tree


def test_spaces_in_json_labels_are_visible_but_those_of_words_are_not():
    text = '["at", ["new  york"], "a b"]'.replace('["new  york"]', '"new  york"')
    tree = JSONL.parse(text)
    assert tree.labels == ("at", "new␣␣york", "a␣b")
    assert JSONL.write(tree) == text
    assert get_linearization("preorder").tokens(tree) == ["at", "new␣␣york", "a␣b"]
    text = '{"parents": [-1, 0], "labels": ["N P", "10 000"], "words": [-1, 0]}'
    tree = JSONL.parse(text)
    assert tree.labels == ("N␣P", "10 000")
    assert JSONL.write(tree) == text
    with remarks_of("x") as remarks:
        assert JSONL.parse('["a", "b␣c"]') == JSONL.parse('["a", "b c"]')
    assert [finding.lines for finding in remarks.findings.values()] == [1]
    with pytest.raises(TreeError, match="the label 'a b' holds a space; write it as ␣"):
        JSONL.write(Tree([-1], ["a b"]))


def test_jsonl_by_example():
    assert structure(JSONL.parse('["Plus", ["Var", "a0"], ["Const", 5], -1.5e3]')) == (
        [-1, 0, 1, 0, 3, 0],
        ("Plus", "Var", "a0", "Const", "5", "-1.5e3"),
    )
    assert JSONL.parse('["a"]') == JSONL.parse('"a"') == JSONL.parse(' [ "a" ] ')
    assert JSONL.write(Tree([-1], ["a"])) == '"a"'
    assert JSONL.parse("7").labels == ("7",)
    assert JSONL.parse('"[\\"\\u00e9\\n,]"').labels == ('["é\n,]',)


def test_jsonl_objects_hold_the_rest():
    tree = Tree([-1, 0], ["a", "b"], [-1, 0], ["r", "s"], [0, 1])
    assert json.loads(JSONL.write(tree)) == {
        "parents": [-1, 0],
        "labels": ["a", "b"],
        "words": [-1, 0],
        "relations": ["r", "s"],
        "branches": [0, 1],
    }
    assert JSONL.parse(' {"parents": [-1], "labels": ["a"]}') == Tree([-1], ["a"])
    assert JSONL.parse('{"parents": [], "labels": []}') == EMPTY


@pytest.mark.parametrize(
    ("folder", "name"),
    [("atis_lambda_dl", "sexpr"), ("geo_lambda_dl", "sexpr_bare"), ("jobs_prolog_dl", "prolog")],
)
def test_logical_forms_are_written_token_by_token(folder, name):
    files = sorted(shared("data", folder).glob("*.tgt"))
    assert files
    entry = FORMATS[name]
    for file in files:
        for line in read_lines(file):
            tree = entry.parse(line)
            assert entry.write(tree).split() == line.split()
            assert entry.parse(line.replace("( ", "(").replace(" )", ")")) == tree


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('( say "new  york" x )', ["say", '"new␣␣york"', "x"]),
        (r'( f "a \" ( b" )', ["f", r'"a␣\"␣(␣b"']),
        ("( f 'x '( g 1 ) )", ["f", ["quote", "x"], ["quote", ["g", "1"]]]),
        ("( f `( a ,b ,@c ) )", ["f", ["quasiquote", ["a", ["unquote", "b"], ["unquote-splicing", "c"]]]]),
        ("( f ''x i'd )", ["f", ["quote", ["quote", "x"]], "i'd"]),
        ("( = a ( f = ) )", ["=", "a", ["f", "="]]),
        ("( loc:<lo,<lo,t>> $0 x:<e,t> )", ["loc:<lo,<lo,t>>", "$0", "x:<e,t>"]),
        ("( <e,t> < a )", ["<e,t>", "<", "a"]),
    ],
)  # fmt: skip
def test_sexpr_reads_strings_and_quotes_as_lisp_does(text, expected):
    tree = SEXPR.parse(text)
    assert nested(tree) == expected
    assert SEXPR.parse(SEXPR.write(tree)) == tree
    assert re.search("['`]", text) or SEXPR.write(tree) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("( f x ) ; why", "';' begins a comment; take comments out"),
        ("( let [ x 1 ] x )", "there are brackets other than ( and )"),
        ('( f "x )', "a string is not closed"),
        ('( year "May 1998"^^date )', "'^^date' stands right behind '\"May 1998\"'; write both as one"),
        ('( f re"a b" )', "'\"a b\"' stands right behind 're'; write both as one string"),
        ('( f "a""b" )', "'\"b\"' stands right behind '\"a\"'; write both as one string"),
        ("( f |a b| )", "'|' begins a symbol with bars"),
        ('( f "a\tb" )', "holds white space other than spaces (U+0009); labels become tokens, which hold"),
        ("(w / want-01 :ARG0 (b / boy))", "'w / want-01' is AMR, a graph, in which a node may have"),
        ("cook ( theme = cake )", "'=' stands between 'theme' and 'cake'; write ( = a b ) with the"),
        ("( f:<a,(b) )", "the type in 'f:<a,' is not closed; end it with >"),
        ("( f '", "a quote or comma stands alone, as in another language"),
        ("( f ( Constraint[Event] ) )", "the name 'Constraint' goes on with a bracket [; write it as a string, \"Constraint[…\""),
        ("( f [ a ] )", "there are brackets other than ( and )"),
        ("( f x,y )", "a comma stands right behind 'x', as in another language; put spaces"),
        ("cook ( cake , pie )", "a quote or comma stands alone, as in another language"),
        ("answer(city(all))", "'answer' is followed by '(' without a space, as in another language"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("tree_format", [SEXPR, BARE], ids=lambda one: one.name)
def test_sexpr_refuses_what_would_be_another_tree(tree_format, text, message):
    with pytest.raises(RecordError, match=re.escape(message)):
        tree_format.parse(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("f ( ) // then g ( )", 1),
        ('f ( "//" ) /* // */', 0),
        ("/a\\/\\/b/", 0),
        ("x = `//`", 0),
        ("#!/usr/bin/env node f ( ) ;", 1),
        ("f ( ) ; <!-- then g ( )", 1),
        ("while ( x --> 0 ) { a <! --b }", 0),
    ],
)
def test_line_comments_of_javascript_are_counted(text, count):
    with remarks_of("x.js") as remarks:
        FORMATS["javascript"].parse(text)
    assert len(remarks.findings) == count
