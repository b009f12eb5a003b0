"""spaCy with a tiny real model."""

from __future__ import annotations

import pytest
from support.parser_fixtures import parse, words_of

from treesyntax.errors import OptionError
from treesyntax.parsers import ParserConfig, load_parser

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


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("empty", r"is no spaCy pipeline"),
        ("blank", r"has no component named parser"),
        (
            "xx_no_such_model",
            r"no spacy model 'xx_no_such_model' among the installed packages; .*--download",
        ),
    ],
)
def test_spacy_models_that_are_not_there(model, message, tmp_path):
    import spacy

    (tmp_path / "empty").mkdir()
    spacy.blank("en").to_disk(tmp_path / "blank")
    path = tmp_path / model
    with pytest.raises(OptionError, match=message):
        load_parser(ParserConfig("spacy", str(path) if path.exists() else model))
