"""What a report says of the data: test lines that training has as well."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.study_helpers import plan_of

from treesyntax.study.report.data_notes import trained_on

PARTS = {
    "train.src": ["a b", "c", "d", "a  b"],
    "train.tgt": ["1", "2", "3", "9"],
    "test.src": ["a b", "c", "e", "d", "a b"],
    "test.tgt": ["1", "7", "5", " 3", "9"],
}


def write(folder: Path, **parts: list[str]) -> None:
    (folder / "data/p").mkdir(parents=True)
    for name, lines in parts.items():
        (folder / "data/p" / name).write_text("".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize(
    ("score", "end"),
    [("[exact]", "; exact:unseen scores the others"), ("[exact, 'exact:unseen']", "")],
)
def test_test_lines_of_the_training_data_are_counted(tmp_path: Path, score: str, end: str):
    """Source and reference must be alike, but for white space: `c` has another answer in training."""
    write(tmp_path, **PARTS)
    (note,) = trained_on(plan_of(tmp_path, f"score={score}"), tmp_path)
    assert note == f"3 of 5 test lines stand in the training data too, with the same answer{end}"


@pytest.mark.parametrize(
    "changes",
    [
        {"test.tgt": ["7", "7", "7", "7", "7"]},
        {"train.src": [], "train.tgt": []},
        {"test.src": ["a b", "c"]},  # not one line an example
    ],
)
def test_no_note_where_none_is_known(tmp_path: Path, changes: dict[str, list[str]]):
    write(tmp_path, **{**PARTS, **changes})
    assert trained_on(plan_of(tmp_path), tmp_path) == []


def test_no_note_without_the_files(tmp_path: Path):
    assert trained_on(plan_of(tmp_path), tmp_path) == []
