"""The table of a study as CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from pathlib import Path
from statistics import fmean

import pytest
from support import ROOT
from support.study_helpers import RATES, make_study, score

import treesyntax as ts
from treesyntax.study.recipe.recipe import SPLITS
from treesyntax.study.report.items import read_items
from treesyntax.study.report.report import Study, read_study, write_report
from treesyntax.study.report.table_files import latex_table, results_csv, table_csv
from treesyntax.study.results.table_text import latex_text
from treesyntax.study.results.tidy import COLUMNS


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return read_study(make_study(tmp_path, title="Trees & 100% of {them}_"))


def test_results_as_csv_are_tidy_and_those_of_read_study(study: Study):
    write_report(study)
    text = (study.folder / "tables/results.csv").read_text("utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(study.results) == 3 * 3 * 2
    assert len(rows[0]) == 12
    assert {(row["row"], row["seed"], row["metric"]): float(row["score"]) for row in rows} == {
        (one.method, str(one.seed), one.metric): one.value for one in study.results
    }
    runs = ts.read_study(study.folder).runs
    assert [
        {name: "" if value is None else str(value) for name, value in run.items()} for run in runs
    ] == rows
    page = (ROOT / "docs/analysis.md").read_text("utf-8")
    assert [f"| `{name}` | {text} |" in page for name, text in COLUMNS.items()] == [True] * 12


def test_tidy_results_name_the_test_set(tmp_path: Path):
    axes = {"domain": {"vars.d": ["law", "news"]}}
    out = make_study(tmp_path, axes=axes, vars={"size": 8, "d": "law"}, prepare=[
        "treesyntax generate for2lam --out {data}/{d} --size {size}"
    ], data={
        side: {"lang": lang, **{split: f"{{data}}/{{d}}/{split}.{suffix}" for split in SPLITS}}
        for side, lang, suffix in (("source", "for", "src"), ("target", "lambda", "tgt"))
    })  # fmt: skip
    found = {run["test_set"] for run in ts.read_study(out).runs}
    assert found == {"domain=law", "domain=news"}


def test_the_table_as_csv_has_full_numbers(study: Study):
    rows = list(csv.DictReader(io.StringIO(table_csv(study.table))))
    assert [(row["method"], row["metric"]) for row in rows] == [
        (method, metric) for method in RATES for metric in ("exact", "bleu")
    ]
    found = {(row["method"], row["metric"]): row for row in rows}
    for one in study.comparisons:
        row = found[one.method, one.metric]
        names = ("low", "high", "p", "holm_p", "smallest", "checkpoint_p")
        assert [float(row[name]) for name in names] == [getattr(one, name) for name in names]
        assert row["baseline"] == one.baseline
    assert found["sequence", "exact"]["p"] == ""
    expected = fmean(score("sequence", seed, "exact") for seed in (1, 2, 3))
    assert float(found["sequence", "exact"]["mean"]) == expected


def test_the_report_writes_the_tables(study: Study):
    write_report(study)
    tables = study.folder / "tables"
    assert (tables / "results.csv").read_text() == results_csv(study.plan.recipe, study.results)
    assert (tables / "table.csv").read_text() == table_csv(study.table)
    assert (tables / "table.tex").read_text() == latex_table(study.table)
    assert {run.row for run in read_items(tables / "items.jsonl").runs} == {*RATES}


def test_the_latex_table_is_well_formed(study: Study):
    text = latex_table(study.table)
    assert r"\caption{Trees \& 100\% of \{them\}\_}" in text
    assert re.search(
        r"relation\\_mask & [\d.]+ \$\\pm\$ [\d.]+ \$\^\{\\dagger\}\$\$\^\{\\circ\}\$ &", text
    )
    opened = re.findall(r"\\begin\{(\w+)\}", text)
    assert opened == re.findall(r"\\end\{(\w+)\}", text)[::-1] == ["table", "tabular"]
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    columns = re.search(r"\\begin\{tabular\}\{(\w+)\}", text)[1]
    assert len(rows) == 5  # with the line of what it would find
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {len(columns) - 1}
    bare = re.sub(r"\\[&%$#_{}]", "", text)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not re.search(r"[#_±†°–]", bare)


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("--only a|b", r"-{}-only a\textbar{}b"),
        ("---", "-{}-{}-"),
        ("2–3", "2--3"),
        ("f-score, a", "f-score, a"),
        ("''a`` ,,b ?`", "'{}'a`{}` ,{},b ?{}`"),
    ],
)
def test_latex_prints_each_character_of_a_text(text: str, latex: str):
    """Fonts have ligatures for some pairs, and OT1 a dash in place of the bar."""
    assert latex_text(text) == latex


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_the_latex_table_compiles(study: Study, tmp_path: Path):
    page = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n%s\\end{document}\n"
    (tmp_path / "page.tex").write_text(page % latex_table(study.table))
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
