"""Every fault that the tests of hostile files have found stays mended."""

from __future__ import annotations

import json
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import yaml
from reliability.hostile.readers import tokens
from support.study_helpers import recipe_content, result

from treesyntax.__main__ import main
from treesyntax.data.dictionary import Dictionary
from treesyntax.data.sets.folder import read_manifest
from treesyntax.data.tree_store import PREAMBLE, TreeStore
from treesyntax.errors import InputError, OptionError
from treesyntax.files import LONGEST_LINE, parse_json, read_lines
from treesyntax.parsers.record_text import OFFSETS
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.results.results import read_results
from treesyntax.study.run.hypotheses import read_hypotheses
from treesyntax.study.run.logs import read_log
from treesyntax.trees.formats import read_trees


def refuse(read: Callable[[], object], message: str) -> None:
    with pytest.raises((InputError, OptionError), match=message) as caught:
        read()
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def test_a_line_without_end_is_refused(tmp_path: Path):
    path = tmp_path / "long"
    path.write_bytes(b"a\n" + b"x" * (LONGEST_LINE + 1))
    refuse(lambda: list(read_lines(path)), "long:2: the line is longer than 16 MiB; a line is one")
    path.write_bytes(b"x" * (LONGEST_LINE - 1) + b"\n" + b"y" * LONGEST_LINE)
    assert [len(line) for line in read_lines(path)] == [LONGEST_LINE - 1, LONGEST_LINE]


def test_a_tree_whose_brackets_stay_open_does_not_fill_the_memory(tmp_path: Path, monkeypatch):
    path = tmp_path / "open.mrg"
    monkeypatch.setattr("treesyntax.trees.formats.ptb.LONGEST_LINE", 600)
    path.write_bytes(b"(S x)\n\n(S\n" + b"(NP x)\n" * 98 + b")\n")
    assert [len(tree) for tree in read_trees(path, "mrg")] == [2, 1 + 98 * 2]
    path.write_bytes(b"(S x)\n\n(S\n" + b"(NP x)\n" * 101 + b")\n")
    refuse(lambda: list(read_trees(path, "mrg")), "mrg:3: the tree that begins here is longer than")


def test_json_that_is_nested_too_deeply_is_a_value_error():
    for text in ("[" * 100_000, '{"a":' * 100_000):
        with pytest.raises(ValueError, match="it is nested too deeply"):
            parse_json(text)
    assert parse_json('{"a": [1]}') == {"a": [1]}


def test_parentheses_of_a_goal_do_not_fill_the_memory(tmp_path: Path, monkeypatch):
    path = tmp_path / "goal"
    monkeypatch.setattr("treesyntax.trees.formats.prolog.DEEPEST", 50)
    path.write_text("f(" * 50 + "x" + ")" * 50 + "\n")
    assert [len(tree) for tree in read_trees(path, "prolog")] == [51]
    path.write_text("x\n" + "(" * 51)
    refuse(lambda: list(read_trees(path, "prolog")), "goal:2: more than 50 parentheses are open")


def test_a_header_is_not_read_to_the_length_that_it_claims(tmp_path: Path):
    """Four gigabytes, from a file of four kilobytes."""
    tokens(tmp_path)
    path = tmp_path / "train.a-b.a.tree"
    damaged, start = bytearray(path.read_bytes()), PREAMBLE
    magic, version, _, crc32 = start.unpack_from(damaged)
    start.pack_into(damaged, 0, magic, version, 2**32 - 1, crc32)
    path.write_bytes(damaged)
    tracemalloc.start()
    refuse(lambda: TreeStore(path), r"\.tree: the checksum of the header differs")
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


BILLION = ["a0: &a0 [x]", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 10))]


RECIPES = [
    ("\n".join(BILLION), "recipe:6: is not YAML .it holds more than 100000 values"),
    ("a: &a [*a]", "recipe:1: is not YAML .it holds more than 100000 values"),
    ("x: 1\n" + "[" * 100_000, "is not YAML|nested too deeply"),
    ("a: " + "[" * 100_000, "recipe:1: is not YAML .it is nested too deeply"),
    ("a: 2001-99-99", "recipe: is not YAML .month must be in 1..12"),
    ("a: !!python/object/apply:os.system [x]", "could not determine a constructor"),
    ("a: " + "x" * (1 << 20), "recipe: is too large for a recipe"),
]
COUNTS = ["9" * 5000, "９", "1e3", "-1"]
LISTED = [[], {"a": 1}, {"a": {}}, {"../a": {"sha256": "x"}}, {"a": {"sha256": 1}}]
REFUSED = [
    *(("recipe", text, message) for text, message in RECIPES),
    *(("dict.txt", f"a 1\nb {count}\n", r":2: 'b .*' is not a symbol and its") for count in COUNTS),
    ("trees.jsonl", '{"\\n": null}\n', r"jsonl:1: the object has the unknown \\n; its"),
    ("generated", "D-" + "9" * 5000 + "\t-1\tx\n", ":1: is not D-NUMBER, score and text"),
    *(("manifest.json", json.dumps({"options": {}, "files": files}), "is damaged; delete the folder")
      for files in LISTED),
]  # fmt: skip
READERS = {
    "recipe": read_recipe,
    "dict.txt": Dictionary.read,
    "trees.jsonl": lambda path: list(read_trees(path, "jsonl")),
    "generated": lambda path: read_hypotheses(path, 1),
    "manifest.json": lambda path: read_manifest(path.parent, {}),
}


@pytest.mark.parametrize(("name", "text", "message"), REFUSED, ids=[name for name, *_ in REFUSED])
def test_files_that_are_refused(tmp_path: Path, name: str, text: str, message: str):
    """Most would take all memory, or pass for something else."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    refuse(lambda: READERS[name](tmp_path / name), message)


def test_a_recipe_may_repeat_parts_of_itself(tmp_path: Path):
    path = tmp_path / "recipe"
    text = yaml.safe_dump(recipe_content())
    path.write_text(text.replace("lr: 0.001", "lr: &lr 0.001\n  x: *lr"))
    assert read_recipe(path).train["x"] == 0.001


@pytest.mark.parametrize(
    "change",
    [
        {"value": "1"}, {"value": True}, {"n": 1.5}, {"versions": {"a": 1}}, {"commands": "x"},
        {"commands": [1]}, {"recipe": {}}, {"metric": ["exact"]}, {"seed": None}, {"method": {}},
        {"ended": "soon"}, {"seconds": {"train": "1"}}, {"seconds": None},
    ],
    ids=str,
)  # fmt: skip
def test_results_of_other_types_are_refused(tmp_path: Path, change: dict):
    path = tmp_path / "runs.jsonl"
    values = {**asdict(result()), **change}
    checksum = zlib.crc32(json.dumps(values, ensure_ascii=False).encode())
    path.write_text(json.dumps({**values, "crc32": checksum}) + "\n")
    refuse(lambda: read_results(path), r"runs\.jsonl:1: is not a result \(\w+.*; restore the line")


def test_results_that_are_a_folder_are_refused(tmp_path: Path):
    refuse(lambda: read_results(tmp_path), "cannot be read .Is a directory")


@pytest.mark.parametrize("number", ["1e999", "NaN", "-Infinity", "[]", "null", '"x"'])
def test_odd_numbers_in_a_log_are_passed_over(tmp_path: Path, number: str):
    path = tmp_path / "log"
    valid = f'{{"valid_loss": {number}, "valid_num_updates": {number}}}'
    inner = f'{{"num_updates": {number}, "wps": {number}, "loss": {number}}}'
    path.write_text(
        f"x | INFO | valid | {valid}\nx | INFO | train_inner | {inner}\n"
        'x | INFO | valid | {"valid_loss": 1, "valid_num_updates": 5}\n'
    )
    assert read_log(path).valid == {5: 1.0}


def test_a_spoilt_shard_is_parsed_again(tmp_path: Path):
    """Its cases are read where a run is taken up."""
    text, out = tmp_path / "in.txt", tmp_path / "out"
    text.write_text("a b\nc d\nBAD e\nf\n")
    words = ["parse", str(text), str(out), "--parser", "fake-con", "--model", "m", "--workers", "1"]
    words += ["--shard-lines", "1"]
    assert main(words) == 0
    wanted = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for spoilt in ("{", "[]", '{"lines": "1"}', "[" * 100_000):
        out.unlink()
        assert main([*words, "--strict", "parser_failed"]) == 2
        (tmp_path / "out.parts" / "000001.json").write_text(spoilt)
        assert main(words) == 0
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == wanted
    (tmp_path / "out.report.json").write_text("[" * 100_000)
    assert main(words) == 2
    assert main([*words, "--overwrite"]) == 0
    assert (tmp_path / f"out{OFFSETS}").read_bytes() == wanted[f"out{OFFSETS}"]


def test_a_message_is_one_line_whatever_a_foreign_report_names(tmp_path: Path, capsys):
    (tmp_path / "in.txt").write_text("a b .\n")
    words = [str(tmp_path / "in.txt"), str(tmp_path / "out"), "--parser", "fake-con"]
    assert main(["parse", *words, "--model", "m", "--workers", "1"]) == 0
    report = tmp_path / "out.report.json"
    content = json.loads(report.read_text()) | {"identity": {"a\nb\x1b[31m\ud800": False}}
    report.write_text(json.dumps(content))
    capsys.readouterr()
    assert main(["parse", *words, "--model", "m", "--workers", "1"]) == 2
    message = capsys.readouterr().err
    assert r"a\nb\x1b[31m\ud800; name another file or add --overwrite" in message
    assert message.count("\n") == 1
    assert message.rstrip("\n").isprintable()
