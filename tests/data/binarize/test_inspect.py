"""``treesyntax inspect`` shows what ``treesyntax binarize`` wrote."""

from __future__ import annotations

import json

from support.binarize_helpers import binarize, write

from treesyntax.__main__ import main


def test_inspect_draws_tokens_and_trees(files, capsys):
    dest = binarize(files, "--source-linearization", "words")
    capsys.readouterr()
    assert main(["inspect", str(dest), "--count", "2"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == ["train.en-sv.en 0: 3 tokens", "the cat sleeps"]
    assert [line.split() for line in shown[2:7]] == [
        ["node", "parent", "slot"],
        ["0", "-1", "0", "·"],
        ["1", "0", "0", "·"],
        ["2", "1", "0", "·"],
        ["3", "2", "0", "0:the"],
    ]
    assert "train.en-sv.en 1: 4 tokens" in shown
    assert main(["inspect", str(dest), "--json", "--count", "2"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["tokens"], second["index"]) == (["the", "cat", "sleeps"], 1)
    assert first["parents"][:4] == [-1, 0, 1, 2]
    assert first["token_nodes"][0] == 3
    assert main(["inspect", str(dest), "--side", "target", "--index", "19", "--count", "9"]) == 0
    assert capsys.readouterr().out.splitlines() == ["train.en-sv.sv 19: 2 tokens", "hunden sover"]


def test_inspect_draws_a_long_chain(files, capsys):
    size = 10_000
    write(files["ptb"], ["(X " * size + "a" + ")" * size])
    write(files["text"], ["a"])
    dest = binarize(files)
    capsys.readouterr()
    assert main(["inspect", str(dest)]) == 0
    shown = capsys.readouterr().out
    assert f"(depth {size}) {size}:a" in shown
    assert len(shown) < 200 * size


def inspect_refused(capsys, *options: object) -> str:
    assert main(["inspect", *map(str, options)]) == 2
    return capsys.readouterr().err


def test_inspect_names_what_is_wrong(files, capsys, tmp_path):
    dest = binarize(files)
    capsys.readouterr()
    assert "has sentences 0 to 19" in inspect_refused(capsys, dest, "--index", 20)
    assert "no single test split: it has none" in inspect_refused(capsys, dest, "--split", "test")
    assert "nowhere: is no folder of binarized data" in inspect_refused(
        capsys, tmp_path / "nowhere"
    )
    write(dest / "dict.en.txt", ["the 3"])
    assert "dict.en.txt: has 5 symbols, but train.en-sv.en.idx uses number" in inspect_refused(
        capsys, dest
    )
    for suffix in ("bin", "idx"):
        (dest / f"train.en-sv.en.{suffix}").write_bytes(
            (dest / f"train.en-sv.sv.{suffix}").read_bytes()
        )
    assert "the trees do not belong to this data" in inspect_refused(capsys, dest)
    (dest / "train.en-de.en.idx").write_bytes(b"")
    assert "it has data of several pairs (en-de, en-sv)" in inspect_refused(capsys, dest)
