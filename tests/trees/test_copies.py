"""Which target symbols a source word is copied to."""

from __future__ import annotations

import pytest

import treesyntax as ts
from treesyntax.trees.copies import (
    Placeholders,
    copied_forms,
    copied_label,
    copy_table,
    placeholder,
    with_words,
)
from treesyntax.trees.linearizations import TreeText

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]


@pytest.mark.parametrize(
    ("symbol", "linearization", "label"),
    [
        ("a/0", "words", "a/0"), ("a", "", "a"), ("S", "bracketed", "S"),
        ("\\(", "bracketed", "("), ("\\\\x", "bracketed_twice", "\\x"), ("\\(", "words", "\\("),
        ("(S", "bracketed", None), (")", "bracketed", None), (")", "bracketed_twice", None),
        ("a/0", "nary_dfs", "a"), ("a/2", "nary_bfs", None), ("1/2/0", "nary_dfs", "1/2"),
        ("a/0", "lcrs_dfs", "a"), ("a/R", "lcrs_bfs", "a"), ("a/L", "lcrs_dfs", None),
        ("a/LR", "lcrs_dfs", None),
    ],
)  # fmt: skip
def test_a_word_is_a_token_or_a_leaf(symbol, linearization, label):
    assert copied_label(symbol, linearization) == label


def test_a_copied_leaf_keeps_its_arity():
    assert copied_forms("a", "words") == copied_forms("a", "bracketed") == ["a"]
    assert copied_forms("a", "nary_bfs") == ["a/0"]
    assert copied_forms("a", "lcrs_dfs") == ["a/0", "a/R"]


def test_the_table_holds_the_ids_of_all_forms_that_the_target_has():
    source = [*SPECIALS, "b", "a", "<unk>/0", "c"]
    target = [*SPECIALS, "a/0", "b/LR", "b/R", "a/R", "b/2", "<unk>/0"]
    assert copy_table(source, target, ("preorder", "lcrs_dfs")).tolist() == [
        [-1, -1, -1, -1, -1, 4, -1, -1],
        [-1, -1, -1, -1, 6, 7, -1, -1],
    ]
    joined = [*SPECIALS, "a/0", "a/2", "<unk>/0"]
    assert copy_table(joined, joined, ("nary_dfs",) * 2).tolist() == [[-1, -1, -1, -1, 4, -1, -1]]


@pytest.mark.parametrize("linearization", ["bracketed", "bracketed_twice"])
def test_words_that_look_like_brackets_are_copied_as_leaves(linearization: str):
    """Else a bracket of the text would open or close one of the tree."""
    text = "(S (-LRB- -LRB-) (NN -LRB-x) (-RRB- -RRB-))"
    target = ts.get_linearization(linearization).tokens(ts.parse_tree(text, "ptb"))
    symbols = [*SPECIALS, *dict.fromkeys(target)]
    words = ["(", "(x", ")"]
    (ids,) = copy_table([*SPECIALS, *words], symbols, ("words", linearization)).tolist()
    assert [symbols[index] for index in ids[len(SPECIALS) :]] == ["\\(", "\\(x", "\\)"]
    # The same words, all unknown, by their numbers.
    marks = list(map(placeholder, range(len(words))))
    known = [
        *SPECIALS,
        *(symbol for symbol in symbols if copied_label(symbol, linearization) is None),
    ]
    known += marks
    numbers = [known.index(token) if token in known else 3 for token in target]
    Placeholders(known, [3], linearization).number(numbers, target, words, new=False)
    tokens = [known[index] for index in numbers]
    assert [token for token in tokens if token in marks] == marks
    line = " ".join(with_words(tokens, words, linearization))
    assert TreeText(linearization, "ptb").text(line) == text
