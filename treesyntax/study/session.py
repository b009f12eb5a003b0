"""The execution of a study: steps run, results are recorded, a report is made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from treesyntax.study.report.items import ITEMS_FILE
from treesyntax.study.report.paper import write_paper
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.report.table import make_console, print_line, print_table
from treesyntax.study.results.current import current_results
from treesyntax.study.results.first_plan import note_plan
from treesyntax.study.results.record import Recorder
from treesyntax.study.results.results import RESULTS_FILE, drop_results, write_results
from treesyntax.study.run.archive import USERS
from treesyntax.study.run.executor import ExecutionOptions, Executor
from treesyntax.study.run.ledger import SCORE
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import Step
from treesyntax.study.taking_up import take_up, work

ENDS = ("score", "facts", "analyses")
"""The steps of a run after which its results are written; the last one adds only what it took."""


def execute(
    plan: Plan,
    folder: Path,
    options: ExecutionOptions,
    mix_versions: bool = False,
    selection: Plan | None = None,
) -> int:
    """Run all steps that are not done and write the report; returns 1 if a step failed, else 0.

    Args:
        plan: the steps.
        folder: the study's folder, held by this process.
        options: how to run them.
        mix_versions: go on with other code than that of runs that are done.
        selection: the part of the plan that is done now, by default all of it.

    Raises:
        OptionError: if a file that the study reads has changed since it began, if its runs were
            trained on other data, or would be of different code.
    """
    console, selection = make_console(), selection or plan
    ledger, identity = take_up(plan, folder, console, options.cluster, mix_versions)
    scoring = [ledger.code(step) for step in plan.steps if step.kind == SCORE]
    metrics = {name: code[name] for code in scoring for name in code if USERS in name}
    note_plan(folder, plan.recipe, metrics)
    # On a cluster this says nothing about the machines that train.
    recorder = Recorder(ledger, identity)
    last = {run.step(kind): run for run in plan.runs for kind in ENDS}

    def after(step: Step) -> None:
        run = last.get(step.name)
        if run and {run.step("score"), run.step("facts")} <= {*executor.done, step.name}:
            write_results(folder / RESULTS_FILE, recorder.results(run))

    executor = Executor(ledger, options, after, selection)
    ledger.digests.save()
    _restore_results(recorder, executor.done)
    failures = work(executor, selection, console)
    report(folder, mix_versions=mix_versions)
    return 1 if failures else 0


def _restore_results(recorder: Recorder, done: set[str]) -> None:
    """Write the results of finished runs that runs.jsonl lacks; drop those of runs to be trained."""
    recipe, folder = recorder.plan.recipe, recorder.folder
    untrained = {
        (run.method.name, run.seed, recorder.identity.runs[run.name])
        for run in recorder.plan.runs
        if run.step("train") not in done
    }
    drop_results(folder, lambda result: (result.method, result.seed, result.run) in untrained)
    known = {result.key for result in current_results(folder, recipe)[0]}
    missing = [
        result
        for run in recorder.plan.runs
        if {run.step("score"), run.step("facts")} <= done
        and not known.issuperset((run.method.name, run.seed, metric) for metric in recipe.score)
        for result in recorder.results(run)
    ]
    if missing:
        write_results(folder / RESULTS_FILE, missing)


def report(
    folder: Path,
    baseline: str | None = None,
    mix_versions: bool = False,
    paper: Path | None = None,
    columns: Sequence[str] = (),
) -> None:
    """Write the report of a study, finished or not, and print its table.

    Args:
        folder: the study's folder.
        baseline: another baseline than the recipe's.
        mix_versions: compare rows of different code too.
        paper: folder for the files of a paper.
        columns: of its table, see :func:`treesyntax.study.report.paper.write_paper`.
    """
    study, console = read_study(folder, baseline, mix_versions), make_console()
    if paper is not None:
        write_paper(study.table, study.plan.recipe, study.results, columns, paper)
    print_table(study.table, console)  # also of a folder that cannot be written to
    if (items := folder / "tables" / ITEMS_FILE).exists() and not study.outputs.are_whole:
        print_line(
            console, f"{items} stays as it was: outputs or test data that it is made of are gone"
        )
    print_line(console, f"report: {write_report(study)}")
    if paper is not None:
        print_line(console, f"for the paper: {', '.join(map(str, sorted(paper.iterdir())))}")
