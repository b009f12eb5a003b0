"""Checkpoints after a kill: fairseq writes one atomically and copies it to its other names."""

from __future__ import annotations

import os
import pickletools
import shutil
import zipfile
from pathlib import Path

from treesyntax.study.run.logs import TrainLog

BEST, LAST = NAMES = "checkpoint_best.pt", "checkpoint_last.pt"
COPIES = (*NAMES, "checkpoint.best_*.pt")
"""The names to which fairseq copies a checkpoint that it has just written."""
LARGEST_RECORD = 1 << 26
"""Bytes of a checkpoint without its numbers; one with a thousand parameters has some 100,000."""


def repair_checkpoints(folder: Path) -> None:
    """Repair a folder of checkpoints after training was killed at any time.

    Its copies may be incomplete. fairseq copies the newest checkpoint, so the newest complete one
    replaces them. A torch file is a zip archive with its directory at the end: a file without one is
    incomplete.
    """
    if not folder.is_dir():
        return
    for leftover in folder.glob("*.tmp"):
        leftover.unlink()
    complete = [path for path in folder.glob("*.pt") if zipfile.is_zipfile(path)]
    # The clock may have been set back, so updates count first.
    newest = max(complete, key=lambda p: (updates_of(p), p.stat().st_mtime_ns), default=None)
    for path in sorted({path for name in COPIES for path in folder.glob(name)} - {*complete}):
        if newest is None:
            path.unlink()
        else:
            staged = path.with_suffix(".tmp")
            shutil.copy2(newest, staged)
            os.replace(staged, path)


def updates_of(path: Path) -> int:
    """The updates that a checkpoint tells, read without unpickling anything; -1 if it tells none."""
    updates, named = -1, False
    try:
        with zipfile.ZipFile(path) as archive:
            entry = next(
                member for member in archive.infolist() if member.filename.endswith("data.pkl")
            )
            if entry.file_size > LARGEST_RECORD:
                return -1
            for operation, argument, _ in pickletools.genops(archive.read(entry)):
                if operation.name not in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
                    if named and isinstance(argument, int):
                        updates = argument
                    named = argument == "num_updates"
    except Exception:  # what a damaged archive raises has no end
        return -1
    return updates


def is_trained(folder: Path, log: TrainLog, max_update: int) -> bool:
    """Whether training ended before the study could mark the step as done.

    fairseq logs a checkpoint after it has copied it to its other names, so a kill in between leaves a log that
    lacks the last updates. The checkpoint itself counts.

    Args:
        folder: the run's checkpoints, repaired.
        log: the run's whole training log.
        max_update: where training stops; 0 if the number of updates is not limited.
    """
    if not all((folder / name).is_file() for name in NAMES):
        return False
    return log.finished or 0 < max_update <= updates_of(folder / LAST)
