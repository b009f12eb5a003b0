"""The execution of a study: its folder is held, steps run, results are recorded, a report is made."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from treesyntax.errors import OptionError
from treesyntax.jobs.cluster import Cluster, jobs_at_work
from treesyntax.study.recipe.identity import (
    IDENTITY_FILE,
    Identity,
    find_changes,
    make_identity,
    read_identity,
    write_identity,
)
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.report.table import make_console, print_line, print_table
from treesyntax.study.results.current import current_results
from treesyntax.study.results.record import Recorder
from treesyntax.study.results.results import RESULTS_FILE, drop_results, write_results
from treesyntax.study.run.archive import check_code, check_data, settle
from treesyntax.study.run.executor import ExecutionOptions, Executor
from treesyntax.study.run.folder import check_folder, locked, remove_leftovers
from treesyntax.study.run.ledger import Ledger
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.progress import Estimate, outlook, watch
from treesyntax.study.run.steps import Step

STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def held_folder(folder: Path) -> Iterator[None]:
    """Keep a study's folder for this process, and stop cleanly on signals."""
    with _stop_signals_interrupt(), locked(folder):
        check_folder(folder)  # another process may have been quicker
        remove_leftovers(folder)
        yield


@contextmanager
def _stop_signals_interrupt() -> Iterator[None]:
    """SIGTERM and a closed terminal end a study as Ctrl-C does: children first."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    # nohup ignores the hang-up: leave it so.
    heeded = [number for number in STOP_SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def execute(
    plan: Plan,
    folder: Path,
    options: ExecutionOptions,
    mix_versions: bool = False,
    part: Plan | None = None,
) -> int:
    """Run all steps that are not done and write the report; returns 1 if a step failed, else 0.

    Args:
        plan: the steps.
        folder: the study's folder, held by this process.
        options: how to run them.
        mix_versions: go on with other code than that of runs that are done.
        part: the part of the plan that is done now, by default all of it.

    Raises:
        OptionError: if a file that the study reads has changed since it began, if its runs were
            trained on other data, or would be of different code.
    """
    console, part = make_console(), part or plan
    ledger, identity = _take_up(plan, folder, console, options.cluster, mix_versions)
    # On a cluster this says nothing about the machines that train.
    recorder = Recorder(ledger, identity)
    last = {run.step(kind): run for run in plan.runs for kind in ("score", "facts")}

    def after(step: Step) -> None:
        run = last.get(step.name)
        if run and {run.step("score"), run.step("facts")} <= {*executor.done, step.name}:
            write_results(folder / RESULTS_FILE, recorder.results(run))

    executor = Executor(ledger, options, after, part)
    ledger.digests.save()
    _restore_results(recorder, executor.done)
    estimate = Estimate(part, folder, executor.done)
    took = {step.name: float(ledger.marker(step).get("seconds", 0)) for step in part.steps}
    at_once = options.submitted or options.jobs
    print_line(
        console,
        f"study {folder}: {len(part.runs)} runs, {estimate.runs_done} done before, "
        f"{at_once} at once; {outlook(part, executor.done, took, at_once)}",
    )
    try:
        with watch(estimate, console) as watcher:
            failures = executor.execute(watcher)
    finally:
        ledger.digests.save()
    report(folder, mix_versions=mix_versions)
    return 1 if failures else 0


def _take_up(
    plan: Plan, folder: Path, console: Console, cluster: Cluster | None, mix_versions: bool
) -> tuple[Ledger, Identity]:
    """Check that a study may go on in a folder, tell what differs from before, and note it."""
    before = read_identity(folder) if (folder / IDENTITY_FILE).exists() else None
    ledger = Ledger(plan, folder, {} if before is None else before.digests)
    for step in plan.steps:
        ledger.check_inputs(step, lost=True)
    check_data(ledger)
    if not mix_versions:
        check_code(ledger)
    for line in [] if before is None else find_changes(folder, plan.recipe):
        print_line(console, f"recipe edited: {line}")
    _end_other_jobs(ledger, cluster, console)
    for line in settle(ledger):
        print_line(console, line)
    runs = {run.name: ledger.keys.of[run.step("hypotheses")] for run in plan.runs}
    identity = make_identity(plan.recipe, ledger.inputs(), runs, before)
    if identity != before or find_changes(folder, plan.recipe):
        write_identity(folder, plan.recipe, identity)
    ledger.recorded = identity.digests
    return ledger, identity


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


def _restore_results(recorder: Recorder, done: set[str]) -> None:
    """Write the results of finished runs that results.jsonl lacks; drop those of runs to be trained."""
    recipe, path = recorder.plan.recipe, recorder.folder / RESULTS_FILE
    untrained = {
        (run.method.name, run.seed, recorder.identity.runs[run.name])
        for run in recorder.plan.runs
        if run.step("train") not in done
    }
    drop_results(path, lambda one: (one.method, one.seed, one.run) in untrained)
    known = {result.key for result in current_results(recorder.folder, recipe)[0]}
    found = [
        result
        for run in recorder.plan.runs
        if {run.step("score"), run.step("facts")} <= done
        and not known.issuperset((run.method.name, run.seed, metric) for metric in recipe.score)
        for result in recorder.results(run)
    ]
    if found:
        write_results(path, found)


def report(folder: Path, baseline: str | None = None, mix_versions: bool = False) -> None:
    """Write the report of a study, finished or not, and print its table.

    Args:
        folder: the study's folder.
        baseline: another baseline than the recipe's.
        mix_versions: compare rows of different code too.
    """
    study, console = read_study(folder, baseline, mix_versions), make_console()
    page = write_report(study)
    print_table(study.table, console)
    print_line(console, f"report: {page}")
