"""Steps of older versions get the keys that they have now, so that runs need not be trained anew.

Older keys counted less of what a step reads: at an axis, whose folder has an equals sign in its name, no data; of prepared
data not the commands that leave names to a shell, nor those that name a folder otherwise (see
:mod:`treesyntax.study.run.path_patterns`); and no files outside that a command reads without naming them as a word. A run is taken for a run
over the data of the plan if these were prepared before it began, in their order, and not made anew since. What its later
steps left is taken if it came in their order.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any

from treesyntax.files import read_object, write_json
from treesyntax.study.run.extension import note_of
from treesyntax.study.run.keys import Keys
from treesyntax.study.run.ledger import Ledger, marker_of, prepared_markers
from treesyntax.study.run.path_patterns import PathPattern
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import BEGUN_FILE, PREPARED, Run, Step

CUT_OFF = re.compile(r"\{out\}[\w./+-]*")
"""The paths inside a study as older versions found them."""


class FormerKeys(Keys):
    """The keys of a plan's steps as older versions had them."""

    paths = CUT_OFF

    def patterns(self, word: str) -> tuple[PathPattern, ...]:
        """None: paths counted as they stood."""
        return ()

    def unnamed(self, step: Step, named: Mapping[str, None]) -> Iterator[str]:
        """None."""
        return iter(())


class Former:
    """What a study's folder has of older versions.

    Args:
        ledger: of the study, with its present keys.

    Attributes:
        keys: those that the older versions gave to the steps of the plan.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.now = ledger, ledger.keys
        self.keys = FormerKeys(ledger.plan, ledger.digests, ledger.recorded)

    @cached_property
    def prepared(self) -> dict[str, float]:
        """When the data of the plan was made, by the steps that made it: those whose sources were made before."""
        times: dict[str, float] = {}
        for file in prepared_markers(self.ledger.folder):
            key = str(read_object(file).get("key"))
            times[key] = min(times.get(key, inf), file.stat().st_mtime_ns)
        made: dict[str, float] = {}
        for step in self.ledger.plan.steps:
            at = min(times.get(keys[step.name], inf) for keys in (self.keys.of, self.now.of))
            before = (made.get(name, inf) for name in self.now.reads[step.name])
            if step.kind in PREPARED and max(before, default=0) <= at < inf:
                made[step.name] = at
        return made

    def data_lay_ready(self, run: Run) -> bool:
        """Whether the data of a run in the folder was made before it began."""
        return self._before(run, self.now.reads[run.step("train")])

    def _before(self, run: Run, steps: Iterable[str]) -> bool:
        began = (self.ledger.folder / run.folder / BEGUN_FILE).stat().st_mtime_ns
        return all(self.prepared.get(name, inf) <= began for name in steps)

    def of_run(self, run: Run) -> dict[Path, dict[str, Any]]:
        """The markers and the note of a run with present keys, where it was a run over the data of the plan."""
        train = self.ledger.plan.steps_of(run)[0]
        file = self.ledger.folder / run.folder / BEGUN_FILE
        note, records = read_object(file), dict[Path, dict[str, Any]]()
        if not note:
            return {}
        new = dict[str, Any]()
        files = note.get("data") == self.keys.data(run.method)
        if files and self._before(run, (step.name for step in self.ledger.plan.prepare)):
            new["data"] = self.now.data(run.method)
        if self.data_lay_ready(run) and note.get("root") == self.keys.roots[train.name]:
            new["root"] = self.now.roots[train.name]
        if self.data_lay_ready(run) and note.get("key") == self.keys.of[train.name]:
            new |= {"key": self.now.of[train.name], **note_of(self.now, train)}
            records = self._markers(run)
        return {**records, file: {**note, **new}}

    def of_data(self) -> dict[Path, dict[str, Any]]:
        """The markers of the data of the plan with present keys."""
        now = {self.keys.of[name]: self.now.of[name] for name in self.prepared}
        markers = {file: read_object(file) for file in prepared_markers(self.ledger.folder)}
        return {
            file: {**marker, "key": now[key]}
            for file, marker in markers.items()
            if (key := marker.get("key")) in now
        }

    def _markers(self, run: Run) -> dict[Path, dict[str, Any]]:
        """Of each step that was done after those of the run whose outputs it reads."""
        ready, markers = dict[str, float](), dict[Path, dict[str, Any]]()
        steps = {step.name: step for step in self.ledger.plan.steps_of(run)}
        for step in steps.values():
            file = marker_of(self.ledger.folder, step.name)
            marker = read_object(file)
            before = [ready.get(name, inf) for name in self.now.reads[step.name] & steps.keys()]
            if marker.get("key") not in (self.keys.of[step.name], self.now.of[step.name]):
                continue
            if (at := file.stat().st_mtime_ns) >= max(before, default=0):
                ready[step.name] = at
                markers[file] = {**marker, "key": self.now.of[step.name]}
        return markers


def former_of(ledger: Ledger) -> Former | None:
    """Return what a folder has of older versions; None where their keys of trainings are the present ones."""
    former = Former(ledger)
    trains = ledger.plan.run_of_training
    return former if any(former.keys.of[name] != ledger.keys.of[name] for name in trains) else None


def records_with_present_keys(ledger: Ledger) -> dict[Path, dict[str, Any]]:
    """What older versions noted of a plan's data, steps and runs, by file, as this one would have: where that differs.

    Runs come last: as long as a run has its former key, the other records may still have theirs.
    """
    notes = (read_object(ledger.folder / run.folder / BEGUN_FILE) for run in ledger.plan.runs)
    now = [ledger.keys.of[name] for name in ledger.plan.run_of_training]
    if all(not note or note.get("key") == key for note, key in zip(notes, now, strict=True)):
        return {}
    if (former := former_of(ledger)) is None:
        return {}
    records = former.of_data()
    for run in ledger.plan.runs:
        records |= former.of_run(run)
    changed = {file: record for file, record in records.items() if read_object(file) != record}
    return dict(sorted(changed.items(), key=lambda item: item[0].name == BEGUN_FILE))


def look_at(plan: Plan, folder: Path, digests: Mapping[str, str]) -> Ledger:
    """The ledger of a study in which nothing is written: what older versions noted counts as a session would note it.

    Args:
        plan: the steps.
        folder: the study's folder, which need not exist.
        digests: of the files from outside, as the study began with them.
    """
    ledger = Ledger(plan, folder, digests)
    ledger.unwritten = records_with_present_keys(ledger)
    return ledger


def rekey(ledger: Ledger) -> list[str]:
    """Write the present keys of a study's records; returns a line that says so, none where no run had former ones."""
    runs = 0
    for file, record in records_with_present_keys(ledger).items():
        before, at = read_object(file), file.stat().st_mtime_ns
        differs = {name for name in record if record[name] != before.get(name)}
        runs += file.name == BEGUN_FILE and differs != {"data"}
        write_json(file, record)
        os.utime(file, ns=(at, at))  # when it was made says what it was made of
    if not runs:
        return []
    return [
        f"{runs} runs of an older version are kept: their keys now count all that their data is made of"
    ]
