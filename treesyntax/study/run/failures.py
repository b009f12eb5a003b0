"""Steps that failed, the reasons, and the steps that depend on them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from treesyntax.files import write_json
from treesyntax.made.records import read_record_of
from treesyntax.study.recipe.checks import flag_name
from treesyntax.study.recipe.recipe import SECTIONS
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import PREPARE, PREPARED, Step

FAILURES_FILE = "failures.json"
SHOWN = 3


@dataclass(frozen=True)
class Failure:
    """Why a step failed.

    Attributes:
        message: the last line of its log.
        log: its log.
        rows: those that were tried; others that need the step were not. Empty for all.
    """

    message: str
    log: str
    rows: tuple[str, ...] = ()


def write_failures(folder: Path, failures: Mapping[str, Failure]) -> None:
    """Write the steps that failed, by name."""
    content = {name: asdict(failure) for name, failure in failures.items()}
    write_json(folder / FAILURES_FILE, content)


def read_failures(folder: Path) -> dict[str, Failure]:
    """The steps that failed when a study last tried them, by name."""
    path = folder / FAILURES_FILE
    if not path.is_file():
        return {}
    return read_record_of(dict[str, Failure], path, "is damaged", "remove it")


def other_failures(folder: Path, tried: Collection[str]) -> dict[str, Failure]:
    """Those of steps that are not tried now, which are still true."""
    return {name: failure for name, failure in read_failures(folder).items() if name not in tried}


def failure_of(name: str, plan: Plan, failures: Mapping[str, Failure]) -> Failure | None:
    """The failure of a step, or of one that it needs; None if there is none."""
    agenda = [name]
    while agenda:
        current = agenda.pop()
        if current in failures:
            return failures[current]
        agenda.extend(plan.needs[current])
    return None


def failed_runs(plan: Plan, failures: Mapping[str, Failure]) -> dict[str, Failure]:
    """The runs that failed by name, each with its first failure; analyses fail for themselves."""
    failed: dict[str, Failure] = {}
    for run in plan.runs:
        for step in plan.steps_of(run):
            if step.name == run.step("analyses"):
                continue
            failure = failure_of(step.name, plan, failures)
            if failure is not None and run.method.name in (failure.rows or [run.method.name]):
                failed.setdefault(run.name, failure)
    return failed


def failure_lines(failed: Mapping[str, Failure]) -> Iterator[str]:
    """A line for each failed run; a fault of the data is told once for all runs that need it."""
    groups: dict[tuple[str, str], dict[str, Failure]] = {}
    for name, why in failed.items():
        step = why.log.removeprefix("logs/")
        cause = ("", why.message) if step.startswith(PREPARED) else (name, why.message)
        groups.setdefault(cause, {})[name] = why
    for group in groups.values():
        names = list(group)
        more = f" and {len(names) - SHOWN} more runs" if len(names) > SHOWN else ""
        why = group[names[0]]
        yield f"{', '.join(names[:SHOWN])}{more} failed: {why.message} (see {why.log})"


FLAG = re.compile(r"(?<!\S)--([a-z][a-z-]*)")


def in_recipe(message: str, step: Step, plan: Plan) -> str:
    """Return the message with the keys of the recipe that it is about.

    Args:
        message: of a step that failed.
        step: the step.
        plan: of the study.
    """
    recipe = plan.recipe
    if step.kind == PREPARE:
        return f"{message} (prepare, command {step.name.partition('-')[2]}, of {recipe.path.name})"
    if step.kind not in SECTIONS:
        return message
    given = dict(zip(step.command, (*step.command[1:], ""), strict=True))
    keys = []
    for flag in dict.fromkeys(map(flag_name, FLAG.findall(message))):
        if (value := given.get(f"--{flag}")) is not None:
            same = [name for name, text in recipe.content["vars"].items() if str(text) == value]
            keys += [f"{step.kind}.{flag}", *(f"vars.{name}" for name in same)]
    return f"{message} ({' or '.join(keys)} of {recipe.path.name})" if keys else message
