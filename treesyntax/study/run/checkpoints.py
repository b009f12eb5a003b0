"""Checkpoints after a kill: fairseq writes one atomically and copies it to its other names."""

from __future__ import annotations

import os
import shutil
import zipfile
from pathlib import Path

from treesyntax.study.run.logs import TrainLog

NAMES = ("checkpoint_best.pt", "checkpoint_last.pt")


def repair_checkpoints(folder: Path) -> None:
    """Repair a folder of checkpoints after training was killed at any time.

    ``checkpoint_best.pt`` and ``checkpoint_last.pt`` may be incomplete copies. fairseq copies
    the newest checkpoint, so the newest complete one replaces them. A torch file is a zip archive
    with its directory at the end: a file without one is incomplete.
    """
    if not folder.is_dir():
        return
    for leftover in folder.glob("*.tmp"):
        leftover.unlink()
    complete = [path for path in folder.glob("*.pt") if zipfile.is_zipfile(path)]
    newest = max(complete, key=lambda path: path.stat().st_mtime_ns, default=None)
    for path in (folder / name for name in NAMES):
        if not path.exists() or path in complete:
            continue
        if newest is None:
            path.unlink()
        else:
            staged = path.with_suffix(".tmp")
            shutil.copy2(newest, staged)
            os.replace(staged, path)


def is_trained(folder: Path, log: TrainLog, max_update: int) -> bool:
    """Whether training ended before the study could mark the step as done.

    Starting fairseq-train once more would add one update.

    Args:
        folder: the run's checkpoints.
        log: the run's whole training log.
        max_update: where training stops; 0 if the number of updates is not limited.
    """
    if not all((folder / name).is_file() for name in NAMES):
        return False
    return log.finished or 0 < max_update <= log.saved
