"""The text of tree files, and the character spans of their words."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given, settings
from support.strategies import constituency_trees

from treesyntax.errors import InputError
from treesyntax.parsers.joining import flat_constituents, flat_dependencies, join_constituents
from treesyntax.parsers.parser import white_space_words
from treesyntax.parsers.record_text import conllu_text, ptb_text, read_offsets
from treesyntax.trees.formats import conllu, ptb
from treesyntax.trees.formats.offsets import check_spelling
from treesyntax.trees.tree import Tree

ODD = 'The\u00a0"cat"\u2028 (-LRB-) \t[x] ``'


def test_conllu_has_the_line_and_the_place_of_every_word(tmp_path):
    words, spans = white_space_words(ODD)
    text = conllu_text(ODD, flat_dependencies(words), spans)
    assert text.split("\n")[0] == f"# text = {ODD}"
    assert conllu.parse(text).heads() == [0] + [1] * (len(words) - 1)
    file = tmp_path / "x.conllu"
    file.write_text(text + "\n\n# text =\n\n", encoding="utf-8")
    assert list(read_offsets(file, "conllu")) == [list(spans), []]


def test_a_multi_word_token_has_a_line_with_its_place(tmp_path):
    tree = Tree.from_heads([2, 0, 2], ["de", "le", "chat"], ["case", "root", "dep"])
    text = conllu_text("du chat", tree, [(0, 2), (0, 2), (3, 7)])
    rows = [row.split("\t") for row in text.split("\n")[1:]]
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        ("1-2", "du", "start_char=0|end_char=2"),
        ("1", "de", "_"),
        ("2", "le", "_"),
        ("3", "chat", "start_char=3|end_char=7"),
    ]
    assert conllu.parse(text) == tree
    file = tmp_path / "x.conllu"
    file.write_text(text + "\n\n")
    assert list(read_offsets(file, "conllu")) == [[(0, 2), (0, 2), (3, 7)]]


def test_a_word_without_its_place_is_refused(tmp_path):
    file = tmp_path / "x.conllu"
    file.write_text("1\ta\t_\t_\t_\t_\t0\troot\t_\tSpaceAfter=No\n\n")
    with pytest.raises(InputError, match=r"x.conllu:1: the word has no start_char"):
        list(read_offsets(file, "conllu"))
    (tmp_path / "x.ptb.offsets").write_text("0:1 1-2\n")
    with pytest.raises(InputError, match=r"offsets:1: is not a list of START:END"):
        list(read_offsets(tmp_path / "x.ptb", "ptb"))


def test_trees_that_were_packed_keep_their_offsets(tmp_path):
    (tmp_path / "x.ptb.gz").write_bytes(gzip.compress(b"(A b)\n"))
    (tmp_path / "x.ptb.offsets").write_text("0:1\n")
    assert list(read_offsets(tmp_path / "x.ptb.gz", "ptb")) == [[(0, 1)]]


def test_bracket_files_hold_any_word_and_category():
    words = ["(", "-LRB-", "a b", "x\ty", "-LSB-", "}"]
    tree = flat_constituents(words)
    labels = ["A (B)" if label == "XX" else label for label in tree.labels]
    text = ptb_text(Tree(tree.parents, labels, tree.words))
    reread = ptb.parse(text)
    found = [reread.labels[node] for node in reread.word_nodes()]
    assert found == ["(", "(", "a\u00a0b", "x\u00a0y", "[", "}"]
    assert reread.labels[1] == "A_-LRB-B-RRB-"


def test_words_that_the_reader_takes_for_something_else_are_written_so_that_it_reads_them():
    """Text of other tools has ``-lrb-``, and a page of settings ``0=off``: a whole parse ended there."""
    for words, wanted in [
        (["a", "-lrb-", "-lsb-x"], ["a", "(", "[x"]),
        (["0=off", "1=on"], ["0＝off", "1=on"]),
        (["0=off", "0=on"], ["0=off", "0=on"]),
    ]:
        reread = ptb.parse(ptb_text(flat_constituents(words)))
        assert [reread.labels[node] for node in reread.word_nodes()] == wanted
        text = " ".join(words)
        check_spelling(wanted, white_space_words(text).spans, text)


def test_a_number_of_any_length_before_an_equals_sign_is_a_word():
    assert ptb.parse(f"(A {'1' * 5000}=x)").labels[1].endswith("=x")


@given(constituency_trees())
@settings(deadline=None, max_examples=40)
def test_the_structure_survives_brackets(tree):
    wrapped = join_constituents([tree])
    assert ptb.parse(ptb_text(wrapped)).parents.tolist() == wrapped.parents.tolist()
