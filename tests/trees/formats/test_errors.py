"""Tree files that are malformed, and trees that a notation cannot hold: every error message."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from support.helpers import BARE, CONLLU, EMPTY, JSONL, MRG, PROLOG, PTB, SEXPR, row

from treesyntax.errors import InputError, OptionError, TreeError
from treesyntax.trees.formats import FORMATS, get_format, parse_record, read_trees, write_trees
from treesyntax.trees.formats.base import Record, register_format
from treesyntax.trees.tree import Tree

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
        (
            PTB,
            "(<T S[dcl] 0 1> (<L S[dcl] VB VB go S[dcl]>) )",
            "is a derivation of CCGbank, whose",
        ),
        (
            MRG,
            "( Root (span 1 2)\n ( Nucleus (leaf 1) (rel2par span) (text _!go (on)!_) ) )",
            "is a tree of discourse (.dis), whose spans and relations would be read as words",
        ),
        (MRG, "(S\n  (NP ))", "the constituent (NP ) is empty (character 7)"),
        (MRG, "(S (NP a)", "1 bracket is still open at the end; balance the brackets of the tree"),
        (MRG, "", "no tree; mrg has no empty trees; use the format ptb"),
        (CONLLU, row(1)[:-2], "9 tab-separated columns instead of 10; write _ for a value"),
        (
            CONLLU,
            row(1) + "\t_" * 4,
            "14 tab-separated columns instead of 10, as in CoNLL-2009; conv",
        ),
        (
            CONLLU,
            row(1) + "\t_" * 7,
            "17 tab-separated columns instead of 10, as in CoNLL-2009; conv",
        ),
        (
            CONLLU,
            f"# global.columns = ID FORM HEAD DEPREL\n{row(1)}",
            "is CoNLL-U Plus, with the columns ID FORM HEAD DEPREL; convert the file to CoNLL-U, with ID",
        ),
        (CONLLU, "word", "is not CoNLL-U, which has 10 columns separated by tabs; name the format"),
        (CONLLU, row(1).replace("\t", "  "), "the columns are separated by spaces; CoNLL-U"),
        (CONLLU, row(2), "the ID is '2', not 1; words are numbered 1, 2, 3"),
        (CONLLU, row("01"), "the ID is '01', not 1"),
        (CONLLU, f"{row('1.0')}\n{row('2.0', head='1.0')}", "the ID is '1.0', not 1"),
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
        (BARE, "f $0:<lo,", "the type in '$0:<lo,' is not closed; end it with >"),
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
        (JSONL, '["a", null]', 'null is not a label; labels are strings like "NP", or numbers'),
        (JSONL, "NP", "NP is not a label"),
        (JSONL, "01", "01 is not a label"),
        (JSONL, "٣", "٣ is not a label"),
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
        (
            JSONL,
            '{"parents": [-1], "labels": ["a"], "labels": ["b"]}',
            "(the key 'labels' occurs twice)",
        ),
        (JSONL, '{"parents": [-1.0], "labels": ["a"]}', "parents is not a list of whole numbers"),
        (JSONL, '{"parents": null, "labels": ["a"]}', "parents is not a list of whole numbers"),
        (JSONL, '{"parents": [-1], "labels": [1]}', "labels is not a list of strings; its fields"),
        (JSONL, '{"parents": [-1], "labels": "a"}', "labels is not a list of strings"),
        (JSONL, '{"parents": [-1], "labels": ["a"], "words": [true]}', "words is not a list of"),
        (JSONL, '{"parents": [4294967296], "labels": ["a"]}', "parents is not a list of whole nu"),
    ],
)
def test_malformed_records(entry, text, message):
    with pytest.raises(TreeError, match=re.escape(message)):
        entry.parse(text)


def test_objects_nested_too_deeply_are_refused():
    deep = '{"parents": ' + "[" * 100_000 + "]" * 100_000 + ', "labels": []}'
    with pytest.raises(TreeError, match=r"fields of a tree \(it is nested too deeply\); its"):
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


def test_text_is_the_name_of_no_format():
    with pytest.raises(ValueError, match="text is what has no trees"):
        register_format(SimpleNamespace(name="text"))
