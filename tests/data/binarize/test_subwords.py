"""Subword models and given pieces in ``treesyntax binarize``."""

from __future__ import annotations

import pytest
from support.binarize_helpers import (
    binarize,
    folder_bytes,
    read,
    refused,
    write,
)

from treesyntax.data.sentencepiece import Segmenter, train_model
from treesyntax.data.tree_store import TreeStore


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_the_text_baseline_and_the_words_linearization_have_the_same_pieces(files, kind):
    options = ("--subword-vocab", 23, "--subword-type", kind, "--source-linearization", "words")
    from_trees = folder_bytes(binarize(files, *options))
    from_text = folder_bytes(binarize(files, *options, "--overwrite", trees=False))
    for name in ("train.en-sv.en.bin", "train.en-sv.en.idx", "dict.en.txt", "subwords.en.model"):
        assert from_trees[name] == from_text[name]


def test_joined_subwords_are_one_model(files):
    dest = binarize(files, "--subword-vocab", 33, "--joined-subwords")
    models = [(dest / f"subwords.{language}.model").read_bytes() for language in ("en", "sv")]
    assert models[0] == models[1]
    assert all(Segmenter(dest / "subwords.en.model").line(word) for word in ("katten", "dogs"))


def test_trees_without_words_keep_whole_symbols(files, capsys):
    lambdas = write(files["bad"], ["( argmax ( city x ) y )", "z"] * 10)
    dest = binarize(
        files, "--train", lambdas, files["text"], "--source-format", "sexpr", "--subword-vocab", 23,
    )  # fmt: skip
    assert read(dest, "train", "en")[0] == ["argmax", "city", "x", "y"]
    assert (
        "dictionary en: 16 symbols, no subwords: its trees have no words" in capsys.readouterr().out
    )
    assert not (dest / "subwords.en.model").exists()


def test_a_model_that_cuts_nothing_as_trees_have_no_words_is_told(files, tmp_path, capsys):
    model = tmp_path / "given.model"
    train_model(["the cat sleeps"] * 9, 13, "unigram", model, "text")
    lambdas = write(files["bad"], ["( argmax ( city x ) y )", ""] * 10)
    options = ("--train", lambdas, files["text"], "--source-format", "sexpr")
    dest = binarize(files, *options, "--source-subword-model", model)
    assert read(dest, "train", "en")[0] == ["argmax", "city", "x", "y"]
    said = "10 of 20 first lines have no words; the subword model cuts none of their labels"
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("style", "pieces"),
    [
        ("sentencepiece", ["▁the ▁ca t ▁sleep s", "▁dogs ▁bark ▁at ▁cat s", "", "▁(", "▁t h e ▁dog ▁s"]),
        ("subword-nmt", ["the ca@@ t sleep@@ s", "dogs bark at cat@@ s", "", "(", "t@@ h@@ e dog s"]),
    ],
)  # fmt: skip
def test_given_pieces_are_attached(files, style, pieces):
    segmented = write(files["bad"], pieces * 4)
    options = ("--source-pieces", segmented, "--pieces-style", style)
    dest = binarize(files, *options, "--source-linearization", "words")
    assert read(dest, "train", "en") == [line.split() for line in pieces * 4]
    store = TreeStore(dest / "train.en-sv.en.tree")
    # (S (NP (D the) (N ca t)) (VP (V sleep s)))
    assert store[0].parents.tolist() == [-1, 0, 1, 2, 1, 4, 4, 0, 7, 8, 8]
    assert store[0].token_nodes.tolist() == [3, 5, 6, 9, 10]


@pytest.mark.parametrize(
    ("style", "pieces"),
    [("sentencepiece", "▁a ▁10 ▁0 00 ▁b c ▁d"), ("subword-nmt", "a 10 0@@ 00 b@@ c d")],
)
@pytest.mark.parametrize("word", ["10 000", "10\u00a0000"])
def test_a_word_with_spaces_has_all_subwords_of_its_parts(files, style, pieces, word):
    """To subword models French ``10 000`` is two words, to Universal Dependencies it is a single one."""
    heads = (("a", 0), (word, 1), (" ", 1), ("bc", 2), ("d", 2))
    rows = [
        f"{i}\t{form}" + "\t_" * 4 + f"\t{head}\tx\t_\t_" for i, (form, head) in enumerate(heads, 1)
    ]
    trees = write(files["bad"], [*rows, ""])
    segmented, text = files["bad"].with_name("pieces"), files["bad"].with_name("t.sv")
    dest = binarize(
        files, "--train", trees, write(text, ["x"]), "--source-format", "conllu", "--source-subwords",
        write(segmented, [pieces]), "--subwords-style", style, "--subword-policy", "copy",
    )  # fmt: skip
    assert read(dest, "train", "en") == [pieces.split()]
    assert TreeStore(dest / "train.en-sv.en.tree")[0].token_nodes.tolist() == [0, 1, 1, 1, 2, 2, 3]


def test_given_pieces_of_another_line_are_refused(files, capsys):
    pieces = ["▁dogs ▁s l ▁eep", "▁dogs ▁bark ▁at ▁cat s", "", "▁(", "▁t h e ▁dog ▁s"]
    segmented = write(files["bad"], pieces * 4)
    message = refused(files, capsys, "--source-pieces", segmented)
    told = (
        f"the subwords spell 'dogs' where the tree at {files['ptb']}:1 has 'the'; segment the very"
    )
    assert f"{segmented}:1: {told}" in message
    pieces[0] = "▁THE ▁ca t ▁slept"
    binarize(files, "--source-pieces", write(files["bad"], pieces * 4))
    told = f"{files['ptb']}:1: 8 of 20 trees hold words that their subwords spell otherwise; check"
    assert told in capsys.readouterr().out
