"""What a study would do, before it does it: rows, runs and steps left, time and disk."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from treesyntax.study.run.content import size_of
from treesyntax.study.run.ledger import Ledger
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.progress import outlook
from treesyntax.study.run.steps import PREPARED


def outline(part: Plan, folder: Path, digests: Mapping[str, str], at_once: int) -> list[str]:
    """A study in a line for each row, then the steps, time and disk that are left.

    Args:
        part: the part of the study that is asked for.
        folder: the study's folder, which need not exist.
        digests: of the files from outside, as the study began with them.
        at_once: how many steps run at a time.
    """
    ledger, done = Ledger(part, folder, digests), set[str]()
    for step in part.steps:
        made = {name for name in ledger.keys.reads[step.name] if not name.startswith(PREPARED)}
        if made <= done and ledger.is_done(step):
            done.add(step.name)
    ended = {run.name for run in part.runs if all(s.name in done for s in part.steps_of(run))}
    rows = dict.fromkeys(run.method.name for run in part.runs)
    width = max(map(len, rows))
    lines = [f"study {folder}: {len(part.runs)} runs, {len(ended)} done"]
    for row in rows:
        runs = [run for run in part.runs if run.method.name == row]
        count = sum(run.name in ended for run in runs)
        lines.append(f"  {row:<{width}}  {count} of {len(runs)} runs done")
    took = {step.name: float(ledger.marker(step).get("seconds", 0)) for step in part.steps}
    lines.append(outlook(part, done, took, at_once))
    sizes = [size_of(folder / run.folder) for run in part.runs if run.name in ended]
    return [*lines, _disk(folder, sizes, len(part.runs) - len(ended))]


def _disk(folder: Path, sizes: list[int], left: int) -> str:
    place = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    free = f"{shutil.disk_usage(place).free / 1e9:,.1f} GB of disk are free"
    if not sizes:
        return f"{free}; what a run takes is told once one is done"
    each = median(sizes)
    return (
        f"{free}; runs take {each / 1e6:,.1f} MB, the {left} left about {each * left / 1e9:,.2f} GB"
    )
