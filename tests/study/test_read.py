"""A study as plain records, by the public function."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean, stdev

import pytest
from support.study_helpers import LINES, make_study, outputs, score, two_methods

import treesyntax as ts
from treesyntax.metrics.line_file import FILE

METRICS = ["exact", "bleu"]


@pytest.fixture
def study(tmp_path: Path) -> ts.StudyData:
    return ts.read_study(make_study(tmp_path, score=METRICS))


def test_a_record_is_a_run_in_a_metric(study: ts.StudyData):
    assert len(study.runs) == 9 * len(METRICS)
    for run in study.runs:
        assert run["score"] == score(run["row"], run["seed"], run["metric"])
        assert run["parameters"] == 10
    json.dumps(study.runs)


def test_a_record_is_a_line_of_a_run_in_a_metric(study: ts.StudyData):
    assert len(study.lines) == 9 * len(METRICS) * LINES
    right = [
        line["score"]
        for line in study.lines
        if (line["row"], line["seed"], line["metric"]) == ("stack_pe", 2, "exact")
    ]
    assert right == [0.0 if "dog" in text else 100.0 for text in outputs("stack_pe", 2)]
    assert {line["line"] for line in study.lines} == {*range(LINES)}
    assert {len(line["statistics"]) for line in study.lines} == {1, 10}
    json.dumps(study.lines)


def test_pandas_takes_the_records(study: ts.StudyData):
    pandas = pytest.importorskip("pandas")
    means = pandas.DataFrame(study.runs).groupby(["metric", "row"])["score"].mean()["exact"]
    assert means["sequence"] == pytest.approx(
        fmean(score("sequence", seed, "exact") for seed in (1, 2, 3))
    )
    assert len(pandas.DataFrame(study.lines)) == len(study.lines)
    assert len(pandas.DataFrame(study.table())) == 6


def test_the_table_is_that_of_the_report(study: ts.StudyData):
    from treesyntax.study.report.report import read_study

    report = read_study(study.folder)
    compared = {(one.method, one.metric): one for one in report.comparisons}
    table = study.table()
    assert [(record["row"], record["metric"]) for record in table[:2]] == [
        ("sequence", "exact"),
        ("sequence", "bleu"),
    ]
    for record in table:
        values = [score(record["row"], seed, record["metric"]) for seed in (1, 2, 3)]
        assert (record["mean"], record["sd"]) == pytest.approx((fmean(values), stdev(values)))
        comparison = compared.get((record["row"], record["metric"]))
        for name in ("baseline", "difference", "low", "high", "p", "holm_p", "items"):
            assert record[name] == (comparison and getattr(comparison, name)), name


def test_any_two_rows_are_compared(study: ts.StudyData):
    found = study.compare("relation_mask")
    (listed,) = [
        one for one in study.table() if (one["row"], one["metric"]) == ("relation_mask", "exact")
    ]
    assert {name: found[name] for name in ("baseline", "difference", "p")} == {
        name: listed[name] for name in ("baseline", "difference", "p")
    }
    other = study.compare("relation_mask", "stack_pe", "bleu")
    assert other["baseline"] == "stack_pe"
    assert other["difference"] > 0
    for words, message in (
        (("nobody",), "no row is named 'nobody'"),
        (("relation_mask", "nobody"), "no row is named 'nobody'"),
        (("relation_mask", None, "chrf"), "no metric is named 'chrf'"),
        (("sequence",), "sequence is a baseline; name another row"),
        (("relation_mask", "relation_mask"), "relation_mask is a baseline; name another row"),
    ):
        with pytest.raises(ts.OptionError, match=message):
            study.compare(*words)


def test_unseen_lines_of_rows_with_other_data_are_not_compared(tmp_path: Path):
    methods = two_methods()
    methods["relation_mask"]["data"] = {"source": {"train": "{data}/p/trees.src"}}
    out = make_study(tmp_path, score=["exact", "exact:unseen"], methods=methods)
    study = ts.read_study(out)
    assert study.compare("relation_mask")["difference"] > 0
    with pytest.raises(
        ts.OptionError, match="counts other lines of relation_mask than of sequence"
    ):
        study.compare("relation_mask", metric="exact:unseen")


def test_a_folder_without_a_study_is_refused(tmp_path: Path):
    with pytest.raises(ts.OptionError, match="holds no study"):
        ts.read_study(tmp_path)


def test_the_file_of_the_step_score_is_read(study: ts.StudyData):
    """Of the very outputs: with another output it does not count."""
    file = study.folder / "runs/sequence-1" / FILE
    lines = study.folder / "runs/sequence-1/hypotheses.txt"
    from treesyntax.__main__ import main

    words = [
        "score",
        "--reference",
        str(study.folder / "data/p/test.tgt"),
        "--hypothesis",
        str(lines),
    ]
    assert main([*words, "--metric", "exact", "--lines", str(file)]) == 0
    content = json.loads(file.read_text())
    assert content["metrics"].keys() == {"exact"}
    assert ts.read_study(study.folder).lines == study.lines
