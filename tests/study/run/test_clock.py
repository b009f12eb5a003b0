"""The clock set back: files are older than they are."""

from __future__ import annotations

import os
from pathlib import Path

import torch

from treesyntax.study.run.checkpoints import repair_checkpoints


def test_a_clock_set_back_makes_no_older_checkpoint_the_newest(tmp_path: Path):
    for name, updates, date in (("checkpoint_1_100", 100, 2e9), ("checkpoint_best", 300, 1e9)):
        torch.save({"optimizer_history": [{"num_updates": updates}]}, tmp_path / f"{name}.pt")
        os.utime(tmp_path / f"{name}.pt", (date, date))
    (tmp_path / "checkpoint_last.pt").write_bytes(b"PK incomplete")
    repair_checkpoints(tmp_path)
    repaired, newest = (tmp_path / f"checkpoint_{name}.pt" for name in ("last", "best"))
    assert repaired.read_bytes() == newest.read_bytes()
