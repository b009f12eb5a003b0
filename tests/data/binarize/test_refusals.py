"""What ``treesyntax binarize`` refuses, in one line and with nothing left behind."""

from __future__ import annotations

import multiprocessing
import os
import re

import pytest
from support.binarize_helpers import (
    CONLLU,
    CONTEXTS,
    TEXT,
    TREES,
    binarize,
    folder_bytes,
    refused,
    row,
    write,
)

from treesyntax.__main__ import main


def test_misaligned_files_are_refused_with_both_counts(files, capsys):
    short = write(files["bad"], TEXT)
    message = refused(files, capsys, "--train", files["ptb"], short)
    assert f"{short}: has 5 sentences, but {files['ptb']} has 20" in message
    message = refused(files, capsys, "--source-pieces", short)
    assert f"{short}: has 5 sentences, but {files['ptb']} has 20; aligned files have" in message


def test_carriage_returns_that_would_shift_equally_long_files_are_refused(files, capsys):
    source, target = files["bad"], files["text"]
    source.write_bytes(b"one\rmore\ntwo\nthree\n")
    target.write_bytes(b"un\ndeux\ntrois\rplus\n")
    options = ("--source-format", "text", "--target-format", "text", "--train", source, target)
    assert f"{source}:1: holds a carriage return" in refused(files, capsys, *options)
    source.write_bytes(b"one\ntwo\nthree\n")
    assert f"{target}:3: holds a carriage return" in refused(files, capsys, *options)


@pytest.mark.parametrize(
    ("format_name", "text", "line"),
    [
        ("ptb", "(S (N a))\n(S (N a)\n", 2),
        ("ptb", "(S (N a))\n(S (N a)))\n", 2),
        ("conllu", CONLLU.replace("\t3\tnsubj", "\t9\tnsubj"), 2),
        ("conllu", CONLLU.replace("\t0\troot", "\t2\troot", 1), 1),
        ("conllu", CONLLU.replace("\t3\tnsubj", "\t0\tnsubj"), 3),
        ("jsonl", '["a", "b"]\n["a", "b\\tc"]\n', 2),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_malformed_trees_are_refused_with_their_line(
    files, capsys, format_name, text, line, workers
):
    files["bad"].write_text(text)
    write(files["text"], ["a", "b"])
    message = refused(
        files, capsys, "--train", files["bad"], files["text"], "--source-format", format_name,
        "--workers", workers,
    )  # fmt: skip
    assert f"{files['bad']}:{line}: " in message
    assert "; " in message


@pytest.mark.parametrize("workers", [1, 2])
def test_the_first_malformed_tree_is_named_the_source_before_the_target(
    files, capsys, monkeypatch, workers
):
    """Workers have the batches of both sides at once."""
    monkeypatch.setattr("treesyntax.data.binarize.read.BATCH_SENTENCES", 2)
    good, bad = "(S (N a))", "(S (N a)"
    write(files["bad"], [*[good] * 7, bad])
    write(files["text"], [bad, *[good] * 7])
    message = refused(
        files, capsys, "--train", files["bad"], files["text"], "--target-format", "ptb",
        "--target-linearization", "bracketed", "--workers", workers,
    )  # fmt: skip
    assert f"{files['bad']}:8: " in message


def test_pieces_of_other_words_are_refused_with_their_line(files, capsys):
    pieces = write(files["bad"], ["▁the ▁cat ▁sle eps", "▁dogs ▁bark ▁at", "", "▁(", "▁a"] * 4)
    message = refused(files, capsys, "--source-pieces", pieces)
    assert (
        f"{pieces}:2: the subwords make 3 words, but the tree at {files['ptb']}:2 has 4" in message
    )
    assert "--subwords-style" in message


def test_parallel_treebanks_in_another_order_are_refused(files, capsys):
    """UD_Spanish-PUD had two sentences swapped; both files were as long as each other."""
    trees = {name: files["bad"].with_name(f"t.{name}") for name in ("en", "sv")}
    options = ("--train", *trees.values(), "--source-format", "conllu", "--target-format", "conllu")

    def write_named(language: str, names: str) -> None:
        lines = [
            line for name in names.split() for line in (f"# sent_id = {name}", row(1, "a", 0), "")
        ]
        write(trees[language], lines)

    write_named("en", "n01/en n02/en n03/en n04/en")
    write_named("sv", "n01/sv n03/sv n02/sv n04/sv")
    message = refused(files, capsys, *options)
    assert (
        f"{trees['en']}:4: sentence 2 is named 'n02', which in {trees['sv']} is sentence 3; put"
        in message
    )
    for names in ("n01 n02 x n04", "1 3 2 4", "m1 m2 m3 m4"):
        write_named("sv", names)
        binarize(files, *options, "--overwrite")
    write_named("en", "4 3 2 1")
    write_named("sv", "1 2 3 4")
    binarize(files, *options, "--overwrite")


def test_unreadable_files_are_refused(files, capsys, tmp_path):
    missing = tmp_path / "in" / "missing"
    assert f"{missing}: cannot be read" in refused(files, capsys, "--train", missing, files["text"])
    files["bad"].write_bytes(b"a\n\xff\n")
    assert f"{files['bad']}:2: byte 1 is not UTF-8" in refused(
        files, capsys, "--train", files["ptb"], files["bad"]
    )
    assert "missing: cannot be read" in refused(files, capsys, "--source-subword-model", missing)
    message = refused(files, capsys, "--source-subword-model", files["text"])
    assert "train.sv: is not a SentencePiece model" in message
    assert "missing: cannot be read" in refused(files, capsys, "--source-dict", missing)
    message = refused(files, capsys, "--source-dict", files["text"])
    assert "train.sv:1: 'katten sover' is not a symbol and its count" in message
    message = refused(files, capsys, "--train", tmp_path / "in", files["text"])
    assert "in: is not a regular file; inputs are read twice" in message
    write(files["bad"], [])
    message = refused(files, capsys, "--test", files["bad"], files["bad"])
    assert "bad: has no sentences; leave the split out" in message


def test_impossible_subword_vocabularies_are_refused_with_the_limit(files, capsys):
    message = refused(files, capsys, "--subword-vocab", 9000)
    assert re.search(
        r"train\.ptb: the text has too few .* of 9000; the largest .* is --subword-vocab \d+",
        message,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--source-format xml", "--source-format: no format is named 'xml'; there are text, "),
        (
            "--source-linearization x",
            "--source-linearization: no linearization is named 'x'; there",
        ),
        ("--target-linearization preorder", "--target-linearization preorder needs trees, but --"),
        ("--target-format conllu --target-linearization nary_dfs",
         "--target-linearization nary_dfs loses the tree: no conllu can be made of outputs again; take "
         "--target-format text with files of text, or --target-linearization words"),
        ("--target-format conllu --target-view preorder", "preorder loses the tree: no conllu can"),
        ("--target-format ptb --target-view bracketed --subword-vocab 9",
         "--subword-vocab cuts the words of the target's ptb trees, and outputs keep the subwords"),
        ("--target-format mrg --target-view nary_dfs --target-subword-model g",
         "--target-subword-model cuts the words of the target's mrg trees"),
        ("--target-format ptb --target-view nary_dfs --target-subwords g",
         "--target-subwords cuts the words of the target's ptb trees"),
        ("--source-control x", "--source-control: no control tree is named 'x'; there are given"),
        ("--target-control flat", "--target-control flat needs trees, but --target-format is"),
        ("--target-pieces f", "--target-subwords belong to trees, but --target-format is text"),
        ("--source-pieces f g", "--source-subwords has 2 files for 1 splits (train)"),
        ("--source-pieces f --source-subword-model g", "--source-subword-model exclude each other"),
        ("--target-lang en", "both sides are named 'en'; give --target-lang another name"),
        ("--target-lang s-v", "--target-lang 's-v': a name without white space, dots,"),
        ("--joined-subwords", "--joined-subwords trains one model for both sides: give --subw"),
        ("--subword-vocab -1", "--subword-vocab must be a positive number"),
        ("--subword-vocab 9 --joined-subwords --source-subword-model g", "one side already has"),
        ("--subword-vocab 9 --source-subword-model g --target-subword-model g", "both sides alre"),
        ("--source-threshold -1", "--source-threshold must not be negative"),
        ("--target-vocab-size -1", "--target-vocab-size must not be negative"),
        ("--workers 0", "--workers 0: at least 1 is needed"),
        ("--joined-dictionary --source-dict f --target-dict g", "or --target-dict, not both"),
        ("--joined-dictionary --source-threshold 3", "the same --source-threshold and --target-t"),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_are_refused(files, capsys, options, message):
    assert message in refused(files, capsys, *options.split())


def test_nothing_is_overwritten_by_accident(files, capsys):
    dest = binarize(files)
    capsys.readouterr()
    assert f"{dest}: already exists and is not empty" in refused(files, capsys)
    binarize(files, "--overwrite")
    capsys.readouterr()
    inside = write(dest / "mine.ptb", TREES * 4)
    message = refused(files, capsys, "--overwrite", "--train", inside, files["text"])
    assert f"{inside}: lies in the folder to be overwritten" in message
    (dest / "binarize.json").unlink()
    assert f"{dest}: has no binarize.json, so --overwrite could" in refused(
        files, capsys, "--overwrite"
    )
    files["dest"] = files["text"]
    assert "train.sv: is a file; name a folder" in refused(files, capsys)


@pytest.mark.parametrize("name", ["checkpoints/checkpoint_best.pt", "notes.txt"])
def test_what_binarize_did_not_write_is_never_overwritten(files, capsys, name):
    dest = binarize(files)
    kept = dest / name
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("precious")
    first = name.partition("/")[0]
    assert f"{first}: was not written by binarize" in refused(files, capsys, "--overwrite")
    assert kept.read_text() == "precious"


def test_a_failed_overwrite_keeps_the_old_data(files, capsys):
    before = folder_bytes(binarize(files))
    capsys.readouterr()
    write(files["ptb"], [*TREES * 3, *TREES[:4], "(S"])
    assert "train.ptb:20: " in refused(files, capsys, "--overwrite")
    assert folder_bytes(files["dest"]) == before


def _die(encoding, batch):
    os._exit(9)


def test_a_dead_worker_is_reported(files, capsys, monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_context", lambda: CONTEXTS["fork"])
    monkeypatch.setattr("treesyntax.data.binarize.write.encode_batch", _die)
    message = refused(files, capsys, "--workers", 2)
    assert "a worker process died, possibly out of memory; try fewer --workers" in message


def test_the_help_shows_an_example(capsys):
    for name in ("binarize", "inspect"):
        with pytest.raises(SystemExit):
            main([name, "--help"])
        assert f"treesyntax {name} data-bin/en-sv" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("format_name", "said"),
    [
        ("conllu", "is not CoNLL-U, which has 10 columns separated by tabs; name its format with"),
        ("mrg", "is not mrg ('the' stands outside the brackets (character 1)); name its format"),
        ("jsonl", "is not JSON lines ((S is not a label); name its format with --source-format"),
    ],
)
def test_a_tree_file_in_another_format_says_so(files, capsys, format_name, said):
    """Before, its count of sentences was held against that of the other side: "has 1 sentences"."""
    lines = ["(S (NP (D the) (N cat)) (VP (V sleeps)))"] * 21
    if format_name == "mrg":
        lines = ["the cat sleeps", *lines]
    write(files["ptb"], lines)
    message = refused(files, capsys, "--source-format", format_name)
    assert said in message


def test_a_missing_blank_line_is_told_before_the_count_of_the_other_file(files, capsys):
    words = "1\ta\t_\t_\t_\t_\t0\troot\t_\t_"
    files["ptb"].write_text(f"{words}\n\n# id = 2\n{words}\n# id = 3\n{words}\n")
    write(files["text"], ["a"] * 3)
    message = refused(files, capsys, "--source-format", "conllu")
    assert f"{files['ptb']}:5: another sentence begins here (ID 1), but no blank line" in message


def test_a_folder_that_fairseq_would_split_is_refused_before_anything_is_read(tmp_path, capsys):
    lost = str(tmp_path / "lost")
    words = ["binarize", str(tmp_path / "10:30" / "data"), "--train", lost, lost]
    assert main([*words, "--source-lang", "a", "--target-lang", "b"]) == 2
    assert "10:30/data: fairseq takes ':' for the end of a path; choose" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ("--control-seed", 7),
            "--control-seed 7 does nothing without trees that are random or sh",
        ),
        (("--subword-policy", "first"), "--subword-policy first does nothing without a side with"),
        (("--subwords-style", "subword-nmt"), "subword-nmt does nothing without subwords made els"),
        (("--source-label-threshold", 3), "threshold 3 does nothing without --source-labels"),
        (("--source-control", "random", "--control-seed", 7), ""),
        (("--subword-policy", "first", "--subword-vocab", 23), ""),
        (("--source-labels", "--source-label-threshold", 3), ""),
        ((), ""),
    ],
)
def test_options_without_an_effect_are_told(files, capsys, options, sentence):
    """A forgotten --source-control trained the control on the trees of the file."""
    binarize(files, *options)
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("does nothing") == bool(sentence)
