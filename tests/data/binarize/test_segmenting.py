"""Words segmented together have the pieces of words segmented alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.binarize_helpers import FORMS, SPACES, make_models

from treesyntax.data.binarize.lexicon import Lexicon
from treesyntax.data.sentencepiece import Segmenter
from treesyntax.trees.formats.columns import Strings


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> dict[str, Path | None]:
    return make_models(tmp_path_factory.mktemp("models"))


@settings(deadline=None, max_examples=200)
@given(st.lists(st.sampled_from([*FORMS, *SPACES]), max_size=8).map("".join))
def test_parts_segmented_together_have_the_pieces_of_parts(models, text):
    segmenter = Segmenter(models["unigram"])
    (alone,) = segmenter.segments([" " + text])
    (together,) = segmenter.parts([" " + text])
    assert together in (alone, [])
    assert segmenter.words([text]) == segmenter.lines([text])
    if text and text.isascii() and text.split() == [text]:
        assert together == alone


def test_what_is_known_is_forgotten_when_there_is_too_much_of_it(models, monkeypatch):
    monkeypatch.setattr("treesyntax.data.binarize.lexicon.MOST_STRINGS", 3)
    lexicon = Lexicon(Segmenter(models["bpe"]), placed=False)
    for words in (["the", "cat"], ["cat", "sleeps", "the"], ["the", "."], ["the", "the", "cat"]):
        assert lexicon.is_full == (words[-1] == "cat" and len(words) == 3)
        if lexicon.is_full:
            lexicon.forget()
        tokens = lexicon.words(Strings(words, np.arange(len(words))))
        expected = [Segmenter(models["bpe"]).line(word) for word in words]
        assert tokens.widths.tolist() == [len(pieces) for pieces in expected]
        assert [lexicon.symbols[n] for n in tokens.ids] == [p for own in expected for p in own]
        assert not tokens.faults.any()
