"""The files for a paper: a short table, figures as PDF at column width, two sentences on the method."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from support.study_helpers import make_study

from treesyntax.__main__ import main
from treesyntax.study.report.report import read_study
from treesyntax.study.results.results import read_results, write_results

TITLE = "Trees & 100% of {them}_"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study; tests leave it as it is."""
    return make_study(tmp_path_factory.mktemp("study"), title=TITLE)


@pytest.fixture(scope="module")
def made(study: Path) -> Path:
    """Its files for a paper."""
    return paper(study)


def paper(study: Path, *flags: str, name: str = "paper") -> Path:
    out = study.parent / name
    assert main(["report", str(study), "--for-paper", str(out), *flags]) == 0
    return out


def cells(text: str) -> list[list[str]]:
    return [line[:-3].split(" & ") for line in text.splitlines() if line.endswith(r" \\")]


def test_the_table_has_the_deciding_metric_with_differences_and_conclusions(
    study: Path, made: Path
):
    text = (made / "table.tex").read_text("utf-8")
    head, baseline, masks, paths, would = cells(text)
    assert head == ["system", "exact", "difference", "conclusion"]
    assert baseline[0::2] == ["sequence", "--"]
    (one,) = [
        one
        for one in read_study(study).table.comparisons
        if (one.method, one.metric) == ("relation_mask", "exact")
    ]
    assert masks[0] == r"relation\_mask"
    assert masks[2].startswith(f"{one.difference:+.2f} [{one.low:+.2f}, {one.high:+.2f}]")
    assert one.significant == (r"$^{\dagger}$" in masks[2])
    assert one.lopsided == (r"$^{\circ}$" in masks[2]) == ("comes too easily" in text)
    assert masks[3] == str(one.conclusion)
    assert paths[2].startswith("$-$")
    caption = re.search(r"\\caption\{(.*)\}", text)[1]
    assert caption.startswith(
        r"Trees \& 100\% of \{them\}\_. Mean $\pm$ standard deviation over 3 runs"
    )
    assert "difference from sequence" in caption
    assert r"\label{tab:demo}" in text
    assert r"\toprule" in text
    known = [row.tests["exact"].smallest for row in read_study(study).table.rows[1:]]
    assert would == ["would find", "", f"{min(known):.2f} to {max(known):.2f}", ""]
    assert "would find: the smallest true difference that 80 \\% of such studies find" in caption


def test_the_notes_of_the_report_stand_behind_the_table_as_comments(study: Path, made: Path):
    text = (made / "table.tex").read_text("utf-8")
    notes = [line[2:] for line in text.splitlines() if line.startswith("% ")]
    table = read_study(study).table
    assert notes[-len(table.notes) :] == [*table.notes]
    assert any(note.startswith("† differs from sequence") for note in notes)


def test_columns_are_chosen(study: Path, capsys):
    out = paper(study, "--columns", "bleu", "parameters", "runs", name="chosen")
    head, first, *_ = cells((out / "table.tex").read_text("utf-8"))
    assert head == ["system", "bleu", "difference", "parameters", "runs", "conclusion"]
    assert first[3:5] == ["10", "3 of 3"]
    capsys.readouterr()
    assert main(["report", str(study), "--for-paper", str(out), "--columns", "blue"]) == 2
    assert "did you mean 'bleu'" in capsys.readouterr().err
    assert main(["report", str(study), "--columns", "bleu"]) == 2
    assert "--for-paper OUT" in capsys.readouterr().err


def test_figures_are_pdf_at_the_width_of_a_column(study: Path, made: Path):
    boxes = {
        file.name: re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+) ?\]", file.read_bytes())
        for file in made.glob("*.pdf")
    }
    assert "verdict.pdf" in boxes
    assert {round(float(box[1]) / 72, 2) <= 3.04 for box in boxes.values() if box} == {True}
    assert all(boxes.values())
    assert not list((study / "figures").glob("*.pdf"))
    wide = paper(study, "--width", "5", name="wide")
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+)", (wide / "verdict.pdf").read_bytes())
    assert float(box[1]) / 72 == pytest.approx(5, abs=0.01)


def test_two_sentences_say_what_was_done(study: Path, made: Path):
    text = (made / "methods.txt").read_text("utf-8")
    assert len(text.splitlines()) == 2
    first, second = text.splitlines()
    items = {one.items for one in read_study(study).table.comparisons}
    assert first.startswith(
        "We trained 3 systems with 3 seeds each (1, 2, 3) and tested their differences from "
    )
    assert f"sequence in exact on {items.pop()} test items with a two-sided t test" in first
    assert "Holm's correction for 2 comparisons" in first
    assert "python 3" in second
    assert "exact: s|1" in second


def test_too_few_runs_are_not_said_to_be_tested(tmp_path: Path):
    text = (paper(make_study(tmp_path, seeds=[1, 2])) / "methods.txt").read_text("utf-8")
    assert "no difference in exact was tested, as fewer than 3 runs" in text
    assert "t test" not in text


def test_a_partial_table_says_so_in_its_caption(tmp_path: Path):
    study = make_study(tmp_path, title=TITLE)
    found = [
        one
        for one in read_results(study / "runs.jsonl")
        if (one.method, one.seed) != ("stack_pe", 3)
    ]
    (study / "runs.jsonl").unlink()
    write_results(study / "runs.jsonl", found)
    text = (paper(study) / "table.tex").read_text("utf-8")
    assert "PARTIAL TABLE without seed 3 of stack\\_pe}" in text


def test_a_table_for_each_test_set(tmp_path: Path):
    axes = {"domain": {"vars.d": ["law", "news"]}}
    out = make_study(tmp_path, axes=axes, vars={"size": 8, "d": "law"}, prepare=[
        "treesyntax generate for2lam --out {data}/{d} --size {size}"
    ], data={
        side: {"lang": lang, **{split: f"{{data}}/{{d}}/{split}.{suffix}" for split in ("train", "valid", "test")}}
        for side, lang, suffix in (("source", "for", "src"), ("target", "lambda", "tgt"))
    })  # fmt: skip
    text = (paper(out) / "table.tex").read_text("utf-8")
    assert re.findall(r"\\label\{(.*)\}", text) == ["tab:demo-domain-law", "tab:demo-domain-news"]


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_the_table_compiles(made: Path, tmp_path: Path):
    page = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n%s\\end{document}\n"
    (tmp_path / "page.tex").write_text(page % (made / "table.tex").read_text("utf-8"))
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
