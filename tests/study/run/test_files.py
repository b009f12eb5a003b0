"""Files of a study: logs, hypotheses, checkpoints after a kill, results."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
import torch

from treesyntax.errors import InputError
from treesyntax.jobs.node import peak_line
from treesyntax.study.run.checkpoints import is_trained, repair_checkpoints
from treesyntax.study.run.hypotheses import main as collect_hypotheses
from treesyntax.study.run.hypotheses import read_hypotheses
from treesyntax.study.run.logs import (
    TrainLog,
    divergence,
    last_line,
    load_line,
    read_log,
)

LOG = """\
# 2026-01-01 command
2026 | INFO | fairseq.utils | rank   0: capabilities =  9.0  ; total memory = 139.7 GB ; name = NVIDIA H200
2026 | INFO | train_inner | {"epoch": 1, "update": 0.5, "loss": "5.5", "wps": "0", "num_updates": "50"}
2026 | INFO | train_inner | {"epoch": 1, "update": 0.8, "loss": "4.5", "wps": "300", "gb_free": "130.2", "num_updates": "80"}
2026 | INFO | valid | {"epoch": 1, "valid_loss": "4.0", "valid_num_updates": "100"}
2026 | INFO | fairseq.checkpoint_utils | Saved checkpoint /x/checkpoint_best.pt (epoch 1 @ 100 updates, score 4.0) (writing took 0.1 seconds)
2026 | INFO | train | {"epoch": 1, "train_loss": "5", "train_num_updates": "100"}
2026 | INFO | train_inner | {"epoch": 2, "update": 1.5, "loss": "3.5", "wps": "100", "gb_free": "131.7", "num_updates": "150"}
2026 | INFO | valid | {"epoch": 1, "valid_loss": "3.9", "valid_num_updates": "100"}
2026 | INFO | train_inner | {broken
2026 | INFO | train_inner | {"epoch": 2, "update": 1.8, "loss": null, "wps": "200", "num_updates": "180"}
"""


def test_a_training_log_is_read(tmp_path: Path):
    file = tmp_path / "log"
    file.write_text(LOG + "2026 | INFO | fairseq_cli.train | done training in 3.1 seconds\n")
    log = read_log(file)
    assert log.valid == {100: 3.9}
    assert log.speeds == [300, 100, 200]
    assert log.tokens_per_second == 200
    assert (log.updates, log.epochs, log.saved, log.finished) == (180, 1.8, 100, True)
    assert log.device == "NVIDIA H200"
    assert log.peak_memory == pytest.approx(1024 * (139.7 - 130.2))
    assert read_log(file, tail=True).updates == 180


def test_pairs_seen_and_pairs_a_second_are_read_from_intervals(tmp_path: Path):
    rows = [
        (50, 0.5, 30, 1),
        (100, 1.0, 34, 5),
        (100, 1.0, 34, 6),
        (150, 1.5, 32, 7),
        (200, 2.0, 32, 8),
    ]
    file = tmp_path / "log"
    file.write_text("".join(
        f'x | INFO | train_inner | {{"update": {epochs}, "num_updates": "{updates}", "bsz": "{pairs}", '
        f'"ups": "{rate}", "wps": "9"}}\n'
        for updates, epochs, pairs, rate in rows
    ) + 'x | INFO | valid | {"valid_loss": "4", "valid_num_updates": "220"}\n')  # fmt: skip
    log = read_log(file)
    assert log.pairs == 220 * 32  # what was repeated after a resume counts once
    assert log.epochs_seen == pytest.approx(2.2)
    assert log.pairs_per_second == (195.5, 214, 232)
    old = tmp_path / "old"
    old.write_text(LOG)
    assert (read_log(old).pairs, read_log(old).pairs_per_second) == (None, None)


def test_peak_memory_is_that_of_the_largest_session_and_load_that_of_the_busiest(tmp_path: Path):
    file = tmp_path / "log"
    file.write_text("".join(map(peak_line, (3 * 2**20, 7 * 2**20, 5 * 2**20))))
    assert read_log(file).peak_memory == 7
    assert read_log(file).load is None
    file.write_text(load_line(1.5) + peak_line(1) + load_line(1.25))
    assert read_log(file).load == 1.5  # of the busiest session
    assert last_line(file) == ""


def test_no_log_is_an_empty_log(tmp_path: Path):
    log = read_log(tmp_path / "none")
    assert (log.valid, log.tokens_per_second, log.loss, log.finished) == ({}, None, None, False)
    assert log.peak_memory is None


def test_the_last_line_that_says_something(tmp_path: Path):
    file = tmp_path / "log"
    file.write_text("# command\nTraceback\nValueError: bad\n\n# command\n")
    assert last_line(file) == "ValueError: bad"
    assert last_line(tmp_path / "none") == ""


STATS = '{"epoch": 1, "loss": "7.25", "num_updates": "150", "lr": "0.5"}'
CRASH = """\
FloatingPointError: gradients are Nan/Inf

During handling of the above exception, another exception occurred:

StopIteration
"""


@pytest.mark.parametrize(("said", "cause"), [
    (CRASH, "NaN or infinite gradients"),
    ("FloatingPointError: Minimum loss scale reached (0.0001). Your loss is\n", "overflow at the"),
])  # fmt: skip
def test_a_diverged_training_is_called_so(tmp_path: Path, said: str, cause: str):
    file = tmp_path / "log"
    text = f"# 2026-01-01T00:00:00Z fairseq-train\n2026 | INFO | train_inner | {STATS}\n{said}"
    file.write_text(text + peak_line(1))
    found = divergence(file)
    assert found.startswith(f"training diverged ({cause}")
    assert "soon after update 150, learning rate 0.5, loss 7.25;" in found
    # Another session failed for another reason.
    file.write_text(f"{text}# 2026-01-01T01:00:00Z fairseq-train\nValueError: bad\n")
    assert divergence(file) == ""


def test_hypotheses_come_in_the_order_of_the_test_set(tmp_path: Path):
    file = tmp_path / "generate-test.txt"
    file.write_text("S-2\tx\nD-2\t-1\tc\nH-2\t-1\tc\nD-0\t-1\t\nD-1\t-2\tb\tb\nGenerate test\n")
    assert read_hypotheses(file, 3) == ["", "b\tb", "c"]
    reference, out = tmp_path / "ref", tmp_path / "out" / "hyp"
    reference.write_text("1\n2\n3\n")
    assert collect_hypotheses([str(file), str(out), "--reference", str(reference)]) == 0
    assert out.read_text() == "\nb\tb\nc\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("D-0\t-1\ta\n", r"1 of 2 sentences have no hypothesis \(number 1\); they are too long"),
        ("D-0\t-1\ta\nD-0\t-1\ta\n", ":2: sentence 0 comes twice"),
        ("D-2\t-1\ta\n", ":1: sentence 2 is not in a test set of 2"),
        ("D-0\n", ":1: is not D-NUMBER, score and text"),
    ],
)
def test_faulty_generations_are_refused(tmp_path: Path, text: str, message: str):
    file = tmp_path / "g"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_hypotheses(file, 2)


def test_collecting_reports_a_fault_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture):
    words = [str(tmp_path / "g"), str(tmp_path / "o"), "--reference", str(tmp_path / "none")]
    assert collect_hypotheses(words) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "o").exists()


def checkpoint(path: Path, text: str, age: float) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x", text)
    os.utime(path, (1e9 - age, 1e9 - age))


def content(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        return archive.read("x").decode()


@pytest.mark.parametrize("keep", [0, 1, 50, -1])
def test_a_cut_copy_is_replaced_by_the_newest_checkpoint(tmp_path: Path, keep: int):
    checkpoint(tmp_path / "checkpoint_1_10.pt", "new", age=1)
    checkpoint(tmp_path / "checkpoint_best.pt", "old", age=9)
    checkpoint(tmp_path / "checkpoint_last.pt", "older", age=5)
    last = tmp_path / "checkpoint_last.pt"
    last.write_bytes(last.read_bytes()[:keep])
    (tmp_path / "checkpoint_1_20.pt.tmp").write_text("half")
    repair_checkpoints(tmp_path)
    assert content(last) == "new"
    assert content(tmp_path / "checkpoint_best.pt") == "old"
    assert not list(tmp_path.glob("*.tmp"))


def test_complete_checkpoints_are_left_alone_and_a_lone_cut_one_is_removed(tmp_path: Path):
    repair_checkpoints(tmp_path / "none")
    checkpoint(tmp_path / "checkpoint_last.pt", "a", age=5)
    before = (tmp_path / "checkpoint_last.pt").stat().st_mtime_ns
    repair_checkpoints(tmp_path)
    assert (tmp_path / "checkpoint_last.pt").stat().st_mtime_ns == before
    (tmp_path / "checkpoint_last.pt").write_bytes(b"PK")
    repair_checkpoints(tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_training_that_came_to_its_end_is_known(tmp_path: Path):
    assert not is_trained(tmp_path, TrainLog(finished=True), 0)
    for name in ("checkpoint_best.pt", "checkpoint_last.pt"):
        torch.save({"optimizer_history": [{"num_updates": 100}]}, tmp_path / name)
    assert is_trained(tmp_path, TrainLog(finished=True), 0)
    for max_update, over in {99: True, 100: True, 101: False, 0: False}.items():
        assert is_trained(tmp_path, TrainLog(), max_update) == over
    checkpoint(tmp_path / "checkpoint_last.pt", "a", age=1)  # one that tells no updates
    assert not is_trained(tmp_path, TrainLog(saved=100), 100)
