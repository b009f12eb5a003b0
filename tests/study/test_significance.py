"""Significance in a study: which rows are tested, what is kept, and what tables say of it."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path
from statistics import fmean

import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
from support.study_helpers import recipe_content, result, write_recipe

from treesyntax.errors import InputError
from treesyntax.metrics import METRICS
from treesyntax.metrics.statistics import holm, randomisation, sign_flip
from treesyntax.study.recipe.identity import identify, write_identity
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.report.report import Study, read_study, write_report
from treesyntax.study.report.table_files import latex_table, results_csv, table_csv
from treesyntax.study.results import significance
from treesyntax.study.results.comparisons import read_comparisons
from treesyntax.study.results.results import Result, append_results
from treesyntax.study.run.plan import make_plan

LINES = 40
REFERENCES = [f"the tree {number} has {number % 7} green leaves" for number in range(LINES)]
RATES = {"sequence": 0.5, "relation_mask": 0.05, "stack_pe": 0.5}


@pytest.fixture(autouse=True)
def _few_shuffles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(significance, "randomisation", partial(randomisation, shuffles=400))


def outputs(method: str, seed: int) -> list[str]:
    choose = random.Random(f"{method}-{seed}")
    return [
        line.replace("tree", "dog") if choose.random() < RATES[method] else line
        for line in REFERENCES
    ]


def make_study(folder: Path, *overrides: str, **changes: object) -> Path:
    """A finished study whose outputs are as above."""
    changes = {"score": ["exact", "bleu"], "seeds": [1, 2, 3], **changes}
    recipe = read_recipe(write_recipe(folder, **changes), overrides)
    out = folder / "out"
    write_identity(out, recipe, identify(recipe))
    write(out / "data/p/test.tgt", REFERENCES)
    for run in make_plan(recipe).runs:
        write(out / run.folder / "hypotheses.txt", outputs(run.method.base, run.seed))
    append_results(out / "results.jsonl", [
        result(run.method.name, run.seed, metric, 50.0)
        for run in make_plan(recipe).runs for metric in recipe.score
    ])  # fmt: skip
    return out


def write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def test_rows_are_tested_against_the_baseline_and_corrected_together(tmp_path: Path):
    comparisons = read_study(make_study(tmp_path)).comparisons
    assert [(one.method, one.baseline, one.metric) for one in comparisons] == [
        ("relation_mask", "sequence", "exact"), ("stack_pe", "sequence", "exact"),
        ("relation_mask", "sequence", "bleu"), ("stack_pe", "sequence", "bleu"),
    ]  # fmt: skip
    assert [one.holm_p for one in comparisons] == holm([one.p for one in comparisons])
    assert [one.significant for one in comparisons] == [True, False, True, False]
    assert all(one.better for one in comparisons if one.significant)
    assert {one.seeds for one in comparisons} == {(1, 2, 3)}
    first = comparisons[0]
    right = {
        method: [
            sum(outputs(method, seed)[line] == REFERENCES[line] for seed in (1, 2, 3))
            for line in range(LINES)
        ]
        for method in ("sequence", "relation_mask")
    }
    won = [a - b for a, b in zip(right["relation_mask"], right["sequence"], strict=True)]
    assert first.p == sign_flip(won)
    assert first.difference == pytest.approx(100 * sum(won) / LINES / 3)
    assert first.lines == LINES


def test_with_one_seed_the_bootstrap_is_sacrebleus(tmp_path: Path, monkeypatch):
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    out = make_study(tmp_path, seeds=[2], score=["bleu"])
    systems = [
        (name, (out / f"runs/{name}-2/hypotheses.txt").read_text().splitlines()) for name in RATES
    ]
    _, scores = PairedTest(systems, {"BLEU": BLEU()}, [REFERENCES], "bs")()
    found = {one.method: one for one in read_study(out).comparisons}
    for name, expected in zip(RATES, scores["BLEU"], strict=True):
        if name != "sequence":
            assert found[name].bootstrap_p == expected.p_value
            difference = expected.score - scores["BLEU"][0].score
            assert found[name].difference == pytest.approx(difference)


def test_only_shared_seeds_and_finished_runs_are_tested(tmp_path: Path):
    out = make_study(tmp_path)
    (out / "runs/stack_pe-1/hypotheses.txt").unlink()
    lines = (out / "results.jsonl").read_text().split("\n")
    kept = [line for line in lines if not ('"sequence"' in line and '"seed": 3' in line)]
    (out / "results.jsonl").write_text("\n".join(kept))
    found = {one.method: one.seeds for one in read_study(out).comparisons}
    assert found == {"relation_mask": (1, 2), "stack_pe": (2,)}


def test_lines_seen_in_training_are_left_out(tmp_path: Path):
    out = make_study(tmp_path, score=["exact:unseen"])
    sources = [str(number) for number in range(LINES)]
    write(out / "data/p/test.src", sources)
    write(out / "data/p/train.src", sources[:10])
    write(out / "data/p/train.tgt", REFERENCES[:10])
    comparisons = read_study(out).comparisons
    assert {(one.metric, one.lines) for one in comparisons} == {("exact:unseen", 30)}


def test_tests_are_kept_until_something_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    out = make_study(tmp_path)
    write_report(read_study(out))
    first = read_comparisons(out)
    assert len(first) == 4
    calls: list[int] = []
    slow = significance.randomisation
    monkeypatch.setattr(significance, "randomisation", lambda *args: calls.append(1) or slow(*args))
    assert read_study(out).comparisons == first
    assert calls == []
    write(out / "runs/stack_pe-1/hypotheses.txt", REFERENCES)
    changed = read_study(out).comparisons
    assert len(calls) == 1
    assert changed[0] == replace(first[0], holm_p=changed[0].holm_p)
    (out / "significance.json").write_text("{")
    assert read_comparisons(out) == []
    assert read_study(out).comparisons == changed


def test_significance_json_has_every_number(tmp_path: Path):
    out = make_study(tmp_path)
    study = read_study(out)
    write_report(study)
    content = json.loads((out / "significance.json").read_text())
    assert content["level"] == 0.05
    assert content["correction"] == "Holm over 4 tests"
    assert [one["p"] for one in content["comparisons"]] == [one.p for one in study.comparisons]
    assert [one["significant"] for one in content["comparisons"]] == [True, False, True, False]


def test_another_baseline_in_the_report_only(tmp_path: Path):
    out = make_study(tmp_path)
    comparisons = read_study(out, "stack_pe").comparisons
    assert {(one.method, one.baseline) for one in comparisons} == {
        ("sequence", "stack_pe"), ("relation_mask", "stack_pe"),
    }  # fmt: skip


def test_outputs_of_another_length_are_refused(tmp_path: Path):
    out = make_study(tmp_path)
    write(out / "runs/stack_pe-1/hypotheses.txt", REFERENCES[:3])
    with pytest.raises(InputError, match=r"has 3 lines, but .*test\.tgt has 40; run the study"):
        read_study(out)


def test_a_lost_test_set_is_noted_and_keeps_what_was_computed(tmp_path: Path):
    out = make_study(tmp_path)
    write_report(read_study(out))
    before = (out / "significance.json").read_bytes()
    (out / "data/p/test.tgt").unlink()
    study = read_study(out)
    write_report(study)
    assert study.comparisons == []
    assert study.table.notes[-1].startswith("Not tested for significance: ")
    assert "test.tgt is not there" in study.table.notes[-1]
    assert (out / "significance.json").read_bytes() == before


# What tables say


def test_the_table_marks_what_is_significant_and_what_is_not(tmp_path: Path):
    study = read_study(make_study(tmp_path))
    assert [study.table.cells(row)[1:3] for row in study.table.rows] == [
        ["50.00 ± 0.00", "50.00 ± 0.00"],
        ["50.00 ± 0.00 †", "50.00 ± 0.00 †"],
        ["50.00 ± 0.00 ns", "50.00 ± 0.00 ns"],
    ]
    (note,) = study.table.notes
    assert note.startswith("† differs from sequence with p < 0.05 after Holm's correction for 4 ")
    assert "exact sign-flip over lines; approximate randomisation over lines, 10000" in note
    assert "no proof of equality" in note


@pytest.mark.parametrize("seeds", [[1], [1, 2]])
def test_too_few_seeds_are_said(tmp_path: Path, seeds: list[int]):
    study = read_study(make_study(tmp_path, seeds=seeds))
    assert study.table.notes[1] == (
        f"Too few seeds to tell methods apart ({len(seeds)}; at least 3 are needed): † and ns "
        "speak of these runs on other test sentences, not of the methods"
    )


def test_metrics_without_a_test_and_their_direction_are_said(tmp_path: Path):
    out = make_study(tmp_path, score=["ter", "nonsense"])
    study = read_study(out)
    assert study.table.notes[-1] == "Not tested for significance: nonsense"
    assert study.comparisons[0].difference < 0
    assert study.comparisons[0].better
    write_report(study)
    assert "higher is better, but lower for ter" in (out / "report.md").read_text()
    assert "higher is better, but lower for ter" in (out / "report.html").read_text()


def test_parts_of_trees_are_tested_over_lines(tmp_path: Path, monkeypatch):
    trees = [f"( tree n{number} ( has {number % 7} leaves ) )" for number in range(LINES)]
    monkeypatch.setattr(sys.modules[__name__], "REFERENCES", trees)
    out = make_study(tmp_path, score=["f1:sexpr", "productions:sexpr"])
    found = {(one.method, one.metric): one for one in read_study(out).comparisons}
    for metric in ("f1:sexpr", "productions:sexpr"):
        means = {
            name: fmean(METRICS[metric](outputs(name, seed), trees)[0].value for seed in (1, 2, 3))
            for name in RATES
        }
        for name in ("relation_mask", "stack_pe"):
            expected = means[name] - means["sequence"]
            assert found[name, metric].difference == pytest.approx(expected)
        assert found["relation_mask", metric].significant
        assert not found["stack_pe", metric].significant


def test_rows_of_a_grid_name_their_baselines(tmp_path: Path):
    methods = {name: recipe_content()["methods"][name] for name in ("sequence", "relation_mask")}
    study = read_study(
        make_study(tmp_path, methods=methods, axes={"lr": {"train.lr": [1, 2]}}, score=["exact"])
    )
    assert {(one.method, one.baseline) for one in study.comparisons} == {
        ("relation_mask-lr=1", "sequence-lr=1"), ("relation_mask-lr=2", "sequence-lr=2"),
    }  # fmt: skip
    assert "† differs from sequence at the same point of the axes with" in study.table.notes[0]


# Tables as files


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return read_study(make_study(tmp_path, title="Trees & 100% of {them}_"))


def test_results_as_csv_are_results_jsonl(study: Study):
    odd = replace(
        result(value=0.1 + 0.2), tokens_per_second=None, commands=['a "b", c', "d\ne"], device="x,y"
    )
    results = [*study.results, odd]
    rows = list(csv.DictReader(io.StringIO(results_csv(results))))
    texts = {item.name for item in fields(Result) if item.type == "str"}
    found = [
        {name: value if name in texts else json.loads(value) for name, value in row.items()}
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
        assert (float(row["p"]), float(row["holm_p"])) == (one.p, one.holm_p)
        assert row["baseline"] == one.baseline
    assert found["sequence", "exact"]["p"] == ""
    assert float(found["sequence", "exact"]["mean"]) == 50.0


def test_the_report_writes_the_tables(study: Study):
    write_report(study)
    tables = study.folder / "tables"
    assert (tables / "results.csv").read_text() == results_csv(study.results)
    assert (tables / "table.csv").read_text() == table_csv(study.table)
    assert (tables / "table.tex").read_text() == latex_table(study.table)


def test_the_latex_table_is_well_formed(study: Study):
    text = latex_table(study.table)
    assert r"\caption{Trees \& 100\% of \{them\}\_}" in text
    assert r"relation\_mask & 50.00 $\pm$ 0.00 $^{\dagger}$ &" in text
    opened = re.findall(r"\\begin\{(\w+)\}", text)
    assert opened == re.findall(r"\\end\{(\w+)\}", text)[::-1] == ["table", "tabular"]
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    columns = re.search(r"\\begin\{tabular\}\{(\w+)\}", text)[1]
    assert len(rows) == 4
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {len(columns) - 1}
    bare = re.sub(r"\\[&%$#_{}]", "", text)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not re.search(r"[#_±†–]", bare)


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is not installed")
def test_the_latex_table_compiles(study: Study, tmp_path: Path):
    page = "\\documentclass{article}\\usepackage{booktabs}\\begin{document}\n%s\\end{document}\n"
    (tmp_path / "page.tex").write_text(page % latex_table(study.table))
    words = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "page.tex"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
