"""Odd numbers in a study's files: the report is made, or refused in one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reliability.figures import count
from support.study_helpers import make_study

from treesyntax.__main__ import main
from treesyntax.study.results.results import (
    CHECKSUM,
    OF_A_METRIC,
    RESULTS_FILE,
    SCORES,
    _checksum,
)

ODD = {
    "value": [1e308, -1e308, float("nan"), float("inf"), None, 10**400, "1", [1], True],
    "parameters": [0, -1, 10**400, None],
    "valid_loss": [float("nan"), 1e308, 10**400],
    "peak_memory": [1e308, -1e308, -5.0],
    "train_seconds": [10**400, float("nan"), "x"],
    "versions": [{"a": 1}, None],
    "n": [10**400, None, 0],
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_study(tmp_path_factory.mktemp("odd"), seeds=[1], score=["exact"])
    assert main(["report", str(folder)]) == 0
    return folder


def reported(folder: Path, capsys: pytest.CaptureFixture) -> str:
    capsys.readouterr()
    status = main(["report", str(folder)])
    said = capsys.readouterr().err
    assert status in (0, 2)
    assert said.count("\n") == (status == 2)
    count("reports: odd values")
    return said


@pytest.mark.parametrize("key", ODD)
def test_odd_results_are_shown_or_refused(key: str, study: Path, capsys):
    path = study / RESULTS_FILE
    whole = path.read_bytes()
    first, *others = whole.split(b"\n")
    values = json.loads(first)
    values.pop(CHECKSUM)
    refused = 0
    for odd in ODD[key]:
        changed = {**values, key: odd}
        if key in OF_A_METRIC:
            changed = {**values, SCORES: [{**values[SCORES][0], key: odd}]}
        line = json.dumps({**changed, CHECKSUM: _checksum(changed)}, ensure_ascii=False)
        path.write_bytes(b"\n".join([line.encode(), *others]))
        said = reported(study, capsys)
        assert not said or f"{RESULTS_FILE}:1: is not a result" in said
        refused += bool(said)
    path.write_bytes(whole)
    assert refused
