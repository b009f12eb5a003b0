"""A study is taken up in its folder, which is held meanwhile, and works until nothing is left."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from treesyntax.errors import OptionError
from treesyntax.jobs.cluster import Cluster, jobs_at_work
from treesyntax.jobs.terminal import loudness
from treesyntax.metrics import OF
from treesyntax.study.estimate import Estimate, outlook
from treesyntax.study.recipe.identity import (
    IDENTITY_FILE,
    Identity,
    find_changes,
    make_identity,
    read_identity,
    write_identity,
)
from treesyntax.study.report.table import print_line
from treesyntax.study.results.results import Result, drop_results
from treesyntax.study.run.archive import check_goes_on, lines_of_other_code, settle
from treesyntax.study.run.executor import Executor
from treesyntax.study.run.extension import check_not_shorter
from treesyntax.study.run.failures import Failure
from treesyntax.study.run.folder import check_folder, held_alone, remove_leftovers
from treesyntax.study.run.former_keys import rekey
from treesyntax.study.run.ledger import SCORE, Ledger
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.progress import watch
from treesyntax.study.run.steps import COUNTED_BY, OUT


@contextmanager
def held_folder(folder: Path) -> Iterator[None]:
    """Keep a study's folder for this process."""
    with held_alone(folder):
        check_folder(folder)  # another process may have been quicker
        remove_leftovers(folder)
        yield


def take_up(
    plan: Plan, folder: Path, console: Console, cluster: Cluster | None, mix_versions: bool
) -> tuple[Ledger, Identity]:
    """Check that a study may go on in a folder, tell what differs from before, and note it."""
    check_not_shorter(folder, plan.recipe)
    before = read_identity(folder) if (folder / IDENTITY_FILE).exists() else None
    ledger = Ledger(plan, folder, {} if before is None else before.digests)
    for line in rekey(ledger):
        print_line(console, line)
    for line in [] if before is None else find_changes(folder, plan.recipe):
        print_line(console, f"recipe edited: {line}")
    check_goes_on(ledger, mix_versions)
    _end_other_jobs(ledger, cluster, console)
    for line in settle(ledger):
        print_line(console, line)
    for line in lines_of_other_code(ledger):
        print_line(console, line)
    keys = ledger.keys.of
    runs = {run.name: keys[plan.outcome(run, "hypotheses")] for run in plan.runs}
    identity = make_identity(plan.recipe, ledger.inputs(), runs, before)
    _drop_scores(ledger, before, identity, console)
    if identity != before or find_changes(folder, plan.recipe):
        write_identity(folder, plan.recipe, identity)
    ledger.recorded = identity.digests
    return ledger, identity


def _drop_scores(ledger: Ledger, before: Identity | None, now: Identity, console: Console) -> None:
    """Drop the scores of other lines than categories now say, and tell of which files.

    They are gone before the new categories are noted: whatever ends the study then, no table has old ones beside
    new ones.
    """
    plan, keys, prepared, undone = ledger.plan, ledger.keys, dict[str, str](), set[str]()
    for step in plan.prepare:
        if marker := ledger.marker(step):
            outputs = marker.get("outputs", {})
            prepared |= {f"{OUT}/{name}": digest for name, digest in outputs.items()}
        else:
            undone.add(step.name)
    known = {**({} if before is None else before.digests), **prepared}
    current = {**now.digests, **prepared}
    files = {  # "" where a command is still to make the file, which may be another one
        run.method.name: "" if undone & keys.reads[step.name] else file
        for run in plan.runs
        for step in plan.steps_of(run)
        if step.kind == SCORE and (file := _categories_in(step.command))
    }

    def is_stale(result: Result) -> bool:
        if OF not in result.metric:
            return False
        commands = (shlex.split(text) for text in result.commands if COUNTED_BY in text)
        file = next(map(_categories_in, commands), "")
        digest = known.get(file)
        return digest is None or current.get(files.get(result.method, file)) != digest

    stale = {result.method for result in drop_results(ledger.folder, is_stale)}
    rows = [row.categories for row in plan.recipe.methods if row.name in stale]
    if names := ", ".join(dict.fromkeys(rows)):
        line = f"categories changed (now {names}), so scores of metrics with {OF} are made anew"
        print_line(console, line)


def _categories_in(command: Sequence[str]) -> str:
    """The file of categories that a command names, "" for none."""
    return command[command.index(COUNTED_BY) + 1] if COUNTED_BY in command else ""


def _end_other_jobs(ledger: Ledger, cluster: Cluster | None, console: Console) -> None:
    """Leave no job of an earlier session at work but those that this one takes up."""
    if cluster is not None:
        for job in cluster.end_others(ledger.keys.of):
            print_line(console, f"job {job} of an earlier session is cancelled")
        return
    jobs, unknown = jobs_at_work(ledger.folder)
    if jobs:
        raise OptionError(
            f"jobs of this study are at work: {', '.join(jobs)}; go on with --cluster slurm, or end "
            f"them with scancel {' '.join(jobs)}"
        )
    if unknown:
        print_line(
            console,
            f"squeue does not say here whether jobs of this study are at work: {', '.join(unknown)}; end them on their "
            f"cluster with scancel {' '.join(unknown)}, else they go on in the same folder",
        )


def work(
    executor: Executor, plan: Plan, console: Console, name: str = "study"
) -> dict[str, Failure]:
    """Do what is left of a part of a plan, and show how it goes; returns the steps that failed."""
    ledger, options = executor.ledger, executor.options
    took = {step.name: float(ledger.marker(step).get("seconds", 0)) for step in plan.steps}
    at_once = options.submitted or options.jobs
    estimate = Estimate(plan, ledger.folder, executor.done, took, at_once)
    if not loudness().quiet:
        print_line(
            console,
            f"{name} {ledger.folder}: {len(plan.runs)} runs, {estimate.runs_done} done before, "
            f"{at_once} at once; {outlook(estimate)}",
        )
    try:
        with watch(estimate, console) as watcher:
            return executor.execute(watcher)
    finally:
        ledger.digests.save()
