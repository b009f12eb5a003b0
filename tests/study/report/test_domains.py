"""Studies over several test sets."""

from __future__ import annotations

import csv
from pathlib import Path

from support.study_helpers import (
    LINES,
    REFERENCES,
    make_two_test_sets,
    outputs,
    recipe_content,
    score,
    write,
)

from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.report.table_files import markdown_table


def test_each_test_set_has_a_table_and_all_have_a_summary(tmp_path: Path):
    methods = {name: recipe_content()["methods"][name] for name in ("sequence", "stack_pe")}
    out = make_two_test_sets(tmp_path, methods=methods, categories="{data}/{d}.kinds")
    for domain, kinds in (("law", 2), ("news", 3)):
        write(out / f"data/{domain}.kinds", [f"{domain}{n % kinds}" for n in range(LINES)])
    study = read_study(out)
    names = [table.title for table in study.table.tables]
    assert names == ["domain=law", "domain=news", "exact on each test set"]
    assert [row[0] for row in study.table.tables[1][2]] == [
        "sequence-domain=news", "stack_pe-domain=news", "would find"
    ]  # fmt: skip
    _, header, rows = study.table.tables[2]
    assert header == ["method", "domain=law", "domain=news"]
    assert [row[0] for row in rows] == ["sequence", "stack_pe", "would find"]
    assert all(cell.endswith(" not shown") for cell in rows[1][1:])
    mean = sum(score("stack_pe", seed, "exact") for seed in (1, 2, 3)) / 3
    assert all(cell.startswith(f"{mean:.2f} ± ") for cell in rows[1][1:])
    assert outputs("stack_pe", 1) != REFERENCES
    assert {one.baseline for one in study.comparisons} == {
        "sequence-domain=law", "sequence-domain=news"
    }  # fmt: skip
    text = markdown_table(study.table)
    assert text.count("### ") == 3
    page = write_report(study).read_text()
    assert [f'<table id="results{place}">' in page for place in ("", 2, 3)] == [True] * 3
    assert "Of several test sets only one is drawn, {data}/law.tgt" in page
    table = csv.DictReader((out / "tables/table.csv").open())
    assert {(row["test_set"], row["system"], row["method"]) for row in table} == {
        (f"domain={domain}", system, f"{system}-domain={domain}")
        for domain in ("law", "news") for system in methods
    }  # fmt: skip
    latex = (out / "tables/table.tex").read_text()
    captions = [line.partition(": ")[2] for line in latex.splitlines() if "caption" in line]
    assert captions == ["domain=law}", "domain=news}", "exact on each test set}"]
    by_kind = csv.DictReader((out / "tables/categories.csv").open())
    found = {(row["category"], row["method"]) for row in by_kind}
    assert found == {
        (f"{domain}{kind}", f"{system}-domain={domain}")
        for domain, kinds in (("law", 2), ("news", 3)) for kind in range(kinds) for system in methods
    }  # fmt: skip
    for domain in ("law", "news"):
        assert (out / f"figures/score_by_category_{domain}.svg").is_file()
