"""Studies of older versions, whose keys of rows at points of axes lacked their data."""

from __future__ import annotations

from pathlib import Path

import pytest
from study.run.growing_studies import content, run, table, trained

from treesyntax.files import write_json
from treesyntax.study.run.former_keys import FormerKeys

pytestmark = pytest.mark.usefixtures("quick")
ROWS = ["sequence-lr=1-1", "sequence-lr=2-1"]


@pytest.fixture
def older(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Runs a study as an older version did."""

    def run_older(**changes: object) -> str:
        with monkeypatch.context() as patch:
            patch.setattr("treesyntax.study.run.ledger.Keys", FormerKeys)
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
    assert "2 runs of an older version are kept" in said
    assert "the former run is in" not in said
    assert table(tmp_path) == dict.fromkeys((name[:-2] for name in ROWS), "1 of 1")
    assert run(tmp_path, **recipe(tmp_path)) == ""
    assert "older version" not in capsys.readouterr().out
    more = run(tmp_path, **recipe(tmp_path, axes={"lr": {"train.lr": [1, 2, 3]}}))
    assert trained(more) == ["sequence-lr=3-1"]


def test_the_plan_counts_what_an_older_version_trained_and_writes_nothing(
    tmp_path: Path, older, capsys
):
    def content_of(folder: Path) -> dict[str, tuple[bytes, int]]:
        files = [file for file in folder.rglob("*") if file.is_file()]
        return {str(file): (file.read_bytes(), file.stat().st_mtime_ns) for file in files}

    for out, whole in ("axis", recipe(tmp_path)), ("loop", in_a_loop(tmp_path, "a")):
        older(**whole, out=out)
        before = content_of(tmp_path / out)
        capsys.readouterr()
        for seeds in [1], [1, 2]:
            run(tmp_path, "--plan", out=out, **{**whole, "seeds": seeds})
            assert "runs, 2 done\n" in capsys.readouterr().out
        assert content_of(tmp_path / out) == before
    run(tmp_path, "--plan", out="axis", **recipe(tmp_path, binarize={"subword-vocab": 9}))
    assert "runs, 0 done\n" in capsys.readouterr().out


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


def in_a_loop(folder: Path, word: str) -> dict:
    """Data in a folder that one command names and another fills."""
    found = content(folder)
    for split in ("train", "valid", "test"):
        found["data"]["source"][split] = f"{{data}}/p/{split}.low"
    loop = f"bash -c 'for s in train valid test; do sed s,x,{word}, < {{data}}/p/$s.src > {{data}}/p/$s.low; done'"
    train = {**found["train"], "save-interval-updates": 5}
    return {**found, "seeds": [1], "prepare": [*found["prepare"], loop], "train": train}


def test_runs_over_data_of_a_shell_are_kept_unless_its_command_was_edited(
    tmp_path: Path, older, capsys
):
    rows = ["sequence-1", "stack_pe-1"]
    assert trained(older(**in_a_loop(tmp_path, "a"))) == rows
    older(**in_a_loop(tmp_path, "b"), out="edited")
    assert trained(older(**in_a_loop(tmp_path, "c"), out="edited")) == []  # which was wrong
    capsys.readouterr()
    assert run(tmp_path, **in_a_loop(tmp_path, "a")) == ""
    assert "2 runs of an older version are kept" in capsys.readouterr().out
    assert run(tmp_path, **in_a_loop(tmp_path, "a")) == ""
    assert "older version" not in capsys.readouterr().out
    run(tmp_path, **in_a_loop(tmp_path, "c"), out="edited", status=2)
    assert "was trained with another data.source.train" in capsys.readouterr().err


def test_a_run_of_an_older_version_is_trained_on(tmp_path: Path, older, capsys):
    older(**in_a_loop(tmp_path, "a"))
    capsys.readouterr()
    started = run(tmp_path, "--train-on", "2", **in_a_loop(tmp_path, "a"))
    assert trained(started) == ["sequence-1", "stack_pe-1"]
    said = capsys.readouterr().out
    assert said.count("trains on from update") == 2, said


def test_other_settings_over_the_data_of_an_older_version_are_trained(tmp_path: Path, older):
    older(**in_a_loop(tmp_path, "a"))
    other = {**in_a_loop(tmp_path, "a"), "binarize": {"subword-vocab": 9}}
    assert trained(run(tmp_path, **other)) == ["sequence-1", "stack_pe-1"]


@pytest.mark.parametrize("written", [1, 5])
def test_records_of_an_older_version_half_of_which_were_rewritten_still_count(
    tmp_path: Path, older, monkeypatch: pytest.MonkeyPatch, written: int
):
    older(**in_a_loop(tmp_path, "a"))
    left = iter(range(written))

    def write_some(*args: object) -> None:
        if next(left, None) is None:
            raise InterruptedError
        write_json(*args)

    with monkeypatch.context() as patch:
        patch.setattr("treesyntax.study.run.former_keys.write_json", write_some)
        with pytest.raises(InterruptedError):
            run(tmp_path, **in_a_loop(tmp_path, "a"))
    assert run(tmp_path, **in_a_loop(tmp_path, "a")) == ""
