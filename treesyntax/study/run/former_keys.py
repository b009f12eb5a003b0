"""Runs of older versions at points of axes get the keys that they have now, so that they need not be trained anew.

The names of their folders have an equals sign, where older versions cut the path off. So their keys lacked what
their steps read of others, such as their data. A run is taken for a run over the data of the plan if these were
prepared before it began, and not made anew since. What its later steps left is taken if it came in their order.
"""

from __future__ import annotations

import re
from math import inf

from treesyntax.files import read_object, write_json
from treesyntax.study.run.extension import note_of
from treesyntax.study.run.keys import Keys
from treesyntax.study.run.ledger import Ledger, marker_of, prepared_markers
from treesyntax.study.run.steps import BEGUN_FILE, Run

CUT_OFF = re.compile(r"\{out\}[\w./+-]*")
"""The paths inside a study as older versions found them."""


def former_keys(ledger: Ledger) -> dict[str, str]:
    """Return the keys of steps by their names, as older versions had them; none where they are the same."""
    if not any("=" in run.name for run in ledger.plan.runs):
        return {}
    return Keys(ledger.plan, ledger.digests, ledger.recorded, CUT_OFF).of


def data_lay_ready(ledger: Ledger, run: Run) -> bool:
    """Whether the data of a run in the folder were prepared, with their present keys, before it began."""
    keys, begun = ledger.keys, ledger.folder / run.folder / BEGUN_FILE
    prepared: dict[str, float] = {}
    for file in prepared_markers(ledger.folder):
        key = str(read_object(file).get("key"))
        prepared[key] = min(prepared.get(key, inf), file.stat().st_mtime_ns)
    read = keys.reads[run.step("train")]
    return all(prepared.get(keys.of[name], inf) <= begun.stat().st_mtime_ns for name in read)


def rekey(ledger: Ledger) -> list[str]:
    """Write the present keys of the runs in a study's folder; returns a line that says so, none where there are none."""
    former, names = former_keys(ledger), []
    for run in ledger.plan.runs if former else ():
        train = ledger.plan.steps_of(run)[0]
        file = ledger.folder / run.folder / BEGUN_FILE
        note, now = read_object(file), ledger.keys.of[train.name]
        if former[train.name] == now or note.get("key") != former[train.name]:
            continue
        if not data_lay_ready(ledger, run):
            continue
        _rekey_markers(ledger, run, former)
        write_json(file, {**note, "key": now, **note_of(ledger.keys, train)})
        names.append(run.name)
    if not names:
        return []
    return [
        f"{len(names)} runs of an older version at points of axes are kept: their keys now count their data"
    ]


def _rekey_markers(ledger: Ledger, run: Run, former: dict[str, str]) -> None:
    """Of each step that was done after those of the run whose outputs it reads."""
    keys, ready = ledger.keys, dict[str, float]()
    steps = {step.name for step in ledger.plan.steps_of(run)}
    for step in ledger.plan.steps_of(run):
        file = marker_of(ledger.folder, step.name)
        marker = read_object(file)
        before = [ready.get(name, inf) for name in keys.reads[step.name] & steps]
        if marker.get("key") not in (former[step.name], keys.of[step.name]):
            continue
        if (at := file.stat().st_mtime_ns) >= max(before, default=0):
            ready[step.name] = at
            write_json(file, {**marker, "key": keys.of[step.name]}, None)
