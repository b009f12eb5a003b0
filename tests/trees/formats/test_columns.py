"""Slices of a long text, all at once, against one slice after another."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from treesyntax.trees.formats.columns import BYTES, WORDS, slices, strings

ALPHABET = ["a", "b", "?", "(", "\0", "\x7f", "\x80", "é", "ÿ", "ÿ?", "ж", "語", "😀", "\ud800"]


@settings(deadline=None, max_examples=400)
@given(st.data(), st.sampled_from([ALPHABET[:6], ALPHABET]))
def test_strings_are_the_slices(data: st.DataObject, alphabet: list[str]) -> None:
    text = data.draw(st.lists(st.sampled_from(alphabet), max_size=30).map("".join)) + "\n"
    places = data.draw(st.lists(st.tuples(*[st.integers(0, len(text) - 1)] * 2), max_size=30))
    starts, ends = (np.array([f(place) for place in places], np.int64) for f in (min, max))
    expected = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    assert slices(text, starts, ends) == expected
    different, which = strings(text, starts, ends)
    assert [different[number] for number in which] == expected
    short = [string for string in different if string.isascii() and len(string) <= WORDS * BYTES]
    if text.isascii():
        assert len(set(short)) == len(short)
