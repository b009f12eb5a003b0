"""Subword models made elsewhere: lines must come back from their subwords, and what changes is counted."""

from __future__ import annotations

import json

from sentencepiece import SentencePieceTrainer
from support.binarize_helpers import binarize, refused, write

from treesyntax.data.sentencepiece import Segmenter

LINES = ["the cat sat on the mat", "a dog barked at ½ a cat", "new york is big", ""]


def model(folder, **settings):
    path = folder / "given.model"
    with path.open("wb") as stream:
        SentencePieceTrainer.train(
            sentence_iterator=iter(LINES * 50), model_writer=stream, vocab_size=60,
            hard_vocab_limit=False, minloglevel=2, **settings,
        )  # fmt: skip
    return path


def test_what_a_model_spells_otherwise_is_counted(files, tmp_path, capsys):
    given = model(tmp_path)
    write(files["text"], LINES * 5)
    write(files["ptb"], ["(S (NP a) (VP b))"] * 20)
    dest = binarize(files, "--target-subword-model", given)
    said = f"{files['text']}:2: 5 of 20 first lines hold characters that the subword model spells other"
    assert said in capsys.readouterr().out
    sides = json.loads((dest / "binarize.json").read_text())["sides"]
    assert sides["target"]["subword_remarks"][0]["text"].startswith(said)
    assert sides["source"]["subword_remarks"] == []


def test_a_model_across_words_is_refused_for_trees_and_taken_for_text(files, tmp_path, capsys):
    given = model(tmp_path, split_by_whitespace=False, max_sentencepiece_length=30)
    piece = Segmenter(given).piece_across_words
    assert "▁" in piece.strip("▁")
    write(files["text"], LINES[:1] * 20)
    write(files["ptb"], ["(S (NP a) (VP b))"] * 20)
    message = refused(files, capsys, "--source-subword-model", given)
    assert f"has subwords across words, such as '{piece}', and a node of a tree is" in message
    binarize(files, "--target-subword-model", given)


def test_white_space_behind_all_words_but_the_last_is_refused_for_trees(files, tmp_path, capsys):
    given = model(tmp_path, treat_whitespace_as_suffix=True, add_dummy_prefix=False)
    write(files["text"], LINES[:1] * 20)
    write(files["ptb"], ["(S (NP the) (VP mat))"] * 20)
    message = refused(files, capsys, "--source-subword-model", given)
    assert "puts white space behind all words but the last" in message
    binarize(files, "--target-subword-model", given)


def test_a_line_that_does_not_come_back_is_refused(files, tmp_path, capsys, monkeypatch):
    given = model(tmp_path)
    write(files["text"], LINES[:1] * 20)
    write(files["ptb"], ["(S (NP a) (VP b))"] * 20)
    monkeypatch.setattr(
        Segmenter, "text", lambda self, subwords: "".join(subwords).replace("▁", "")
    )
    message = refused(files, capsys, "--target-subword-model", given)
    assert (
        f"{files['text']}:1: the subwords of subwords.sv.model spell 'thecatsatonthemat' where"
        in message
    )
    assert "the text has 'the cat sat on the mat'; give another subword model" in message
