"""Tree files: exact round trips, independent readers as oracles, and every error message."""

from __future__ import annotations

import gzip
import json
import re
from itertools import islice
from pathlib import Path

import conllu
import nltk
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import (
    any_labels,
    constituency_trees,
    dependency_trees,
    rich_trees,
    trees,
)

from treesyntax.errors import InputError, OptionError, TreeError
from treesyntax.files import read_lines
from treesyntax.formats import FORMATS, get_format, parse_record, read_trees, write_trees
from treesyntax.formats.base import Record
from treesyntax.tree import Tree

DATA = Path(__file__).parents[2] / "shared" / "data"
CONLLU, PTB, MRG, SEXPR, BARE, PROLOG, JSONL = (
    FORMATS[name] for name in ("conllu", "ptb", "mrg", "sexpr", "sexpr_bare", "prolog", "jsonl")
)
EMPTY = Tree([], [])
LINE_FORMATS = [PTB, SEXPR, BARE, PROLOG, JSONL]
anything = st.one_of(
    rich_trees(), trees(any_labels), trees(), dependency_trees(), constituency_trees()
)


def row(number: object, form: str = "w", head: object = 0, relation: str = "root") -> str:
    return f"{number}\t{form}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_"


def nested(tree: Tree, node: int = 0) -> object:
    """A tree as nested lists, by recursion over the definition."""
    children = [nested(tree, child) for child in tree.children()[node]]
    return [tree.labels[node], *children] if children else tree.labels[node]


def structure(tree: Tree) -> tuple[list[int], tuple[str, ...]]:
    return tree.parents.tolist(), tree.labels


# Round trips


@pytest.mark.parametrize("entry", FORMATS.values(), ids=FORMATS)
@settings(deadline=None, max_examples=100)
@given(tree=anything)
def test_what_can_be_written_is_read_back_exactly(entry, tree):
    try:
        text = entry.write(tree)
    except TreeError:
        return
    assert entry.parse(text) == tree


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        (JSONL, anything),
        (PTB, constituency_trees()),
        (MRG, constituency_trees()),
        (CONLLU, dependency_trees()),
        (SEXPR, trees()),
        (BARE, trees()),
        (PROLOG, trees()),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_each_notation_holds_its_kind_of_trees(entry, kind, data):
    tree = data.draw(kind)
    assert entry.parse(entry.write(tree)) == tree


@pytest.mark.parametrize("entry", [*LINE_FORMATS, MRG, CONLLU], ids=lambda entry: entry.name)
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_files_keep_the_trees_in_order(entry, data, tmp_path_factory):
    kinds = {"conllu": dependency_trees(), "ptb": constituency_trees(), "mrg": constituency_trees()}
    kind = kinds.get(entry.name, trees())
    items = kind if entry is MRG else st.one_of(st.just(EMPTY), kind)
    written = data.draw(st.lists(items, max_size=4))
    path = tmp_path_factory.mktemp("trees") / f"t{entry.suffix}"
    assert write_trees(path, written, entry.name) == len(written)
    assert list(read_trees(path, entry.name)) == written


@pytest.mark.parametrize("entry", LINE_FORMATS, ids=lambda entry: entry.name)
def test_a_blank_line_is_an_empty_tree(entry, tmp_path):
    assert entry.parse("") == entry.parse(" \t ") == EMPTY
    assert entry.write(EMPTY) == ""
    path = tmp_path / "trees"
    line = entry.write(Tree([-1, 0], ["a", "b"], [-1, 0] if entry is PTB else None))
    path.write_text(f"\n{line}\n\n", encoding="utf-8")
    assert [len(tree) for tree in read_trees(path, entry.name)] == [0, 2, 0]


# Penn Treebank brackets


@settings(deadline=None, max_examples=100)
@given(constituency_trees())
def test_ptb_agrees_with_nltk(tree):
    text = PTB.write(tree)
    oracle = nltk.Tree.fromstring(text, remove_empty_top_bracketing=True)
    escapes = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-"}
    written = [escapes.get(tree.labels[node], tree.labels[node]) for node in tree.leaves]
    assert oracle.leaves() == written
    found = [tree.labels[n] for n in range(len(tree)) if n not in tree.leaves]
    assert [subtree.label() for subtree in oracle.subtrees()] == found
    assert text == oracle.pformat(margin=10**9)
    for spread in (oracle.pformat(margin=5), f"(\n {oracle.pformat(margin=5)}\n )"):
        assert MRG.parse(spread) == tree


def test_ptb_by_example():
    tree = PTB.parse("(S (NP (DT The) (NN cat)) (VP sleeps))")
    assert nested(tree) == ["S", ["NP", ["DT", "The"], ["NN", "cat"]], ["VP", "sleeps"]]
    assert tree.words.tolist() == [-1, -1, -1, 0, -1, 1, -1, 2]
    assert PTB.parse(" ( S(NP  the\tcat )( VP sleeps))") == PTB.parse(
        "(S (NP the cat) (VP sleeps))"
    )
    assert PTB.parse("(NP 10\u00a0000\u3000)").labels == ("NP", "10\u00a0000\u3000")


def test_ptb_unescapes_brackets_in_words_only():
    line = "(-LRB- -LRB-)"
    assert PTB.parse(line).labels == ("-LRB-", "(")
    assert PTB.write(PTB.parse(line)) == line
    every = "(X -LRB- -RRB- -LCB- -RCB- -LSB- -RSB- a-RRB-b)"
    assert PTB.parse(every).labels[1:] == ("(", ")", "{", "}", "[", "]", "a)b")
    assert PTB.write(PTB.parse(every)) == every


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("( (S a))", "(S a)"),
        ("(((S a)))", "(S a)"),
        ("( (S a) (S b))", "( (S a) (S b))"),
        ("( ( (S a) (S b)))", "( (S a) (S b))"),
        ("(S ( (NP a)))", "(S ( (NP a)))"),
    ],
)
def test_unlabelled_brackets_around_a_tree_are_dropped(text, kept):
    assert PTB.write(PTB.parse(text)) == kept
    assert PTB.parse(kept) == PTB.parse(text)


def test_mrg_splits_where_the_brackets_close(tmp_path):
    path = tmp_path / "wsj.mrg"
    path.write_text("\n( (S\n    (NP a)\n\n    (VP b)) )\n\n  \n( (S c))\n(S\n d)\n", "utf-8")
    assert [record.line for record in MRG.records(path)] == [2, 8, 9]
    assert list(map(nested, read_trees(path, "mrg"))) == [
        ["S", ["NP", "a"], ["VP", "b"]],
        ["S", "c"],
        ["S", "d"],
    ]


# CoNLL-U


@settings(deadline=None, max_examples=100)
@given(dependency_trees())
def test_conllu_agrees_with_the_conllu_package(tree):
    (sentence,) = conllu.parse(CONLLU.write(tree) + "\n\n")
    assert [token["head"] for token in sentence] == tree.heads()
    nodes = tree.word_nodes()
    assert [token["form"] for token in sentence] == [tree.labels[node] for node in nodes]
    assert [token["deprel"] for token in sentence] == [tree.relations[node] for node in nodes]


def test_conllu_by_example():
    lines = [
        "# sent_id = 1",
        row("1-2", "cannot", "_", "_"),
        row(1, "can", 3, "aux"),
        row(2, "not", 3, "advmod"),
        row(3, "go"),
        row("3.1", "there", "_", "_"),
    ]
    tree = CONLLU.parse("\n".join(lines))
    assert tree == Tree.from_heads([3, 3, 0], ["can", "not", "go"], ["aux", "advmod", "root"])
    assert CONLLU.write(tree).split("\n") == [lines[2], lines[3], lines[4]]


def test_conllu_without_relations_and_with_spaces_in_words():
    tree = Tree.from_heads([0, 1], ["20 000", "_"])
    assert CONLLU.parse(CONLLU.write(tree)) == tree


def test_conllu_splits_at_blank_lines(tmp_path):
    path = tmp_path / "trees.conllu"
    path.write_text(
        f"\n\n# a\n{row(1)}\n\n \t\n\n# text =\n\n{row(1)}\n{row(2, 'v', 1, 'x')}", "utf-8"
    )
    assert [record.line for record in CONLLU.records(path)] == [3, 8, 10]
    assert [len(tree) for tree in read_trees(path, "conllu")] == [1, 0, 2]


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
        ("const ( A , 'new, (york' )", ["const", "A", "'new, (york'"]),
        ("'it''s' ( 'a\\'b' )", ["'it''s'", "'a\\'b'"]),
        ("f ( _ , -1.5 , a\\=b )", ["f", "_", "-1.5", "a\\=b"]),
    ],
)
def test_prolog_by_example(text, expected):
    tree = PROLOG.parse(text)
    assert nested(tree) == expected
    assert PROLOG.write(tree) == text
    if "'" not in text:
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


# JSON lines


@settings(deadline=None, max_examples=100)
@given(trees(st.text(st.characters(exclude_categories=["Cs"]))))
def test_nested_lists_agree_with_the_json_module(tree):
    assert json.loads(JSONL.write(tree)) == nested(tree)
    for ascii_only in (True, False):
        for separators in ((",", ":"), (" , ", " : ")):
            text = json.dumps(nested(tree), ensure_ascii=ascii_only, separators=separators)
            assert JSONL.parse(text) == tree


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


# Errors: one record's text


@pytest.mark.parametrize(
    ("entry", "text", "message"),
    [
        (PTB, "(S (NP a)", "1 bracket is still open at the end; if trees span several lines, use"),
        (PTB, "(S (NP", "2 brackets are still open at the end"),
        (PTB, "(S a))", "a ')' closes nothing (character 6)"),
        (PTB, ")", "a ')' closes nothing (character 1)"),
        (PTB, "(S a) (S b)", "a second tree begins (character 7); write one tree a record"),
        (PTB, "(S (NP ))", "the constituent (NP ) is empty (character 8); give it a word or"),
        (PTB, "( )", "the constituent ( ) is empty"),
        (PTB, "cat", "'cat' stands outside the brackets (character 1); put every word inside"),
        (PTB, "(S a) b", "'b' stands outside the brackets (character 7)"),
        (PTB, "(S\na)", "a tree spans several lines; use the format mrg for such files"),
        (MRG, "(S\n  (NP ))", "the constituent (NP ) is empty (character 7)"),
        (MRG, "(S (NP a)", "1 bracket is still open at the end; balance the brackets of the tree"),
        (MRG, "", "no tree; mrg has no empty trees; use the format ptb"),
        (CONLLU, row(1)[:-2], "9 tab-separated columns instead of 10; write _ for a value"),
        (CONLLU, "word", "1 tab-separated column instead of 10"),
        (CONLLU, row(1).replace("\t", "  "), "the columns are separated by spaces; CoNLL-U"),
        (CONLLU, row(2), "the ID is '2', not 1; words are numbered 1, 2, 3"),
        (CONLLU, row("01"), "the ID is '01', not 1"),
        (CONLLU, row(1, head="_"), "the word has no HEAD ('_'); parse the sentence first"),
        (CONLLU, row(1, head="x"), "the HEAD is 'x', not a number; heads are word numbers"),
        (CONLLU, row(1, head="-1"), "the HEAD is '-1', not a number"),
        (CONLLU, row(1, head="٠"), "the HEAD is '٠', not a number"),
        (CONLLU, row(1, form=""), "the FORM is empty; no column is empty; write _ for"),
        (CONLLU, row(1, relation=""), "the DEPREL is empty"),
        (CONLLU, row(1, head=7), "the head 7 of word 1 is out of range"),
        (CONLLU, row(1, head=1), "no root; exactly one word must have head 0"),
        (SEXPR, "( f ( a b )", "1 parenthesis still open at the end of the line; write every tree"),
        (SEXPR, "( ( f", "2 parentheses still open"),
        (SEXPR, ")", "a ')' closes nothing; balance the parentheses"),
        (SEXPR, "( f a ) )", "a ')' closes nothing"),
        (SEXPR, "f a", "'a' follows the end of the expression; use the format sexpr_bare if"),
        (SEXPR, "( f a ) ( b )", "'(' follows the end of the expression"),
        (SEXPR, "( f\n a )", "a line end inside a record; write every tree on one line"),
        (BARE, "f ( a", "1 parenthesis still open"),
        (BARE, "(", "1 parenthesis still open"),
        (BARE, ")", "a ')' closes nothing"),
        (BARE, "f a ) b", "a ')' closes nothing"),
        (BARE, "f a ) ( b", "a ')' closes nothing"),
        (PROLOG, "f ( a", "1 parenthesis still open at the end of the line; write every term on"),
        (PROLOG, "( f ( a", "2 parentheses still open"),
        (PROLOG, "a )", "a ')' closes nothing; balance the parentheses"),
        (PROLOG, "a b", "'b' follows a complete term; join terms with a comma or a semicolon"),
        (PROLOG, "f ( a ) ( b )", "'(' follows a complete term"),
        (PROLOG, "a \\+ b", "'\\\\+' follows a complete term"),
        (PROLOG, "a , , b", "',' stands where a term should begin; complete the term before it"),
        (PROLOG, "f ( )", "')' stands where a term should begin"),
        (PROLOG, "; a", "';' stands where a term should begin"),
        (PROLOG, "a ,", "the line ends where a term should begin; complete the last term"),
        (PROLOG, "\\+", "the line ends where a term should begin"),
        (PROLOG, "f ( [ a ] )", "'[' belongs to a list; lists cannot be read"),
        (PROLOG, "a | b", "'|' belongs to a list"),
        (PROLOG, "f ( 'a b )", "the quoted atom 'a b ) has no end; close it with '"),
        (PROLOG, "'a\\'", "the quoted atom 'a\\' has no end"),
        (PROLOG, "a ,\rb", "a line end inside a record"),
        (JSONL, '["a", "b"', "a list is not closed at the end of the line; add the missing ']'"),
        (JSONL, "[", "a list is not closed"),
        (JSONL, "[]", 'a list does not begin with a label; write a node as ["label", child, …]'),
        (JSONL, '[["a"]]', "a list does not begin with a label"),
        (JSONL, '["a",]', "']' stands where a child should be; remove the comma"),
        (JSONL, '["a",,"b"]', "',' stands where a child should be"),
        (JSONL, "]", "']' stands where a child should be"),
        (JSONL, '["a" "b"]', "a comma is missing before '\"b\"'; separate children by commas"),
        (JSONL, '["a"] ["b"]', "'[' follows the end of the tree; write one tree a line"),
        (JSONL, '"a", "b"', "',' follows the end of the tree"),
        (JSONL, '["a", null]', 'null is no label; labels are strings like "NP", or numbers'),
        (JSONL, "NP", "NP is no label"),
        (JSONL, "01", "01 is no label"),
        (JSONL, "٣", "٣ is no label"),
        (JSONL, '"a', '"a is not a JSON string; quote it with " and escape control characters'),
        (JSONL, '"a\tb"', "is not a JSON string"),
        (JSONL, '"\\x"', "is not a JSON string"),
        (JSONL, '["a",\n"b"]', "a line end inside a record"),
        (JSONL, '["\\ud800"]', "half a surrogate pair, which is not valid Unicode; write both"),
        (JSONL, '{"parents": [-1]', "not JSON (Expecting ',' delimiter, character 17); write one"),
        (JSONL, '{"parents": [-1]}', "the object has no labels; its fields are parents, labels,"),
        (JSONL, "{}", "the object has no parents, labels"),
        (JSONL, '{"for": "a"}', "the object has the unknown for; its fields are parents, labels"),
        (JSONL, '{"parents": [0], "labels": ["a"]}', "the first node has parent 0"),
        (JSONL, '{"parents": [-1.0], "labels": ["a"]}', "parents is not a list of whole numbers"),
        (JSONL, '{"parents": null, "labels": ["a"]}', "parents is not a list of whole numbers"),
        (JSONL, '{"parents": [-1], "labels": [1]}', "labels is not a list of strings; its fields"),
        (JSONL, '{"parents": [-1], "labels": "a"}', "labels is not a list of strings"),
        (
            JSONL,
            '{"parents": [-1], "labels": ["a"], "words": [true]}',
            "words is not a list of whole numbers from -1 up",
        ),
        (
            JSONL,
            '{"parents": [-1], "labels": ["a"], "words": [4294967296]}',
            "words is not a list of whole numbers from -1 up",
        ),
    ],
)
def test_malformed_records(entry, text, message):
    with pytest.raises(TreeError, match=re.escape(message)):
        entry.parse(text)


def test_objects_nested_too_deeply_are_refused():
    deep = '{"parents": ' + "[" * 100_000 + "]" * 100_000 + ', "labels": []}'
    with pytest.raises(TreeError, match="not the object of a tree; its fields are"):
        JSONL.parse(deep)


# Errors: trees that a notation cannot hold


@pytest.mark.parametrize(
    ("entry", "tree", "message"),
    [
        (PTB, Tree([-1], ["a"], [0]), "ptb cannot hold this tree ('a' stands outside"),
        (PTB, Tree([-1, 0], ["a", "b"]), "the word of node 1, -1 would be read back as 0"),
        (PTB, Tree([-1, 0], ["a", "-LRB-"], [-1, 0]), "node 1, '-LRB-' would be read back as '('"),
        (PTB, Tree([-1, 0], ["a", "b c"], [-1, 0]), "2 nodes would be read back as 3"),
        (PTB, Tree([-1, 0], ["a", "b"], [-1, 0], ["r", "s"]), "its relations would be lost"),
        (PTB, Tree([-1, 0], ["a", "b"], [-1, 0], (), [0, 1]), "the branch of node 1, 1 would be"),
        (PTB, Tree([-1, 0], ["a", "b\rc"], [-1, 0]), "a label holds a carriage return"),
        (PTB, Tree([-1, 0], ["a", "b\nc"], [-1, 0]), "a tree spans several lines"),
        (PTB, Tree([-1, 0], ["a", "\ud800"], [-1, 0]), "a label holds half a surrogate pair"),
        (PTB, Tree([-1, 0, 1], ["", "S", "a"], [-1, -1, 0]), "3 nodes would be read back as 2"),
        (MRG, EMPTY, "mrg cannot hold this tree (the constituent ( ) is empty"),
        (CONLLU, Tree([-1], ["a"]), "1 nodes are not words; only dependency trees have heads"),
        (CONLLU, Tree.from_heads([0], ["a\tb"]), "11 tab-separated columns instead of 10"),
        (CONLLU, Tree.from_heads([0], [""]), "the FORM is empty"),
        (CONLLU, Tree.from_heads([0], ["a"], ["_"]), "its relations would be lost"),
        (SEXPR, Tree([-1, 0, 0], ["()", "f", "a"]), "3 nodes would be read back as 2"),
        (SEXPR, Tree([-1, 0], ["f", "a"], [-1, 0]), "the word of node 1, 0 would be read back"),
        (SEXPR, Tree([-1, 0], ["f", "a\n"]), "a line end inside a record"),
        (BARE, Tree([-1, 0], ["()", "a"]), "2 nodes would be read back as 1"),
        (BARE, Tree([-1], ["()"]), "1 nodes would be read back as 2"),
        (PROLOG, Tree([-1, 0], [",", "a"]), "2 nodes would be read back as 1"),
        (PROLOG, Tree([-1, 0, 1, 1], ["\\+", "()", ",", "a"]), "prolog cannot hold this tree"),
        (PROLOG, Tree([-1], ["two words"]), "'words' follows a complete term"),
    ],
)
def test_trees_a_notation_cannot_hold(entry, tree, message):
    with pytest.raises(TreeError, match=re.escape(message)):
        entry.write(tree)


def test_the_remedy_is_jsonl():
    with pytest.raises(TreeError, match="write it as jsonl, which holds any tree"):
        PTB.write(Tree([-1], ["a"]))
    with pytest.raises(TreeError, match=r"half a surrogate pair.*; correct the label"):
        JSONL.write(Tree([-1], ["\udfff"]))


# Errors: files


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("ptb", "(S a)\n\n(S b\n", 3),
        ("mrg", "(S a)\n\n(S\n (NP\n  b)\n ())\n", 6),
        ("mrg", "(S a)\n\n(S\n (NP\n", 3),
        ("conllu", f"{row(1)}\n\n# c\n# d\n{row(1)}\nx\n", 6),
        ("conllu", f"{row(1)}\n\n# c\n{row(1, head=2)}\n{row(2, head=1)}\n", 4),
        ("conllu", f"# c\n{row(1)}\n{row(2)}\n", 3),
        ("conllu", f"# c\n{row(1)}\n{row(2, head=9)}\n", 3),
        ("sexpr", "( f a )\n( f\n", 2),
        ("sexpr_bare", "f a\nf )\n", 2),
        ("prolog", "a\n\n\na b\n", 4),
        ("jsonl", '"a"\n["b"\n', 2),
    ],
)
def test_faults_are_reported_with_file_and_line(name, text, line, tmp_path):
    path = tmp_path / "trees.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=f"^{re.escape(str(path))}:{line}: ") as caught:
        list(read_trees(path, name))
    assert caught.value.line == line


def test_one_record_can_be_parsed_elsewhere():
    with pytest.raises(InputError, match=r"^f\.ptb:9: 1 bracket is still open at the end; if"):
        parse_record(PTB, "f.ptb", Record(9, "(S a"))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.ptb: cannot be read"):
        list(read_trees(tmp_path / "none.ptb", "ptb"))


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "trees.ptb"
    good, bad = PTB.parse("(S a)"), Tree([-1], ["a"])
    write_trees(path, [good], "ptb")
    with pytest.raises(
        TreeError, match=r"^tree 2: ptb cannot hold this tree .*; write it as jsonl"
    ):
        write_trees(path, [good, bad], "ptb")
    assert [entry.name for entry in tmp_path.iterdir()] == ["trees.ptb"]
    assert list(read_trees(path, "ptb")) == [good]


def test_formats_by_name():
    assert get_format("ptb") is PTB
    assert all(name == entry.name for name, entry in FORMATS.items())
    with pytest.raises(OptionError, match="no tree format is named 'xml'; there are conllu, ptb"):
        get_format("xml")
    with pytest.raises(OptionError, match="no tree format is named 'xml'"):
        read_trees("f", "xml")


# Real data


@pytest.mark.parametrize(
    ("folder", "name"),
    [("atis_lambda_dl", "sexpr"), ("geo_lambda_dl", "sexpr_bare"), ("jobs_prolog_dl", "prolog")],
)
def test_logical_forms_are_written_token_by_token(folder, name):
    files = sorted((DATA / folder).glob("*.tgt"))
    if not files:
        pytest.skip(f"no {folder} beside the repository")
    entry = FORMATS[name]
    for file in files:
        for line in read_lines(file):
            tree = entry.parse(line)
            assert entry.write(tree).split() == line.split()
            assert entry.parse(line.replace("( ", "(").replace(" )", ")")) == tree


@pytest.mark.parametrize("name", ["UD_English-EWT/dev", "UD_Japanese-PUD/test"])
def test_treebanks_agree_with_the_conllu_package(name):
    path = DATA / "treebanks" / f"{name}.conllu.gz"
    if not path.exists():
        pytest.skip("no treebanks beside the repository")
    found = list(read_trees(path, "conllu"))[:600]
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        expected = list(islice(conllu.parse_incr(stream), 600))
    for tree, sentence in zip(found, expected, strict=True):
        words = [token for token in sentence if isinstance(token["id"], int)]
        nodes = tree.word_nodes()
        assert tree.heads() == [token["head"] for token in words]
        assert [tree.labels[node] for node in nodes] == [token["form"] for token in words]
        assert [tree.relations[node] for node in nodes] == [token["deprel"] for token in words]
        assert CONLLU.parse(CONLLU.write(tree)) == tree
