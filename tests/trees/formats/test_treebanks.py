"""Penn Treebank brackets and CoNLL-U: independent readers as oracles, and examples."""

from __future__ import annotations

import gzip
from itertools import islice

import conllu
import nltk
import pytest
from hypothesis import given, settings
from support import shared
from support.helpers import CONLLU, MRG, PTB, nested, row
from support.strategies import constituency_trees, dependency_trees

from treesyntax.trees.formats import read_trees
from treesyntax.trees.tree import Tree

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


@pytest.mark.parametrize("name", ["UD_English-EWT/dev", "UD_Japanese-PUD/test"])
def test_treebanks_agree_with_the_conllu_package(name):
    path = shared("data", "treebanks", f"{name}.conllu.gz")
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
