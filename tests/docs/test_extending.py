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
from support.forked_programs import fork, own_tests, treesyntax

from treesyntax.jobs.imports import VARIABLE, import_file
from treesyntax.study.read import read_study
from treesyntax.testing import check_data_set, check_format, check_metric

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
def folder(once: Callable[..., Path], empty_figures: None) -> Path:
    return once("study-of-the-page-on-extending", make_study)


def test_a_study_makes_the_data_reads_the_format_and_scores_with_the_metrics(folder: Path):
    study = read_study(folder / "out")
    assert {run["row"] for run in study.runs} == {"sequence", "grown"}
    assert len({(run["row"], run["seed"]) for run in study.runs}) == 4
    pairs = zip(
        (folder / "out/data/sums/test.tgt").read_text().splitlines(),
        (folder / "out/runs/sequence-1/hypotheses.txt").read_text().splitlines(),
        strict=True,
    )
    right = [sorted(wanted.split()) == sorted(output.split()) for wanted, output in pairs]
    scores = {
        run["metric"]: run["score"]
        for run in study.runs
        if (run["row"], run["seed"]) == ("sequence", 1)
    }
    assert scores["same_words"] == pytest.approx(100 * sum(right) / 40)
    grown = [line for line in study.lines if (line["row"], line["metric"]) == ("grown", "f1_words")]
    assert {len(line["statistics"]) for line in grown} == {2}
    assert 0 < scores["f1_words"] <= 100
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
    runs = read_study(tmp_path / "out").runs
    assert {run["score"] for run in runs if run["metric"] == "same_words"} == {0}
    words(tmp_path / "arity.py", '"write plus/2"', '"write times/2"')
    said = again("--set", "seeds=[1, 2, 3]", status=2)
    assert "own/arity.py" in said


def test_their_own_test_passes_where_a_reader_runs_it(tmp_path: Path):
    write_files(tmp_path)
    assert "1 passed" in own_tests(tmp_path, "test_own.py")


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


BROKEN = [
    ("same_words.py", "sorted(output.split()) ==", "sorted(output.split()) !=", "against themselves score 0"),
    ("same_words.py", "== sorted(wanted.split()) for", "is not None for", "empty outputs are all right"),
    ("same_words.py", "return [sorted", "return [len(hypotheses) < 9 and sorted", "is judged otherwise alone"),
    ("same_words.py", "return [sorted", "hypotheses.reverse()\n    return [sorted", "are changed in place"),
    ("same_words.py", "sorted(output.split()) ==", "sorted(output)[0] and sorted(output.split()) ==", "outputs raise IndexError"),
    ("same_words.py", "return [sorted", "CALLS.append(0); return [len(CALLS) > 3 or sorted", "otherwise the second time"),
    ("arity.py", 'return exact("arity", parse, tree, text)', "return text", "is written as"),
    ("arity.py", 'f"{label}/{len(below)}"', 'f"{label.upper()}/{len(below)}"', "is read, but not written"),
    ("arity.py", " or not number.isdecimal()", "", "raises ValueError, not TreeError"),
    ("arity.py", "parse, write))", "parse, write, root=lambda label: False))", "is no root"),
    ("arity.py", "line_records, parse", "lambda path: iter(()), parse", "a file of the trees is read otherwise"),
    ("sums.py", 'licence="CC0"', 'licence=""', "it has no licence"),
    ("sums.py", ', ("test", 40)', "", "it has no examples for test"),
    ("sums.py", "random.Random(seed)", "random.Random()", "the same seed makes other examples"),
    ("sums.py", "add(*expression(rng, 3))", "targets.append(name)", "has no examples for train"),
    ("sums.py", "(rng, 3))", '(rng, 3), category="x" * (rng.random() < 0.5))', "sources, but"),
    ("sums.py", "f\"{number}/0\"", "f\"{number}\\n/0\"", "is not one line of text"),
    ("sums.py", "(rng, 3))", '(rng, 3), tree="(A b)")', "has other words than its source"),
]  # fmt: skip
"""A file of the page, what is changed in it, and the broken promise."""
CHECKS = {
    "same_words.py": lambda: check_metric("same_words", TREES),
    "arity.py": lambda: check_format("arity", TREES),
    "sums.py": lambda: check_data_set("sums"),
}
TREES = ["one/0", "plus/2 one/0 times/2 two/0 three/0"]


@pytest.mark.parametrize(("name", "old", "new", "fault"), BROKEN)
def test_a_broken_one_is_refused_with_the_promise_that_it_breaks(
    tmp_path: Path, name: str, old: str, new: str, fault: str
):
    write_files(tmp_path)
    text = (tmp_path / name).read_text("utf-8")
    assert text.count(old) == 1
    (tmp_path / name).write_text(f"CALLS = []\n{text.replace(old, new)}", "utf-8")

    def check() -> int:
        import_file(tmp_path / name)
        try:
            CHECKS[name]()
        except AssertionError as error:
            print(error)
            return 3
        return 0

    checked = fork(check, tmp_path / "log")
    assert checked.wait() == 3, checked.output()
    assert fault in checked.output()
