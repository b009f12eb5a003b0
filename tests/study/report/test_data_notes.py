"""What a report says of the data: test lines that training has as well, and runs with the same outputs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from support.study_helpers import (
    LINES,
    REFERENCES,
    make_study,
    outputs,
    plan_of,
    recipe_content,
    recipe_with,
    result,
    score,
)

from treesyntax.study.report.data_notes import trained_on
from treesyntax.study.report.report import read_study
from treesyntax.study.results.results import write_results
from treesyntax.study.run.plan import make_plan

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


def test_each_test_set_is_looked_for_in_its_training_data(tmp_path: Path):
    """Only the first one was."""
    write(tmp_path, **PARTS)
    write_other = (tmp_path / "data/p/other.tgt").write_text
    write_other("no\nno\nno\nno\nno\n")
    data = recipe_content()["data"]
    data["target"]["test"] = "{data}/p/{d}.tgt"
    axes = {"domain": {"vars.d": ["other", "test"]}}
    recipe = recipe_with(tmp_path, data=data, axes=axes, vars={"size": 8, "d": "test"})
    test, train = "{data}/p/test.tgt", "{data}/p/train.tgt"
    (note,) = trained_on(make_plan(recipe), tmp_path)
    assert note.startswith(
        f"3 of 5 test lines of {test} stand in the training data {train} too, with the same answer"
    )


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


@pytest.mark.parametrize("seeds", [(1, 2, 3), (1, 3)])
@pytest.mark.parametrize(
    ("lines", "value", "is_loud"),
    [(outputs("sequence", 1), score("sequence", 1, "exact"), True), (REFERENCES, 100.0, False)],
)
def test_runs_of_several_seeds_with_the_same_outputs_are_named(
    tmp_path: Path, lines: list[str], value: float, is_loud: bool, seeds: tuple[int, ...]
):
    """But not where each line equals its reference, which several good models reach, or where their losses differ."""
    out = make_study(tmp_path, score=["exact"])

    def loud() -> list[str]:
        return [note for note in read_study(out).table.notes if note.startswith("SEED")]

    assert not loud()
    for seed in seeds:
        text = "".join(f"{line}\n" for line in lines)
        (out / f"runs/sequence-{seed}/hypotheses.txt").write_text(text)
    new = [result("sequence", seed, "exact", value, len(lines)) for seed in seeds]
    write_results(out / "runs.jsonl", [replace(run, valid_loss=float(run.seed)) for run in new])
    assert not loud()
    write_results(out / "runs.jsonl", new)
    assert loud() == is_loud * [
        f"SEED WITHOUT EFFECT: seeds {', '.join(map(str, seeds))} of sequence wrote the same outputs, so they are no "
        "more evidence than one run, and intervals are too narrow; check that training uses the seed"
    ]


@pytest.mark.parametrize("right", [False, True])
def test_a_row_that_is_the_same_trainings_as_its_baseline_is_named(tmp_path: Path, right: bool):
    """It was *not shown*, as a method is, where a setting of the recipe had done nothing.

    Not where each line equals its reference: a loss may be an accuracy.
    """
    out = make_study(tmp_path, score=["exact"])

    def loud() -> list[str]:
        return [note for note in read_study(out).table.notes if note.startswith("ROW WITHOUT")]

    new = []
    for seed in (1, 2, 3):
        assert not loud()
        lines = REFERENCES if right else outputs("sequence", seed)
        value = 100.0 if right else score("sequence", seed, "exact")
        for row in ("sequence", "stack_pe"):
            text = "".join(f"{line}\n" for line in lines)
            (out / f"runs/{row}-{seed}/hypotheses.txt").write_text(text)
            new.append(result(row, seed, "exact", value, LINES))
        write_results(out / "runs.jsonl", new)
    assert loud() == (not right) * [
        "ROW WITHOUT EFFECT: each run of stack_pe had the loss and wrote the outputs of that of sequence, so what the row "
        "changes has no effect; check its settings"
    ]
    changed = [replace(run, valid_loss=9.0) for run in new if run.method == "stack_pe"]
    write_results(out / "runs.jsonl", changed)
    assert not loud()
