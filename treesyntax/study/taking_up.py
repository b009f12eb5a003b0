"""A study is taken up in its folder, which is held meanwhile, and works until nothing is left."""

from __future__ import annotations

from collections.abc import Iterator
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
from treesyntax.study.results.results import drop_results
from treesyntax.study.run.archive import check_goes_on, lines_of_other_code, settle
from treesyntax.study.run.executor import Executor
from treesyntax.study.run.extension import check_not_shorter
from treesyntax.study.run.failures import Failure
from treesyntax.study.run.folder import check_folder, held_alone, remove_leftovers
from treesyntax.study.run.former_keys import rekey
from treesyntax.study.run.ledger import Ledger
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.progress import watch


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
    check_goes_on(ledger, mix_versions)
    for line in [] if before is None else find_changes(folder, plan.recipe):
        print_line(console, f"recipe edited: {line}")
    _end_other_jobs(ledger, cluster, console)
    for line in settle(ledger):
        print_line(console, line)
    for line in lines_of_other_code(ledger):
        print_line(console, line)
    keys = ledger.keys.of
    runs = {run.name: keys[plan.outcome(run, "hypotheses")] for run in plan.runs}
    identity = make_identity(plan.recipe, ledger.inputs(), runs, before)
    _drop_scores(plan, folder, before, identity, console)
    if identity != before or find_changes(folder, plan.recipe):
        write_identity(folder, plan.recipe, identity)
    ledger.recorded = identity.digests
    return ledger, identity


def _drop_scores(
    plan: Plan, folder: Path, before: Identity | None, now: Identity, console: Console
) -> None:
    """Drop the scores of other lines than categories now say, and tell which.

    They are gone before the new categories are noted: whatever ends the study then, no table has old ones beside
    new ones.
    """
    known = {} if before is None else before.digests
    changed = {name for name, digest in now.digests.items() if known.get(name, digest) != digest}
    rows = {row.name: row.categories for row in plan.recipe.methods if row.categories in changed}
    if rows:
        drop_results(folder, lambda result: result.method in rows and OF in result.metric)
        files = ", ".join(dict.fromkeys(rows.values()))
        line = f"categories: {files} changed, so scores of metrics with {OF} are made anew"
        print_line(console, line)


def _end_other_jobs(ledger: Ledger, cluster: Cluster | None, console: Console) -> None:
    """Leave no job of an earlier session at work but those that this one takes up."""
    if cluster is not None:
        for job in cluster.end_others(ledger.keys.of):
            print_line(console, f"job {job} of an earlier session is cancelled")
    elif jobs := jobs_at_work(ledger.folder):
        raise OptionError(
            f"jobs of this study are at work: {', '.join(jobs)}; go on with --cluster slurm, or end "
            f"them with scancel {' '.join(jobs)}"
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
