"""docs/extending.md as printed: a metric, a tree format and a data set, each in one file beside a recipe."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from support import ROOT
from support.forked_programs import treesyntax

from treesyntax.jobs.imports import VARIABLE
from treesyntax.study.read import read_study

PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
FILES = {"same_words.py": "score", "arity.py": "binarize", "sums.py": "prepare"}
"""The files of the page, and a kind of step that each changes."""


def write_files(folder: Path) -> Path:
    """The page's files, named in their first lines; returns its recipe."""
    for text in re.findall(r"```(?:python|yaml)\n(.*?)```", PAGE, re.S):
        (folder / text.split()[1]).write_text(text, encoding="utf-8")
    return folder / "own.yaml"


def make_study(folder: Path) -> None:
    treesyntax(folder, "study", write_files(folder), "--out", "out")


@pytest.fixture(scope="module")
def folder(once: Callable[..., Path]) -> Path:
    return once("study-of-the-page-on-extending", make_study)


def test_a_study_makes_the_data_reads_the_format_and_scores_with_the_metrics(folder: Path):
    study = read_study(folder / "out")
    assert {run["row"] for run in study.runs} == {"sequence", "grown"}
    assert len(study.runs) == 4
    pairs = zip(
        (folder / "out/data/sums/test.tgt").read_text().splitlines(),
        (folder / "out/runs/sequence-1/hypotheses.txt").read_text().splitlines(),
        strict=True,
    )
    right = [sorted(wanted.split()) == sorted(output.split()) for wanted, output in pairs]
    score = next(run for run in study.runs if (run["row"], run["seed"]) == ("sequence", 1))
    assert score["same_words"] == pytest.approx(100 * sum(right) / 40)
    grown = [line for line in study.lines if (line["row"], line["metric"]) == ("grown", "f1_words")]
    assert {len(line["statistics"]) for line in grown} == {2}
    assert 0 < score["f1_words"] <= 100
    tested = {record["metric"] for record in study.table() if record["difference"] is not None}
    assert tested >= {"same_words", "f1_words"}


def test_the_rows_that_grow_trees_write_the_format(folder: Path):
    hypotheses = (folder / "out/runs/grown-1/hypotheses.txt").read_text().splitlines()
    assert any(re.fullmatch(r"(\w+/\d ?)+", line) for line in hypotheses)


@pytest.mark.parametrize("name", FILES)
def test_a_step_counts_the_file_that_it_uses(folder: Path, name: str):
    markers = [json.loads(path.read_text()) for path in (folder / "out/done").rglob("*.json")]
    parts = {part for marker in markers for part in marker["code"] if f"own/{name}" in part}
    assert f"{FILES[name]}: own/{name}" in parts
    # No other file that a step imports counts for it.
    others = {"same_words.py": {"score"}, "sums.py": {"prepare"}}
    assert name not in others or {part.partition(": ")[0] for part in parts} == others[name]


def test_a_change_of_the_metric_is_scored_again_and_of_the_format_is_refused(
    folder: Path, tmp_path
):
    def words(file: Path, old: str, new: str) -> None:
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    subprocess.run(["cp", "-r", *folder.iterdir(), str(tmp_path)], check=True)
    again = partial(treesyntax, tmp_path, "study", "own.yaml", "--out", "out")
    words(tmp_path / "same_words.py", "sorted(output.split()) ==", "[] ==")
    again()
    assert {run["same_words"] for run in read_study(tmp_path / "out").runs} == {0}
    words(tmp_path / "arity.py", '"write plus/2"', '"write times/2"')
    said = again("--set", "seeds=[1, 2, 3]", status=2)
    assert "own/arity.py" in said


def test_their_own_test_passes_where_a_reader_runs_it(tmp_path: Path):
    write_files(tmp_path)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_own.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout


def test_commands_know_what_the_environment_names(tmp_path: Path):
    write_files(tmp_path)
    words = [sys.executable, "-m", "treesyntax", "data", "list", "--json"]
    names = str(tmp_path / "sums.py"), str(tmp_path / "same_words.py")
    done = subprocess.run(
        words, cwd=tmp_path, env={VARIABLE: ":".join(names)}, capture_output=True, check=True
    )
    assert "sums" in {data["name"] for data in json.loads(done.stdout)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("score=[same_wrods]", "own.yaml: score: no metric is named 'same_wrods'"),
        (
            "methods.grown.binarize.target-format=ariti",
            "no format is named 'ariti'; did you mean 'arity'",
        ),
    ],
)
def test_a_misspelt_name_is_told_before_anything_runs(tmp_path: Path, change: str, message: str):
    recipe = write_files(tmp_path)
    assert message in treesyntax(tmp_path, "study", recipe, "--dry-run", "--set", change, status=2)
