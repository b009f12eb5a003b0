"""Tree files: what is written is read back exactly."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.helpers import BARE, CONLLU, EMPTY, JSONL, LINE_FORMATS, MRG, PROLOG, PTB, SEXPR
from support.strategies import any_labels, constituency_trees, dependency_trees, rich_trees, trees

from treesyntax.errors import TreeError
from treesyntax.trees.formats import FORMATS, parse_tree, read_trees, write_trees
from treesyntax.trees.tree import Tree

anything = st.one_of(
    rich_trees(), trees(any_labels), trees(), dependency_trees(), constituency_trees()
)


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


@pytest.mark.parametrize(
    ("text", "name"), [("(S (X it))", "ptb"), ('["S", "it"]', "jsonl"), ("( f x )", "sexpr")]
)
def test_the_tree_of_a_line_may_have_the_end_of_the_line(text, name):
    assert parse_tree(f"{text}\n", name) == parse_tree(text, name)
    with pytest.raises(TreeError, match="a tree spans several lines|a line end inside a record"):
        parse_tree(f"{text}\n\n", name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("# text = it\n1\tit\t_\t_\t_\t_\t0\troot\t_\t_\n\n", "conllu"),
        ("(S\n  (X it))\n", "mrg"),
        ("(S (X it))\n", "ptb"),
        ('["S", "it"]\n', "jsonl"),
    ],
)
def test_a_string_may_have_the_line_ends_and_the_mark_of_windows(text, name):
    """As a file that Python read with ``newline=""`` has, or a string of JSON."""
    assert parse_tree("\ufeff" + text.replace("\n", "\r\n"), name) == parse_tree(text, name)


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
