"""Hostile input: a clear error or a tree, quickly, whatever the bytes are."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reliability.figures import amount

from treesyntax.errors import InputError, TreeError
from treesyntax.trees.formats import FORMATS, read_trees
from treesyntax.trees.tree import Tree

DEEP = amount(10_000, 30_000)
SECONDS = 20
LINE_FORMATS = [FORMATS[name] for name in ("ptb", "sexpr", "sexpr_bare", "prolog", "jsonl")]
every_format = pytest.mark.parametrize("entry", FORMATS.values(), ids=FORMATS)

PIECES = [
    *"()[]{},;'\" \t\n\r\0\\\u2028\x85\x0b\x1c\ufeff\ud80010-_#:éa=",
    *("\\+", "1-2", "-LRB-", '"parents"', '"labels"', "[-1]", "null", "if", "let", "a0"),
]
soup = st.one_of(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.text(max_size=50))


def attempt(parse: Callable[[str], Tree], text: str) -> Tree | None:
    """The tree, or None for an error, which must be short, on one line and quick."""
    begin = time.process_time()
    message, tree = "", None
    try:
        tree = parse(text)
    except TreeError as error:
        message = str(error)
    assert time.process_time() - begin < SECONDS
    assert bool(message) != isinstance(tree, Tree)
    assert "\n" not in message
    assert len(message) < 400
    return tree


@every_format
@settings(deadline=None, max_examples=80)
@given(text=soup)
def test_any_text_is_a_tree_or_a_tree_error(entry, text):
    tree = attempt(entry.parse, text)
    if tree is not None:
        assert tree == Tree(tree.parents, tree.labels, tree.words, tree.relations, tree.branches)


@every_format
@settings(deadline=None, max_examples=40)
@given(label=st.one_of(soup, st.sampled_from(["", " ", "()", "\\+", "#", "1-2", "\u2028"])))
def test_any_label_is_kept_or_refused(entry, label, tmp_path_factory):
    candidates = [
        Tree([-1, 0], [label, label], [-1, 0]),
        Tree([-1, 0, 0], [label, label, "a"]),
        Tree.from_heads([0, 1], [label, "a"], [label, "r"]),
        Tree([-1], [label]),
    ]
    path = tmp_path_factory.mktemp("labels") / "trees"
    for tree in candidates:
        try:
            text = entry.write(tree)
        except TreeError:
            continue
        path.write_text(text + entry.end + text + entry.end, encoding="utf-8", newline="\n")
        if text.count("\0") > 1 and 5 * text.count("\0") > len(text):  # may be taken for UTF-16
            continue
        assert list(read_trees(path, entry.name)) == [tree, tree]


def deep_texts(name: str) -> list[str]:
    """Nested very deep: balanced, too many opened, too many closed, only opened or closed."""
    if name in ("for", "lambda"):
        before, after, core = "( ", " )", "a0 = 1" if name == "for" else "unit"
        return [before * DEEP + core + after * n for n in (DEEP, DEEP - 1, DEEP + 1, 0)]
    before, after, core = {
        "ptb": ("(X ", ")", "x"),
        "mrg": ("(X\n", ")", "x"),
        "sexpr": ("( f ", " )", "x"),
        "sexpr_bare": ("( f ", " )", "x"),
        "prolog": ("f ( ", " )", "x"),
        "jsonl": ('["f", ', "]", '"x"'),
        "coffeescript": ("( ", " )", "x"),
        "javascript": ("{ ", " }", "x ;"),
        "cogs": ("LAMBDA a . ", "", "f ( a )"),
        "cogs_varfree": ("f ( a = ", " )", "x"),
        "funql": ("( or ", " )", "x"),
    }[name]
    return [
        *(before * DEEP + core + after * count for count in (DEEP, DEEP - 1, DEEP + 1, 0)),
        before.split()[0].rstrip("fX ") * DEEP,
        after * DEEP,
    ]


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "conllu"])
def test_deep_nesting_is_quick_and_read_where_it_is_balanced(name):
    tree, *_ = [attempt(FORMATS[name].parse, text) for text in deep_texts(name)]
    if name in ("ptb", "sexpr", "sexpr_bare", "prolog", "jsonl", "mrg"):
        assert len(tree) >= DEEP + 1
        assert tree.depths.max() >= DEEP
        assert FORMATS[name].parse(FORMATS[name].write(tree)) == tree


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ptb", "(" * DEEP + "(S a)" + ")" * DEEP),
        ("prolog", "(" * DEEP + "a" + ")" * DEEP),
        ("prolog", "\\+" * DEEP + "a"),
        ("prolog", "a," * DEEP + "a"),
        ("prolog", "'\\" * DEEP),
        ("prolog", "' " * DEEP + "'"),
        ("prolog", "''" * DEEP + "'"),
        ("jsonl", '"\\' * DEEP),
        ("jsonl", '"a"' * DEEP),
        ("jsonl", '["a"' + ',"a"' * DEEP + "]"),
        ("jsonl", "-" * DEEP),
        ("jsonl", "[" + "9" * DEEP + "]"),
        ("jsonl", '{"parents": [' + "9" * DEEP + '], "labels": []}'),
        ("jsonl", '{"parents": [-1], "labels": ["' + "a" * DEEP),
        ("sexpr", "()" * DEEP),
        ("sexpr", "(" + "()" * DEEP + ")"),
        ("conllu", "1\tw\t_\t_\t_\t_\t" + "9" * DEEP + "\tr\t_\t_"),
        ("conllu", "9" * DEEP + "\tw\t_\t_\t_\t_\t0\tr\t_\t_"),
        ("conllu", "\t" * DEEP),
        ("mrg", "\n" * DEEP + "(S a)"),
    ],
    ids=lambda value: value[:12].strip(),
)
def test_repetitive_lines_are_quick(name, text):
    attempt(FORMATS[name].parse, text)


def test_a_sentence_of_very_many_words():
    rows = (f"{w}\tw\t_\t_\t_\t_\t{w - 1}\tr\t_\t_" for w in range(1, DEEP + 1))
    tree = FORMATS["conllu"].parse("\n".join(rows))
    assert tree.depths.max() == DEEP - 1
    assert FORMATS["conllu"].parse(FORMATS["conllu"].write(tree)) == tree


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("ptb", "(X {})"),
        ("ptb", "({} x)"),
        ("mrg", "(X\n{})"),
        ("sexpr", "( f {} )"),
        ("sexpr_bare", "{}"),
        ("prolog", "f ( {} )"),
        ("prolog", "'{}'"),
        ("jsonl", '["f", "{}"]'),
        ("conllu", "1\t{}\t_\t_\t_\t_\t0\troot\t_\t_"),
    ],
)
def test_a_token_of_a_million_characters(name, frame):
    token = "é1\0" * 333_333 + "x" if "[" not in frame else "é1" * 500_000
    tree = attempt(FORMATS[name].parse, frame.format(token))
    assert tree is not None
    assert any(token in label for label in tree.labels)
    assert FORMATS[name].parse(FORMATS[name].write(tree)) == tree


@pytest.mark.parametrize("frame", ["{}", "(X {}", "( f {} ) )", "f ( {}", '"{}', "{} {}", "'{}"])
@every_format
def test_errors_stay_short_for_long_tokens(entry, frame):
    token = "x" * 1_000_000
    attempt(entry.parse, frame.format(token, token))


@every_format
def test_errors_stay_short_for_long_labels(entry):
    token = " )" + "x" * 1_000_000
    for tree in (Tree([-1, 0], [token, token]), Tree.from_heads([0], [f"\t{token}"])):
        attempt(lambda _, tree=tree: entry.parse(entry.write(tree)), "")


@pytest.mark.parametrize("entry", LINE_FORMATS, ids=lambda entry: entry.name)
def test_mixed_line_ends_and_separators_keep_the_lines(entry, tmp_path):
    tree = Tree([-1, 0], ["a", "b\u2028\x85\ufeff\x1cc"], [-1, 0] if entry.name == "ptb" else None)
    line = entry.write(tree)
    path = tmp_path / "mixed"
    path.write_bytes("\n".join([line, line + "\r", "\r", line, "", line]).encode())
    expected = [2, 2, 0, 2, 0, 2]
    assert [len(found) for found in read_trees(path, entry.name)] == expected


@pytest.mark.parametrize("ends", ["\r\n\r\n", "\n\n", "\r\r", "\n\r\n"])
def test_conllu_takes_any_line_end(ends, tmp_path):
    row = "1\ta\u2028b\t_\t_\t_\t_\t0\troot\t_\t_"
    path = tmp_path / "mixed"
    path.write_bytes(f"{row}{ends}{row}".encode())
    assert [tree.labels for tree in read_trees(path, "conllu")] == [("a\u2028b",)] * 2


def test_a_carriage_return_in_the_text_of_conllu_is_named(tmp_path):
    path = tmp_path / "returns"
    path.write_bytes(b"# text = a\rb\n1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n")
    with pytest.raises(InputError, match="returns:1: holds a carriage return inside a line"):
        list(read_trees(path, "conllu"))


@every_format
def test_bytes_that_are_not_utf8_are_located(entry, tmp_path):
    path = tmp_path / "latin1"
    path.write_bytes(b"\n\n(S caf\xe9)\n")
    with pytest.raises(InputError, match="latin1:3: byte 7 is not UTF-8; convert the file first"):
        list(read_trees(path, entry.name))


def test_a_javascript_program_that_would_take_all_memory_is_refused():
    with pytest.raises(TreeError, match=r"1,048,577 bytes, more than 1,048,576; take shorter"):
        FORMATS["javascript"].parse("(" * ((1 << 20) + 1))
