"""Train and compare methods side by side, as a recipe says.

The same command goes on where it was interrupted. A changed recipe, other data or another version
make another study in a folder of its own.

Examples:
  treesyntax study recipes/demo/for2lam.yaml
  treesyntax study recipes/demo/for2lam.yaml --set seeds=[1,2,3] --set train.max-update=2000
  treesyntax study RECIPE --gpus 0 1 2 3 --retries 1
  treesyntax study RECIPE --cluster slurm --cluster-set slurm_partition=gpu --retries 1
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from treesyntax.decoding.engine import plugin_folder
from treesyntax.errors import OptionError
from treesyntax.jobs import Cluster, read_parameters
from treesyntax.jobs import add_arguments as add_cluster_arguments
from treesyntax.study.recipe.fairness import check_fairness
from treesyntax.study.recipe.recipe import read_recipe
from treesyntax.study.report.report import read_study, write_report
from treesyntax.study.report.table import make_console, print_table
from treesyntax.study.results.record import Recorder
from treesyntax.study.results.results import RESULTS_FILE, append_results, read_results
from treesyntax.study.run.executor import Executor
from treesyntax.study.run.identity import (
    Identity,
    check_folder,
    claim_folder,
    default_folder,
    identify,
)
from treesyntax.study.run.lock import locked
from treesyntax.study.run.options import ExecutionOptions, command_words
from treesyntax.study.run.plan import Plan, make_plan
from treesyntax.study.run.process import PROGRAMS, read_slots
from treesyntax.study.run.progress import Estimate, watch
from treesyntax.study.run.steps import Step

LEFTOVERS = ("", "binarized/", "data/", "done/**/")
"""Where names that begin with a dot and end in ``.part`` or ``.old`` are half written."""
STOP_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Recipe, folder, overrides and how much at once."""
    parser.add_argument("recipe", type=Path, help="YAML file, see the folder recipes")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder of the study (default: runs/NAME-HASH)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
        help="change an entry of the recipe, such as train.lr=0.001, or take one away, such as "
        "methods.linearized=null; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="commands at once (default: GPUs or cores, at most the runs)",
    )
    parser.add_argument(
        "--threads", type=int, default=1, metavar="N", help="threads of each (default: 1)"
    )
    parser.add_argument(
        "--gpus", nargs="+", metavar="GPU",
        help="one command a GPU, as in --gpus 0 1, or two GPUs each, as in --gpus 0,1 2,3 "
        "(default: each of CUDA_VISIBLE_DEVICES, if it names several)",
    )  # fmt: skip
    parser.add_argument(
        "--retries", type=int, default=0, metavar="N",
        help="start a command that failed up to N times more (default: 0)",
    )  # fmt: skip
    add_cluster_arguments(parser, "training and generation")
    parser.add_argument(
        "--dry-run", action="store_true", help="print every command; run and create nothing"
    )


def run(args: argparse.Namespace, programs: Mapping[str, tuple[str, ...]] | None = None) -> int:
    """Run a study.

    Args:
        args: as :func:`add_arguments` defines them.
        programs: what the program names in commands stand for, by default
            :data:`treesyntax.study.run.process.PROGRAMS`.

    Returns:
        0 if all runs are done, 1 if some failed.

    Raises:
        OptionError, InputError: for a recipe or folder that cannot be used, and for a recipe whose
            methods differ in what is not compared.
    """
    recipe = read_recipe(args.recipe, args.overrides)
    check_fairness(recipe)
    plan, identity = make_plan(recipe), identify(recipe)
    folder = args.out or default_folder(recipe, identity)
    settings = _settings(args, plan, programs or PROGRAMS)
    check_folder(folder, identity)
    if args.dry_run:
        for step in plan.steps:
            # As they are typed, not as they are started: the first word stays a program's name.
            print(shlex.join(command_words(step, folder, replace(settings, programs={}))))
        return 0
    with _stop_signals_interrupt(), locked(folder):
        check_folder(folder, identity)  # another process may have been quicker
        claim_folder(folder, recipe, identity)
        _remove_leftovers(folder)
        if args.cluster:
            cluster = Cluster(args.cluster, folder, read_parameters(args.cluster_set))
            submitted = args.jobs or len(plan.runs)
            settings = replace(settings, cluster=cluster, submitted=submitted)
        return _execute(plan, identity, folder, settings)


def _settings(
    args: argparse.Namespace, plan: Plan, programs: Mapping[str, tuple[str, ...]]
) -> ExecutionOptions:
    if args.threads < 1 or (args.jobs is not None and args.jobs < 1):
        raise OptionError("--jobs and --threads must be 1 or more")
    if args.retries < 0:
        raise OptionError("--retries must be 0 or more")
    if args.cluster_set and not args.cluster:
        raise OptionError("--cluster-set needs --cluster")
    if args.cluster and args.gpus:
        raise OptionError(
            "--gpus is for this machine; on a cluster use --cluster-set gpus_per_node=N"
        )
    read_parameters(args.cluster_set)
    slots = () if args.cluster else read_slots(args.gpus, os.environ)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    fitting = len(slots) or (cores or 1) // args.threads
    wanted = None if args.cluster else args.jobs
    jobs = wanted or max(1, min(fitting, len(plan.runs)))
    return ExecutionOptions(jobs, args.threads, str(plugin_folder()), programs, args.retries, slots)


@contextmanager
def _stop_signals_interrupt() -> Iterator[None]:
    """SIGTERM and a closed terminal end a study as Ctrl-C does: children first."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    # nohup has the hang-up ignored: leave it so.
    heeded = [number for number in STOP_SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _remove_leftovers(folder: Path) -> None:
    """What a killed study left half written; nobody else writes while the folder is locked."""
    for part in LEFTOVERS:
        for path in [*folder.glob(f"{part}.*.part"), *folder.glob(f"{part}.*.old")]:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def _restore_results(recorder: Recorder, done: set[str]) -> None:
    """Write the results of finished runs that results.jsonl has lost."""
    path, recipe = recorder.folder / RESULTS_FILE, recorder.plan.recipe
    known = {result.key for result in read_results(path)}
    for run in recorder.plan.runs:
        wanted = {(run.method.name, run.seed, metric) for metric in recipe.score}
        if run.step("facts") in done and not wanted <= known:
            append_results(path, recorder.results(run))


def _execute(plan: Plan, identity: Identity, folder: Path, settings: ExecutionOptions) -> int:
    console = make_console()
    recorder = Recorder(plan, identity, folder)
    ends = {run.step("facts"): run for run in plan.runs}

    def after(step: Step) -> None:
        if step.name in ends:
            append_results(folder / RESULTS_FILE, recorder.results(ends[step.name]))

    executor = Executor(plan, folder, settings, after)
    _restore_results(recorder, executor.done)
    estimate = Estimate(plan, folder, executor.done)
    console.print(
        f"study {folder}: {len(plan.runs)} runs, {estimate.runs_done} done before, "
        f"{settings.submitted or settings.jobs} at once",
        markup=False, highlight=False, soft_wrap=True,
    )  # fmt: skip
    with watch(estimate, console) as watcher:
        failures = executor.execute(watcher)
    study = read_study(folder)
    page = write_report(study)
    print_table(study.table, console)
    console.print(f"report: {page}", markup=False, highlight=False, soft_wrap=True)
    return 1 if failures else 0
