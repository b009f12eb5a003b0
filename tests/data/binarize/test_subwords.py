"""Subword models and given pieces in ``treesyntax binarize``."""

from __future__ import annotations

import pytest
from support.binarize_helpers import (
    SHARED,
    WORDS_OF_TREES,
    binarize,
    check_store,
    folder_bytes,
    read,
    write,
)

from treesyntax.data.sentencepiece import Segmenter, train_model
from treesyntax.data.tree_store import TreeStore
from treesyntax.trees.formats import read_trees
from treesyntax.trees.linearizations import get_linearization
from treesyntax.trees.subwords import attach, linearize


@pytest.mark.parametrize("policy", ["siblings", "copy"])
@pytest.mark.parametrize("linearization", ["words", "preorder"])
def test_pieces_of_a_model_are_attached_to_the_trees(files, policy, linearization):
    model = files["bad"]
    train_model(WORDS_OF_TREES * 4, 23, "unigram", model, "x")
    dest = binarize(
        files,
        "--source-subword-model",
        model,
        "--subword-policy",
        policy,
        "--source-linearization",
        linearization,
    )
    segmenter = Segmenter(model)
    expected = []
    for tree in read_trees(files["ptb"], "ptb"):
        words = [tree.labels[node] for node in tree.word_nodes()]
        segmented = attach(tree, segmenter.words(words), policy)
        expected.append((segmented.tree, *linearize(segmented, get_linearization(linearization))))
    assert read(dest, "train", "en") == [tokens for _, tokens, _ in expected]
    check_store(dest, "train.en-sv.en", [(tree, nodes) for tree, _, nodes in expected])
    assert (dest / "subwords.en.model").read_bytes() == model.read_bytes()


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
        files, "--train", files["ptb"], lambdas, "--target-format", "sexpr",
        "--subword-vocab", 23,
    )  # fmt: skip
    assert read(dest, "train", "sv")[0] == ["argmax", "city", "x", "y"]
    assert (
        "dictionary sv: 16 symbols, no subwords: its trees have no words" in capsys.readouterr().out
    )
    assert not (dest / "subwords.sv.model").exists()


@pytest.mark.parametrize(
    ("style", "pieces"),
    [
        ("sentencepiece", ["▁the ▁ca t ▁sleep s", "▁dogs ▁bark ▁at ▁cat s", "", "▁(", "▁t h e ▁dog ▁s"]),
        ("subword-nmt", ["the ca@@ t sleep@@ s", "dogs bark at cat@@ s", "", "(", "t@@ h@@ e dog s"]),
    ],
)  # fmt: skip
def test_given_pieces_are_attached(files, style, pieces):
    segmented = write(files["bad"], pieces * 4)
    dest = binarize(
        files,
        "--source-pieces",
        segmented,
        "--pieces-style",
        style,
        "--source-linearization",
        "words",
    )
    assert read(dest, "train", "en") == [line.split() for line in pieces * 4]
    store = TreeStore(dest / "train.en-sv.en.tree")
    # (S (NP (D the) (N ca t)) (VP (V sleep s)))
    assert store[0].parents.tolist() == [-1, 0, 1, 2, 1, 4, 4, 0, 7, 8, 8]
    assert store[0].token_nodes.tolist() == [3, 5, 6, 9, 10]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data sets are not here")
def test_gold_dependency_trees_and_their_text_give_the_same_pieces(files):
    treebank = SHARED / "treebanks" / "UD_English-LinES" / "test.conllu.gz"
    target = SHARED / "lines_ensv" / "test.sv"
    words = [
        " ".join(" ".join(tree.labels[node] for node in tree.word_nodes()).split())
        for tree in read_trees(treebank, "conllu")
    ]
    text = write(files["bad"], words)
    options = ("--subword-vocab", 1500, "--source-linearization", "words")
    trees = folder_bytes(
        binarize(files, *options, "--train", treebank, target, "--source-format", "conllu")
    )
    plain = folder_bytes(
        binarize(files, *options, "--train", text, target, "--source-format", "text", "--overwrite")
    )
    for name in ("train.en-sv.en.bin", "train.en-sv.en.idx", "dict.en.txt", "subwords.en.model"):
        assert trees[name] == plain[name]
    assert len(words) == 914
