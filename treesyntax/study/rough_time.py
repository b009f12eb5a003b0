"""How long a study roughly takes, told before anything is trained.

Only what was measured is told: pairs that a training reads in a second, on one core, with the sizes that
recipes for a CPU have. A factor of two lies in the length of sentences, the rows and the machine.
"""

from __future__ import annotations

from math import prod
from typing import Any

from treesyntax.study.recipe.recipe import Method
from treesyntax.study.run.plan import Plan

PAIRS_A_SECOND = {"mini": (270, 600), "compact": (200, 450)}
"""By the size of an architecture: validation included, sentences of some 10 to 20 tokens. The tasks of the
studies in docs/results read so many, by their medians; ListOps reads twice as many, as its targets are one token."""
BESIDE = (15, 60)
"""Seconds that a run needs beside its training: starting up, generating a small test set, scores, analyses."""
OF_SIZE = ("layers", "embed-dim", "ffn-embed-dim")
"""Flags ending so make another size of an architecture."""
UNKNOWN = "how long is told once a training runs; a first one: --set seeds=[1] --only {row}"


def how_long(plan: Plan, at_once: int) -> str:
    """The time of a run and of all runs of a plan; how to find out where that is not known."""
    spans = [seconds_of(plan.recipe.flags(run.method, "train"), run.method) for run in plan.runs]
    known = [span for span in spans if span is not None]
    if not known or len(known) < len(spans):
        return UNKNOWN.format(row=plan.runs[0].method.name if plan.runs else "ROW")
    low, high = min(low for low, _ in known), max(high for _, high in known)
    at_once = min(at_once, len(spans))
    whole = [sum(ends) / at_once for ends in zip(*known, strict=True)]
    many = f", all {len(known)} about {_minutes(*whole)}" + f" with {at_once} at once" * (
        at_once > 1
    )
    return (
        f"a run of this size takes about {_minutes(low, high)} on a CPU core"
        + many * (len(known) > 1)
        + ", less on a GPU"
    )


def seconds_of(flags: dict[str, Any], method: Method) -> tuple[float, float] | None:
    """Seconds that a run takes at least and at most, on one core; None where nothing tells."""
    speeds = PAIRS_A_SECOND.get(method.arch.rpartition("_")[2])
    counts = [flags.get("max-update"), flags.get("batch-size"), flags.get("update-freq", 1)]
    numbers = [one for one in counts if type(one) is int and one > 0]
    if speeds is None or len(numbers) < len(counts) or any(map(_changes_size, flags)):
        return None
    pairs = prod(numbers)
    return pairs / speeds[1] + BESIDE[0], pairs / speeds[0] + BESIDE[1]


def _changes_size(flag: str) -> bool:
    return flag.endswith(OF_SIZE)


def _minutes(low: float, high: float) -> str:
    """``3 to 6 minutes``, or hours where there are many."""
    unit, seconds = ("hours", 3600.0) if high > 3 * 3600 else ("minutes", 60.0)
    ends = [max(1, round(end / seconds)) for end in (low, high)]
    if ends[0] == ends[1]:
        return f"{ends[0]} {unit if ends[0] > 1 else unit[:-1]}"
    return f"{ends[0]} to {ends[1]} {unit}"
