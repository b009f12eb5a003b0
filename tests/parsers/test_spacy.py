"""spaCy with a tiny real model."""

from __future__ import annotations

import pytest
from support.parser_fixtures import parse, words_of

from treesyntax.errors import OptionError
from treesyntax.parsers.spacy_parser import rule_splitter

pytestmark = pytest.mark.usefixtures("no_network")


def test_spacy_runs_only_what_its_parser_needs(loaded):
    assert loaded("spacy")._nlp.pipe_names == ["tok2vec", "parser"]


def test_white_space_is_no_word_for_spacy(loaded):
    (result,) = parse(loaded, "spacy", ["  The  cat \u3000 sees . "])
    assert words_of(result) == ["The", "cat", "sees", "."]
    assert result.spans == ((2, 5), (7, 10), (13, 17), (18, 19))


def test_pretokenised_lines_are_one_sentence_for_spacy(loaded):
    line = "The cat sees . The dog sees . A dog ."
    (result,) = parse(loaded, "spacy", [line], pretokenized=True)
    assert result.case == ""
    assert result.tree.heads().count(0) == 1


def test_rules_that_split_chinese_into_characters_are_refused():
    with pytest.raises(
        OptionError, match=r"split 'zh' into characters, not words; .*--pretokenized"
    ):
        rule_splitter("zh")
    (sentence,) = rule_splitter("en")("He ran.")
    assert sentence.words == ("He", "ran", ".")
