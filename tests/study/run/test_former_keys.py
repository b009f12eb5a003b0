"""Studies of older versions, whose keys of rows at points of axes lacked their data."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from study.run.growing_studies import content, run, table, trained

from treesyntax.study.run.former_keys import CUT_OFF
from treesyntax.study.run.keys import Keys

pytestmark = pytest.mark.usefixtures("quick")
ROWS = ["sequence-lr=1-1", "sequence-lr=2-1"]


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a study as an older version did."""

    def run_older(**changes: object) -> str:
        with monkeypatch.context() as patch:
            patch.setattr("treesyntax.study.run.ledger.Keys", partial(Keys, inside=CUT_OFF))
            return run(tmp_path, **changes)

    return run_older


def recipe(folder: Path, **changes: object) -> dict:
    methods = {"sequence": content(folder)["methods"]["sequence"]}
    return {"seeds": [1], "methods": methods, "axes": {"lr": {"train.lr": [1, 2]}}, **changes}


def test_what_an_older_version_trained_is_kept(tmp_path: Path, older, capsys):
    assert trained(older(**recipe(tmp_path))) == ROWS
    capsys.readouterr()
    assert run(tmp_path, **recipe(tmp_path)) == ""
    said = capsys.readouterr().out
    assert "2 runs of an older version at points of axes are kept" in said
    assert "the former run is in" not in said
    assert table(tmp_path) == dict.fromkeys((name[:-2] for name in ROWS), "1 of 1")
    assert run(tmp_path, **recipe(tmp_path)) == ""
    assert "older version" not in capsys.readouterr().out
    more = run(tmp_path, **recipe(tmp_path, axes={"lr": {"train.lr": [1, 2, 3]}}))
    assert trained(more) == ["sequence-lr=3-1"]


def test_what_an_older_version_kept_on_other_data_is_trained_anew(tmp_path: Path, older, capsys):
    older(**recipe(tmp_path))
    other = recipe(tmp_path, binarize={"subword-vocab": 9})
    assert trained(older(**other)) == []  # which was wrong
    assert trained(run(tmp_path, **other)) == ROWS
    assert "its training command or data have changed; the former run is in" in (
        capsys.readouterr().out
    )


def test_trials_of_an_older_version_are_kept(tmp_path: Path, older, capsys):
    search = {"over": {"train.dropout": [0.1, 0.3]}}
    changes = {"methods": {"sequence": content(tmp_path)["methods"]["sequence"]}, "seeds": [1]}
    first = older(**changes, search=search)
    assert len(trained(first)) == 3
    assert run(tmp_path, **changes, search=search) == ""
    assert len(trained(run(tmp_path, **changes, search=search, binarize={"subword-vocab": 9}))) == 3
