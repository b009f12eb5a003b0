"""``treesyntax binarize`` from files to files, read back with fairseq."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import re

import pytest
from fairseq.data import Dictionary
from support.binarize_helpers import (
    CONLLU,
    CONTEXTS,
    TEXT,
    binarize,
    check_store,
    folder_bytes,
    read,
    write,
)

from treesyntax.__main__ import main
from treesyntax.data.binarize import read as binarize_read
from treesyntax.data.tree_store import TreeStore
from treesyntax.trees.formats import read_trees
from treesyntax.trees.linearizations import get_linearization


@pytest.mark.parametrize("linearization", ["words", "preorder", "bracketed", "bracketed_twice"])
def test_fairseq_and_the_store_give_back_tokens_and_trees(files, linearization):
    valid = ("--valid", files["valid_ptb"], files["valid_text"])
    dest = binarize(files, *valid, "--source-linearization", linearization)
    trees = list(read_trees(files["ptb"], "ptb"))
    shown = get_linearization(linearization)
    assert read(dest, "train", "en") == [shown.tokens(tree) for tree in trees]
    assert read(dest, "train", "sv") == [line.split() for line in TEXT * 4]
    check_store(dest, "train.en-sv.en", [(tree, shown.token_nodes(tree)) for tree in trees])
    valid = list(read_trees(files["valid_ptb"], "ptb"))
    check_store(dest, "valid.en-sv.en", [(tree, shown.token_nodes(tree)) for tree in valid])
    assert not (dest / "train.en-sv.sv.tree").exists()
    assert read(dest, "valid", "sv") == [["hundar"], ["<unk>"]]
    assert TreeStore(dest / "train.en-sv.en.tree").linearization == linearization


@pytest.mark.parametrize("workers", [1, 2])
def test_what_was_left_out_of_trees_is_counted_on_screen_and_in_the_manifest(
    files, capsys, monkeypatch, workers
):
    """Batch by batch, and once for each kind and file."""
    monkeypatch.setattr(binarize_read, "BATCH_SENTENCES", 3)
    with_trace = "(S (NP (-NONE- *-1)) (VP (V sleeps) (NP (-NONE- *T*-2))))"
    write(files["ptb"], ["(S (NP cat) (VP sleeps))", with_trace] * 10)
    write(files["text"], ["katten sover", "sover"] * 10)
    dest = binarize(files, "--source-linearization", "words", "--workers", workers)
    text = f"{files['ptb']}:2: 10 of 20 trees hold traces (-NONE-), 20 in all; they are removed"
    assert capsys.readouterr().out.count(text) == 1
    counted = json.loads((dest / "binarize.json").read_text())["splits"]["train"]
    (remark,) = counted["en"]["remarks"]
    assert (remark["lines"], remark["count"], remark["line"]) == (10, 20, 2)
    assert remark["text"].startswith(text)
    assert counted["sv"]["remarks"] == []
    assert read(dest, "train", "en")[:2] == [["cat", "sleeps"], ["sleeps"]]


def test_tokens_whose_words_are_read_are_counted_where_no_text_is_given(tmp_path, capsys):
    """A model would read "va de le bois", which nobody writes; the text has "va du bois"."""
    forms = ["1|va", "2-3|du", "2|de", "3|le", "4|bois"], ["1-2|don't", "1|do", "2|n't"]
    records = []
    for text, record in zip(("va du bois", "don't"), forms, strict=True):
        rows = (row.partition("|")[::2] for row in record)
        lines = [f"{i}\t{form}" + "\t_" * 4 + f"\t{int(i[0]) - 1}\tx\t_\t_" for i, form in rows]
        records += [f"# text = {text}", *lines, ""]
    source = write(tmp_path / "a.conllu", records)
    target = write(tmp_path / "a.en", ["goes into the wood", "don't"])
    sides = ["--source-lang", "en", "--target-lang", "sv", "--source-format", "conllu"]
    files = ["--train", str(source), str(target)]
    for options, words in (
        ([], ["va", "de", "le", "bois"]),
        (["--source-text"], ["va", "du", "bois"]),
    ):
        dest = tmp_path / f"out{len(options)}"
        assert main(["binarize", str(dest), *sides, *files, *options]) == 0
        assert read(dest, "train", "en")[0] == words
        said = f"{source}:1: 1 of 2 trees holds multi-word tokens (French du = de + le)"
        assert capsys.readouterr().out.count(said) == (not options)


def test_the_summary_and_the_manifest_count_what_was_written(files, capsys):
    valid = ("--valid", files["valid_ptb"], files["valid_text"])
    dest = binarize(files, *valid, "--source-linearization", "words")
    shown = capsys.readouterr()
    assert re.search(r"train en +20 +44 +\d+ +0\.00% +4\n", shown.out)
    assert re.search(r"valid en +2 +6 +\d+ +33\.33% +0\n", shown.out)
    assert "dictionary sv: 16 symbols" in shown.out
    assert shown.err == ""
    manifest = json.loads((dest / "binarize.json").read_text())
    figures = manifest["splits"]["valid"]["en"]
    assert (figures["tokens"], figures["unknown"], figures["unknown_rate"]) == (6, 2, 0.333333)
    assert manifest["splits"]["train"]["en"]["empty"] == 4
    assert manifest["sides"]["source"]["view"] == "words"
    assert manifest["sides"]["source"]["trees"] is True
    assert manifest["options"]["source_format"] == "ptb"
    import hashlib

    digest = hashlib.sha256(files["ptb"].read_bytes()).hexdigest()
    assert manifest["sides"]["source"]["sha256"][str(files["ptb"])] == digest


def test_defaults_are_words_for_dependencies_and_preorder_for_other_trees(files):
    write(files["bad"], [])
    files["bad"].write_text(CONLLU)
    write(files["text"], ["stora hundar", "katter"])
    dest = binarize(files, "--train", files["bad"], files["text"], "--source-format", "conllu")
    # A word with a space is two tokens, as it is in text, and by default two nodes.
    assert read(dest, "train", "en") == [["Big", "dogs", "bark"], ["10", "000", "cats"]]
    store = TreeStore(dest / "train.en-sv.en.tree")
    assert store[0].token_nodes.tolist() == [2, 1, 0]
    assert store[1].parents.tolist() == [-1, 0, 0]
    lambdas = write(files["bad"], ["( f ( g x ) y )", "z"])
    dest = binarize(
        files, "--overwrite", "--train", lambdas, files["text"], "--source-format", "sexpr"
    )
    assert read(dest, "train", "en") == [["f", "g", "x", "y"], ["z"]]
    assert (dest / "train.en-sv.en.tree").exists()
    assert not (dest / "train.en-sv.sv.tree").exists()


def test_literal_special_symbols_become_unknown(files):
    write(files["text"], ["<s> a </s>", "<pad> <unk>", "a", "a", "a"] * 4)
    dest = binarize(files)
    assert read(dest, "train", "sv")[:2] == [["<unk>", "a", "<unk>"], ["<unk>", "<unk>"]]


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_the_output_does_not_depend_on_the_number_of_workers(files, monkeypatch, method):
    monkeypatch.setattr(binarize_read, "BATCH_SENTENCES", 3)
    monkeypatch.setattr(multiprocessing, "get_context", lambda: CONTEXTS[method])
    options = ("--valid", files["valid_ptb"], files["valid_text"], "--subword-vocab", 23)
    one = folder_bytes(binarize(files, *options))
    three = folder_bytes(binarize(files, *options, "--overwrite", "--workers", 3))
    assert set(one) == {
        "binarize.json", "dict.en.txt", "dict.sv.txt", "subwords.en.model", "subwords.sv.model",
        "train.en-sv.en.bin", "train.en-sv.en.idx", "train.en-sv.en.tree",
        "train.en-sv.sv.bin", "train.en-sv.sv.idx", "valid.en-sv.en.bin", "valid.en-sv.en.idx",
        "valid.en-sv.en.tree", "valid.en-sv.sv.bin", "valid.en-sv.sv.idx",
    }  # fmt: skip
    assert one == three
    monkeypatch.setattr(binarize_read, "BATCH_SENTENCES", 2000)
    assert folder_bytes(binarize(files, *options, "--overwrite")) == one


def test_packed_files_are_read(files):
    packed = files["bad"].with_suffix(".gz")
    packed.write_bytes(gzip.compress(files["ptb"].read_bytes()))
    plain = folder_bytes(binarize(files))
    again = folder_bytes(binarize(files, "--overwrite", "--train", packed, files["text"]))
    for name in set(plain) - {"binarize.json"}:
        assert plain[name] == again[name]


def test_thresholds_sizes_and_joined_dictionaries(files):
    dest = binarize(files, "--source-linearization", "words", "--source-threshold", 5)
    assert Dictionary.load(str(dest / "dict.en.txt")).symbols[4:6] == ["sleeps", "the"]
    assert read(dest, "train", "en")[1] == ["<unk>"] * 4
    dest = binarize(files, "--overwrite", "--target-vocab-size", 6)
    assert Dictionary.load(str(dest / "dict.sv.txt")).symbols[4:7] == [
        "katten", "sover", "madeupword0000",
    ]  # fmt: skip
    dest = binarize(files, "--overwrite", "--joined-dictionary")
    joined = (dest / "dict.en.txt").read_text()
    assert joined == (dest / "dict.sv.txt").read_text()
    assert "katten 8\n" in joined
    assert "sleeps 8\n" in joined


def test_a_given_dictionary_is_reused(files):
    given = write(files["bad"], ["cat 5", "the 4"])
    dest = binarize(files, "--source-linearization", "words", "--source-dict", given)
    assert read(dest, "train", "en")[0] == ["the", "cat", "<unk>"]
    assert (dest / "dict.en.txt").read_text() == given.read_text()
    dest = binarize(files, "--overwrite", "--joined-dictionary", "--target-dict", given)
    assert (dest / "dict.en.txt").read_text() == given.read_text()
