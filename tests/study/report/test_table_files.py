"""The table of a study as CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
from dataclasses import asdict, fields, replace
from pathlib import Path
from statistics import fmean

import pytest
from support.study_helpers import RATES, make_study, result, score

from treesyntax.study.report.items.file import read_items
from treesyntax.study.report.report import Study, read_study, write_report
from treesyntax.study.report.table_files import latex_table, results_csv, table_csv
from treesyntax.study.results.results import Result


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return read_study(make_study(tmp_path, title="Trees & 100% of {them}_"))


def test_results_as_csv_are_results_jsonl(study: Study):
    odd = replace(
        result(value=0.1 + 0.2), tokens_per_second=None, commands=['a "b", c', "d\ne"], device="x,y"
    )
    results = [*study.results, odd]
    rows = list(csv.DictReader(io.StringIO(results_csv(results))))
    texts = {item.name for item in fields(Result) if item.type in ("str", "str | None")}
    found = [
        {
            name: value if name in texts and value != "null" else json.loads(value)
            for name, value in row.items()
        }
        for row in rows
    ]
    assert found == [asdict(item) for item in results]


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
    assert (tables / "results.csv").read_text() == results_csv(study.results)
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


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_the_latex_table_compiles(study: Study, tmp_path: Path):
    page = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n%s\\end{document}\n"
    (tmp_path / "page.tex").write_text(page % latex_table(study.table))
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
