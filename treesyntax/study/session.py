"""The execution of a study: its folder is held, steps run, results are recorded, a report is made."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from treesyntax.study.recipe.identity import Identity, write_identity
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.report.table import make_console, print_line, print_table
from treesyntax.study.results.record import Recorder
from treesyntax.study.results.results import RESULTS_FILE, append_results, read_results
from treesyntax.study.run.executor import ExecutionOptions, Executor
from treesyntax.study.run.folder import check_folder, locked, remove_leftovers
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.progress import Estimate, watch
from treesyntax.study.run.steps import Step

STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def held_folder(folder: Path, plan: Plan, identity: Identity) -> Iterator[None]:
    """Keep a study's folder for this process, write its identity, and stop cleanly on signals."""
    with _stop_signals_interrupt(), locked(folder):
        check_folder(folder, identity)  # another process may have been quicker
        write_identity(folder, plan.recipe, identity)
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


def execute(plan: Plan, identity: Identity, folder: Path, options: ExecutionOptions) -> int:
    """Run all steps that are not done and write the report; returns 1 if a step failed, else 0."""
    console = make_console()
    recorder = Recorder(plan, identity, folder)
    ends = {run.step("facts"): run for run in plan.runs}

    def after(step: Step) -> None:
        if step.name in ends:
            append_results(folder / RESULTS_FILE, recorder.results(ends[step.name]))

    executor = Executor(plan, folder, options, after)
    _restore_results(recorder, executor.done)
    estimate = Estimate(plan, folder, executor.done)
    print_line(
        console,
        f"study {folder}: {len(plan.runs)} runs, {estimate.runs_done} done before, "
        f"{options.submitted or options.jobs} at once",
    )
    with watch(estimate, console) as watcher:
        failures = executor.execute(watcher)
    report(folder)
    return 1 if failures else 0


def _restore_results(recorder: Recorder, done: set[str]) -> None:
    """Write the results of finished runs that results.jsonl has lost."""
    path, recipe = recorder.folder / RESULTS_FILE, recorder.plan.recipe
    known = {result.key for result in read_results(path)}
    for run in recorder.plan.runs:
        wanted = {(run.method.name, run.seed, metric) for metric in recipe.score}
        if run.step("facts") in done and not wanted <= known:
            append_results(path, recorder.results(run))


def report(folder: Path, baseline: str | None = None) -> None:
    """Write the report of a study, finished or not, and print its table.

    Args:
        folder: the study's folder.
        baseline: another baseline than the recipe's.
    """
    study, console = read_study(folder, baseline), make_console()
    page = write_report(study)
    print_table(study.table, console)
    print_line(console, f"report: {page}")
