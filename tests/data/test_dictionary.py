"""Dictionaries: their files are those of fairseq."""

from __future__ import annotations

from collections import Counter

import pytest
from fairseq.data import Dictionary as FairseqDictionary
from hypothesis import given, settings
from hypothesis import strategies as st

from treesyntax.data.dictionary import UNK, Dictionary
from treesyntax.errors import InputError

tokens_of_text = st.sampled_from(
    ["a", "b", "c", "é", "猫", "madeupword0000", "madeupword0002", "1", "#fairseq:overwrite", "#"]
)


def fairseq_dictionary(counts, threshold, size) -> FairseqDictionary:
    dictionary = FairseqDictionary()
    for symbol, count in counts.items():
        dictionary.add_symbol(symbol, count)
    dictionary.finalize(threshold=threshold, nwords=size, padding_factor=8)
    return dictionary


@settings(deadline=None, max_examples=60)
@given(
    tokens=st.lists(tokens_of_text, max_size=40),
    threshold=st.integers(0, 4),
    size=st.sampled_from([0, 5, 7, 9, 100]),
)
def test_dictionary_is_that_of_fairseq_preprocess(tmp_path_factory, tokens, threshold, size):
    path = tmp_path_factory.mktemp("dict") / "dict.en.txt"
    counts = Counter(tokens)
    ours = Dictionary.build(counts, threshold, size)
    ours.write(path)
    theirs = fairseq_dictionary(dict(sorted(counts.items())), threshold, size)
    assert ours.symbols == theirs.symbols
    loaded = FairseqDictionary.load(str(path))
    assert loaded.symbols == ours.symbols
    assert [loaded.index(token) for token in tokens] == [ours.index(token) for token in tokens]
    again = Dictionary.read(path)
    assert (again.symbols, again.counts) == (ours.symbols, ours.counts)


NASTY = ["<s>", "</s>", "<pad>", "<unk>", "a\nb", "a\rb", "\n", "", "\ud800"]
ODD_BUT_HELD = ["a b", " ", "a ", " a", "a\u00a0", "a\u2028b", "a\x0b", "\ufeffx", "5", "a 5"]


def test_symbols_the_file_cannot_hold_are_unknown_and_never_special(tmp_path):
    path = tmp_path / "dict.en.txt"
    dictionary = Dictionary.build(dict.fromkeys((*NASTY, *ODD_BUT_HELD), 9))
    dictionary.write(path)
    loaded = FairseqDictionary.load(str(path))
    assert loaded.symbols == dictionary.symbols
    assert len(loaded) % 8 == 0
    assert {dictionary.index(symbol) for symbol in NASTY} == {UNK}
    held = [dictionary.index(symbol) for symbol in ODD_BUT_HELD]
    assert held == [loaded.index(symbol) for symbol in ODD_BUT_HELD]
    assert min(held) > UNK
    assert Dictionary.read(path).symbols == dictionary.symbols


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the 3\nof", r":2: 'of' is not a symbol and its count; one of each"),
        ("the three\n", r":1: 'the three' is not a symbol and its count"),
        ("the 3\nthe 3\n", r":2: the symbol 'the' already exists; remove one of the lines"),
        ("<pad> 3\n", r":1: the symbol '<pad>' already exists; remove the line; <s> <pad>"),
        ("a 1 #fairseq:overwrite\n", r":1: .* is not a symbol and its count"),
    ],
)
def test_a_bad_dictionary_is_refused_with_its_line(tmp_path, text, message):
    path = tmp_path / "dict.en.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=r"dict\.en\.txt" + message):
        Dictionary.read(path)
