"""Runs that were deleted and begun again: nothing of the former training counts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import support.fake_programs as fake_programs
from study.run.growing_studies import run, table, trained, updates
from support.fake_programs import note
from support.study_runs import done_steps

from treesyntax.study.results.results import read_results
from treesyntax.study.run.logs import read_log

pytestmark = pytest.mark.usefixtures("quick")


@pytest.mark.parametrize("deleted", ["runs/sequence-1", "runs/sequence-1/checkpoints"])
def test_a_deleted_run_that_is_begun_again_and_interrupted_is_not_done(
    deleted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The log of the former training says that it is done, and its score was kept."""
    run(tmp_path, seeds=[1])
    shutil.rmtree(tmp_path / "out" / deleted)

    def interrupted(journal: Path, *words: object) -> None:
        if words == ("update", "sequence-1", 3):
            raise KeyboardInterrupt
        note(journal, *words)

    with monkeypatch.context() as patch:
        patch.setattr(fake_programs, "note", interrupted)
        run(tmp_path, seeds=[1], status=130)
    assert not [name for name in done_steps(tmp_path) if name.startswith("sequence-1/")]
    assert "stack_pe-1/score" in done_steps(tmp_path)
    assert {one.method for one in read_results(tmp_path / "out/runs.jsonl")} == {"stack_pe"}
    again = run(tmp_path, seeds=[1])
    assert trained(again) == ["sequence-1"]
    assert updates(tmp_path).count("sequence-1") == 5 + 2 + 3
    assert again.split().count("fairseq-generate") == again.split().count("score") == 1
    assert table(tmp_path) == {"sequence": "1 of 1", "stack_pe": "1 of 1"}


@pytest.mark.parametrize("damage", ["damaged", "missing"])
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "interrupted"])
def test_a_run_that_nothing_is_known_of_is_moved_aside(
    damage: str, whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its checkpoints may be of other settings."""

    def interrupted(journal: Path, *words: object) -> None:
        if words == ("update", "sequence-1", 3):
            raise KeyboardInterrupt
        note(journal, *words)

    with monkeypatch.context() as patch:
        if not whole:
            patch.setattr(fake_programs, "note", interrupted)
        run(tmp_path, seeds=[1], status=0 if whole else 130)
    begun = tmp_path / "out/runs/sequence-1/begun.json"
    if damage == "missing":
        begun.unlink()
    else:
        begun.write_text("{")
    before = updates(tmp_path).count("sequence-1")
    again = run(tmp_path, seeds=[1], train={"lr": 0.5})
    assert "sequence-1" in trained(again)
    assert updates(tmp_path).count("sequence-1") - before == 5
    assert list(
        (tmp_path / "out/replaced/sequence-1-unknown/runs/sequence-1/checkpoints").iterdir()
    )
    assert table(tmp_path) == {"sequence": "1 of 1", "stack_pe": "1 of 1"}


def test_a_log_tells_the_training_of_checkpoints_that_are_gone_from_the_one_that_goes_on(
    tmp_path: Path,
):
    log = tmp_path / "train.log"
    saved = (
        "t | INFO | t | Saved checkpoint x.pt (epoch 1 @ {} updates, score 1) (writing took 1)\n"
    )
    done = "t | INFO | fairseq_cli.train | done training in 1.0 seconds\n"
    gone = "t | INFO | fairseq.trainer | No existing checkpoint found out/checkpoint_last.pt\n"
    loaded = "t | INFO | fairseq.trainer | Loaded checkpoint out/x.pt (epoch 1 @ {} updates)\n"
    for text, wanted in {
        saved.format(400) + done: (400, True),
        saved.format(400) + done + gone: (0, False),
        saved.format(400) + done + gone + saved.format(80): (80, False),
        saved.format(400) + done + loaded.format(80): (80, False),
        saved.format(80) + loaded.format(80) + saved.format(400) + done: (400, True),
    }.items():
        log.write_text(text)
        found = read_log(log)
        assert (found.saved, found.finished) == wanted
