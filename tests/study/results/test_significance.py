"""Significance in a study: which rows are tested, what is kept, and what tables say of it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean

import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
from support import study_helpers
from support.study_helpers import (
    LINES,
    RATES,
    REFERENCES,
    make_study,
    outputs,
    recipe_content,
    write,
)  # fmt: skip

from treesyntax.errors import InputError
from treesyntax.metrics import METRICS
from treesyntax.metrics.statistics import holm, randomisation, sign_flip
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.results import significance
from treesyntax.study.results.comparisons import read_comparisons


@pytest.fixture(autouse=True)
def _few_shuffles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(significance, "randomisation", partial(randomisation, shuffles=400))


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
    content = json.loads((out / "significance.json").read_text())
    assert (content["level"], content["correction"]) == (0.05, "Holm over 4 tests")
    assert [one["p"] for one in content["comparisons"]] == [one.p for one in first]
    assert [one["significant"] for one in content["comparisons"]] == [True, False, True, False]
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
    assert "test.tgt does not exist" in study.table.notes[-1]
    assert (out / "significance.json").read_bytes() == before


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
        "say how these runs would differ on other test sentences, not how the methods differ"
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
    monkeypatch.setattr(study_helpers, "REFERENCES", trees)
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
