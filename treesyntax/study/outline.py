"""What a study would do, before it does it: rows, runs and steps left, time and disk."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from treesyntax.made.digests import size_of
from treesyntax.study.estimate import Estimate, outlook
from treesyntax.study.run.former_keys import look_at
from treesyntax.study.run.pairs import pair_lines, uses_of
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import PREPARED


@dataclass(frozen=True)
class Outline:
    """A study before it begins or goes on.

    Attributes:
        plan: the part of it that is asked for.
        folder: its folder.
        rows: the runs of each row, and how many of them are done.
        about: what each row is, as far as the recipe says it.
        estimate: the steps that are done, and what they say of the time left.
        sizes: bytes of each run that is done.
        free: bytes of disk that are free.
        pairs: lines about pairs that rows leave out, where the data is there.
        unused: by row and split, how many pairs it has and how many it leaves out or cannot read.
    """

    plan: Plan
    folder: Path
    rows: dict[str, tuple[int, int]]
    about: dict[str, str]
    estimate: Estimate
    sizes: list[int]
    free: int
    pairs: list[str]
    unused: dict[str, dict[str, dict[str, int]]]

    @property
    def left(self) -> int:
        """Runs that are not done."""
        return sum(runs - done for runs, done in self.rows.values())

    def lines(self) -> list[str]:
        """A line for each row, then the steps, time and disk that are left."""
        width, runs = max(map(len, self.rows)), len(self.plan.runs)
        return [
            f"study {self.folder}: {runs} runs, {runs - self.left} done",
            *(
                f"  {row:<{width}}  {done} of {total} runs done  {self.about[row]}".rstrip()
                for row, (total, done) in self.rows.items()
            ),
            *self.pairs,
            outlook(self.estimate),
            self._disk(),
        ]  # fmt: skip

    def _disk(self) -> str:
        free = f"{self.free / 1e9:,.1f} GB of disk are free"
        if not self.sizes:
            return f"{free}; what a run takes is told once one is done"
        each = median(self.sizes)
        return (
            f"{free}; runs take {each / 1e6:,.1f} MB, the {self.left} left about "
            f"{each * self.left / 1e9:,.2f} GB"
        )

    def numbers(self) -> dict[str, Any]:
        """The same for a script; null is what cannot be told yet."""
        return {
            "folder": str(self.folder),
            "rows": {
                row: {"runs": runs, "done": done, "about": self.about[row]}
                for row, (runs, done) in self.rows.items()
            },
            "pairs": self.unused,
            "steps_left": dict(self.estimate.steps_left),
            "seconds_left": self.estimate.left(self.estimate.begun_trainings),
            "bytes_free": self.free,
            "bytes_left": round(median(self.sizes) * self.left) if self.sizes else None,
        }


def outline(plan: Plan, folder: Path, digests: Mapping[str, str], at_once: int) -> Outline:
    """What is done of a study, and what is left.

    Args:
        plan: the part of the study that is asked for.
        folder: the study's folder, which need not exist.
        digests: of the files from outside, as the study began with them.
        at_once: how many steps run at a time.
    """
    ledger, done = look_at(plan, folder, digests), set[str]()
    took = {}
    for step in plan.steps:
        if not (marker := ledger.marker(step)):
            continue
        took[step.name] = float(marker.get("seconds", 0))
        made = {name for name in ledger.keys.reads[step.name] if not name.startswith(PREPARED)}
        if made <= done and ledger.is_done(step):
            done.add(step.name)
    ended = {run.name for run in plan.runs if all(step.name in done for step in plan.steps_of(run))}
    rows, about = {}, {}
    for row in dict.fromkeys(run.method.name for run in plan.runs):
        runs = [run for run in plan.runs if run.method.name == row]
        about[row] = runs[0].method.about
        rows[row] = len(runs), sum(run.name in ended for run in runs)
    sizes = [size_of(folder / run.folder) for run in plan.runs if run.name in ended]
    existing_folder = next(
        path for path in (folder.absolute(), *folder.absolute().parents) if path.exists()
    )
    free = shutil.disk_usage(existing_folder).free
    estimate = Estimate(plan, folder, done, took, at_once)
    uses = uses_of(plan, folder)
    unused = {
        row: {split: use.counts() for split, use in splits.items()} for row, splits in uses.items()
    }
    pairs = pair_lines(plan.recipe, uses)
    return Outline(plan, folder, rows, about, estimate, sizes, free, pairs, unused)
