"""Pairs with an empty side are told and recorded: no step leaves them out."""

from __future__ import annotations

import json
from pathlib import Path

import support


def test_pairs_with_an_empty_side_are_told_with_their_lines(tmp_path: Path, capsys):
    source, target = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text("a\n\na a\na\n")
    target.write_text("b\nb\nb b\n\n")
    flags = ("--source-lang", "a", "--target-lang", "b")
    data = support.binarize(tmp_path / "data", source, target, *flags)
    assert (
        "train: 2 pairs have a side without tokens (line 2, 4); no step leaves them out"
        in capsys.readouterr().out
    )
    record = json.loads((data / "binarize.json").read_text())
    assert record["pairs"]["train"] == {"empty": 2, "first_empty": [2, 4]}
