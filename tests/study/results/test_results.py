"""results.jsonl: each result once, whatever interrupts the writing."""

from __future__ import annotations

from pathlib import Path

from support.study_helpers import result

from treesyntax.study.results.results import append_results, read_results


def test_results_are_appended_once(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    assert read_results(file) == []
    assert append_results(file, [result(), result(seed=2)]) == [result(), result(seed=2)]
    assert append_results(file, [result(value=9), result(metric="bleu")]) == [result(metric="bleu")]
    assert read_results(file) == [result(), result(seed=2), result(metric="bleu")]
    assert file.read_bytes().count(b"\n") == 3


def test_a_torn_last_line_is_dropped_and_overwritten(tmp_path: Path):
    file = tmp_path / "results.jsonl"
    append_results(file, [result(), result(seed=2)])
    whole = file.read_bytes()
    second = whole.index(b"\n") + 1
    for cut in range(second, len(whole)):
        file.write_bytes(whole[:cut])
        assert read_results(file) == [result()]
    append_results(file, [result(), result(seed=2)])
    assert file.read_bytes() == whole
