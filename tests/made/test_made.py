"""What was made before: records of ours, locks, and what is the same."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from treesyntax.errors import InputError, OptionError
from treesyntax.made.digests import sha256_of_lines, sha256_of_tree
from treesyntax.made.lock import HOLDER, locked
from treesyntax.made.records import Lines
from treesyntax.made.reuse import changed_file, differences, is_taken


@dataclass(frozen=True)
class Walk:
    dog: str
    minutes: int
    speeds: dict[str, list[float]] = field(default_factory=dict)


WALKS = Lines(Walk, "is not a walk", "walk again")


def test_records_are_read_as_they_were_written(tmp_path: Path):
    path, walks = (
        tmp_path / "walks.jsonl",
        [Walk("Räuber", 1 << 70, {"up": [1, 0.5]}), Walk("b", 0)],
    )
    assert WALKS.read(path) == []
    WALKS.write(path, walks)
    assert path.read_text("utf-8").splitlines()[1] == '{"dog": "b", "minutes": 0, "speeds": {}}'
    assert WALKS.read(path) == walks


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ('{"dog": "a"}', "minutes: field required"),
        ('{"dog": "a", "minutes": 1.5}', "minutes: input should be a valid integer"),
        ('{"dog": "a", "minutes": "1"}', "minutes: input should be a valid integer"),
        ('{"dog": "a", "minutes": true}', "minutes: input should be a valid integer"),
        ('{"dog": "a", "minutes": 1, "cat": 1}', "cat: unexpected keyword argument"),
        ('{"dog": "a", "minutes": 1, "speeds": {"up": [NaN]}}', "speeds.up.0: input should be a finite"),
        ('{"dog": "a", "minutes": 1', "invalid JSON: EOF"),
        ("[" * 9999, "invalid JSON: recursion limit"),
        ("3", "input should be "),
    ],
)  # fmt: skip
def test_other_lines_are_refused_with_file_line_field_and_remedy(
    tmp_path: Path, line: str, fault: str
):
    path = tmp_path / "walks.jsonl"
    path.write_text(f"{WALKS.text(Walk('a', 1))}{line}\n", "utf-8")
    with pytest.raises(InputError) as caught:
        WALKS.read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:2: is not a walk ({fault}")
    assert message.endswith("; walk again")


def test_a_file_is_held_by_one_process_and_its_holder_is_named(tmp_path: Path):
    call = "from treesyntax.made.lock import *; from pathlib import Path; import sys\n"
    call += "with locked(Path(sys.argv[1]), f'taken by {HOLDER}'): print('held')"
    words = [sys.executable, "-c", call, str(tmp_path / "a/lock")]
    with locked(tmp_path / "a/lock", HOLDER):
        refused = subprocess.run(words, capture_output=True, text=True)
    assert "OptionError: taken by process " in refused.stderr
    assert subprocess.run(words, capture_output=True, text=True).stdout == "held\n"
    with pytest.raises(OptionError, match="cannot be written"), locked(tmp_path / "a/lock/b", ""):
        pass


def test_what_differs_is_named(tmp_path: Path):
    assert differences({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": None, "d": 0}) == ["b", "d"]
    assert differences({"gone": 1}, {}) == ["gone"]
    (tmp_path / "x").write_text("one\n")
    digests = {"x": sha256_of_lines(["one"])}
    assert changed_file(tmp_path, digests) is None
    assert changed_file(tmp_path, {**digests, "y": ""}) == tmp_path / "y"
    (tmp_path / "x").write_text("two\n")
    assert changed_file(tmp_path, digests) == tmp_path / "x"
    assert is_taken(tmp_path)
    assert not is_taken(tmp_path / "none")
    with pytest.raises(InputError, match="is a file; name a folder"):
        is_taken(tmp_path / "x")


def test_the_digest_of_a_tree_has_every_name_and_content(tmp_path: Path):
    """Also hidden ones: a model of a parser may keep weights under any name."""
    file = tmp_path / "model/.a"
    file.parent.mkdir()
    seen = set()
    for name, text in ((".a", "1"), (".a", "2"), (".b", "2")):
        file.unlink(missing_ok=True)
        file = file.with_name(name)
        file.write_text(text)
        seen.add(sha256_of_tree(file.parent))
    assert len(seen) == 3
