"""Checkpoints after a kill: fairseq writes one atomically and copies it to its other names."""

from __future__ import annotations

import os
import pickletools
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
    # The clock may have been set back, so updates count first.
    newest = max(complete, key=lambda p: (_updates(p), p.stat().st_mtime_ns), default=None)
    for path in (folder / name for name in NAMES):
        if not path.exists() or path in complete:
            continue
        if newest is None:
            path.unlink()
        else:
            staged = path.with_suffix(".tmp")
            shutil.copy2(newest, staged)
            os.replace(staged, path)


def _updates(path: Path) -> int:
    """The updates that a checkpoint tells, read without unpickling anything; -1 if it tells none."""
    found, named = -1, False
    try:
        with zipfile.ZipFile(path) as archive:
            data = next(name for name in archive.namelist() if name.endswith("data.pkl"))
            for operation, argument, _ in pickletools.genops(archive.read(data)):
                if operation.name not in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
                    if named and isinstance(argument, int):
                        found = argument
                    named = argument == "num_updates"
    except Exception:  # what a damaged archive raises has no end
        return -1
    return found


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
