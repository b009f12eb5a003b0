"""Train and compare methods side by side, as a recipe says.

The same command goes on where it was interrupted. After an edit of the recipe it does what is missing.
More seeds, rows or metrics and another search leave what is trained as it is. A run whose training
differs is trained anew, and the former one is kept under replaced/.

A larger max-update or patience trains on from the last checkpoint where that equals one long training.
Elsewhere, and always with a pretrained model, it trains anew and says so. Data that changed are refused.

Examples:
  treesyntax study demo/for2lam
  treesyntax study demo/for2lam --set seeds=[1,2,3] --set train.max-update=2000
  treesyntax study RECIPE --plan
  treesyntax study RECIPE --train-on 2
  treesyntax study RECIPE --only sequence relation_mask
  treesyntax study RECIPE --gpus 0 1 2 3 --retries 1
  treesyntax study RECIPE --cluster slurm --cluster-set timeout_min=600 --retries 1
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from treesyntax.commands.recipes import recipe_names
from treesyntax.errors import OptionError
from treesyntax.files import check_path
from treesyntax.jobs import cores
from treesyntax.jobs.cluster import Cluster, check_cluster
from treesyntax.jobs.completion import suggest
from treesyntax.jobs.imports import with_files
from treesyntax.jobs.options import add_arguments as add_cluster_arguments
from treesyntax.jobs.options import read_parameters
from treesyntax.jobs.processes import without_variables
from treesyntax.jobs.terminal import loudness

STEPS = ("train", "generate", "average", "hypotheses", "score", "facts", "analyses")
"""Steps that may be jobs; the first two always are."""

if TYPE_CHECKING:
    from treesyntax.study.recipe.recipe import Recipe
    from treesyntax.study.run.executor import ExecutionOptions
    from treesyntax.study.run.plan import Plan
    from treesyntax.study.search.trials import Trials


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Recipe, folder, overrides and how much at once."""
    recipe = parser.add_argument(
        "recipe", type=Path, metavar="RECIPE",
        help="a YAML file, or one of those that treesyntax recipes lists",
    )  # fmt: skip
    suggest(recipe, recipe_names)
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder of the study (default: runs/NAME)"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
        help="change an entry of the recipe, such as train.lr=0.001, or take one away, such as "
        "methods.linearized=null; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--train-on", type=float, metavar="FACTOR",
        help="let trainings go on from their last checkpoints, to FACTOR times the recipe's updates (2: twice as many). "
        "Refused where the learning rate depends on the end, and for pretrained models",
    )  # fmt: skip
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="commands at once, at most the runs. Default: one for each GPU of --gpus or "
        "CUDA_VISIBLE_DEVICES. Without these it is as many as cores allow, all on the first GPU if there is one",
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
    parser.add_argument(
        "--mix-versions", action="store_true",
        help="go on with other code than that of the runs that are done, and compare them",
    )  # fmt: skip
    add_cluster_arguments(parser, "training and generation")
    parser.add_argument(
        "--cluster-all", action="store_true",
        help="submit also averaging, scoring and analyses, which are done on this machine otherwise",
    )  # fmt: skip
    parser.add_argument(
        "--only", nargs="+", metavar="ROW", default=[],
        help="do the runs of these rows now; the same command without it goes on with the others, which "
        "changes every p: it is corrected for all rows in the table",
    )  # fmt: skip
    parser.add_argument(
        "--plan", action="store_true",
        help="print what was read of the training files (of trainer: huggingface only the first lines are checked), what each row is, runs and steps left, time and disk; run and create nothing",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="with --plan: print a JSON object")
    parser.add_argument(
        "--dry-run", action="store_true", help="print every command; run and create nothing"
    )


def run(args: argparse.Namespace, programs: Mapping[str, tuple[str, ...]] | None = None) -> int:
    """Run a study.

    Args:
        args: as :func:`add_arguments` defines them.
        programs: the words that program names in commands stand for, by default
            :data:`treesyntax.study.run.process.PROGRAMS`.

    Returns:
        0 if all runs are done, 1 if some failed.

    Raises:
        OptionError, InputError: for a recipe or folder that cannot be used, and for a recipe whose
            methods differ in settings that are not compared.
    """
    if args.json and not args.plan:
        raise OptionError("--json goes with --plan; a study's results are in its runs.jsonl")
    if args.out is not None:
        check_path(args.out, "--out")
    study = _checked(args, programs)
    if args.plan:
        _show_plan(study, args)
    elif args.dry_run:
        _show_commands(study)
    else:
        return _execute(study, args, programs)
    return 0


class _Study(NamedTuple):
    """A study that may begin.

    Attributes:
        recipe: with what the command line changes of it.
        folder: of its results.
        trials: of its search for settings, if it has one.
        plan: of all rows, those that have found their settings with these.
        chosen: the runs of ``plan`` of the rows that the command names.
        options: how its steps are run.
        notes: lines for the user about what is compared.
    """

    recipe: Recipe
    folder: Path
    trials: Trials | None
    plan: Plan
    chosen: Plan
    options: ExecutionOptions
    notes: list[str]


def _checked(args: argparse.Namespace, programs: Mapping[str, tuple[str, ...]] | None) -> _Study:
    """Read the recipe and refuse what cannot be a fair comparison, or could not be trained."""
    # They take seconds to load, and --help needs none of them.
    from treesyntax.decoding.engine import plugin_folder
    from treesyntax.study.recipe.budget import TRAIN_ON
    from treesyntax.study.recipe.fairness import check_fairness
    from treesyntax.study.recipe.identity import check_data_files
    from treesyntax.study.recipe.recipe import read_recipe
    from treesyntax.study.recipe.shipped import recipe_file
    from treesyntax.study.run.early import check_early
    from treesyntax.study.run.extension import check_schedules
    from treesyntax.study.run.folder import check_folder, default_folder
    from treesyntax.study.run.plan import make_plan
    from treesyntax.study.run.trainers import trainer_of
    from treesyntax.study.search.trials import Trials

    longer = [] if args.train_on is None else [f"{TRAIN_ON}={args.train_on:g}"]
    recipe = read_recipe(recipe_file(args.recipe), [*args.overrides, *longer])
    if recipe.train_on > 1:
        check_schedules(make_plan(recipe))
    # Where fairseq is missing, this names it.
    plugins = str(plugin_folder()) if trainer_of(recipe).needs_plugins else ""
    check_fairness(recipe)
    check_data_files(recipe)
    notes = _notes(recipe)
    plan, folder = make_plan(recipe), args.out or default_folder(recipe)
    chosen = plan.of_rows(args.only) if args.only else plan
    trials = Trials(recipe, recipe.search, folder, args.only) if recipe.search else None
    # Tests bring programs of their own, which have flags of their own.
    checker = None if programs is None else ()
    for checked in [plan, trials.whole] if trials else [plan]:
        check_early(checked, checker)
    check_folder(folder)
    if trials is not None:  # rows that have found their settings have them in what is shown
        plan = make_plan(trials.chosen())
        chosen = plan.of_rows(args.only) if args.only else plan
    options = _options(args, len(chosen.runs), plugins, programs)
    if args.gpus and programs is None and not args.dry_run:
        check_gpus(options.gpus)
    return _Study(recipe, folder, trials, plan, chosen, options, notes)


def _notes(recipe: Recipe) -> list[str]:
    from treesyntax.study.recipe.budget import restless
    from treesyntax.study.recipe.controls import uncontrolled
    from treesyntax.study.recipe.fairness import repeated
    from treesyntax.study.recipe.inherit import inherited_line

    compared = [
        (row, recipe.flags(row, "binarize"), recipe.flags(row, "train"))
        for row in recipe.methods
        if recipe.baseline_of(row) is not None and not row.control_of
    ]
    notes = [
        restless(recipe.budget, [recipe.flags(method, "train") for method in recipe.methods]),
        uncontrolled(compared),
        repeated(recipe),
        inherited_line(recipe.inherits, recipe.methods[0].base),
    ]
    return [*filter(None, notes)]


def _show_plan(study: _Study, args: argparse.Namespace) -> None:
    """Print what the study would do and what that takes, after the checks that it would begin with."""
    from treesyntax.commands.study_present import check_present
    from treesyntax.study.data_summary import data_summaries, summary_lines
    from treesyntax.study.outline import outline
    from treesyntax.study.recipe.identity import began_with
    from treesyntax.study.searching import search_outline

    trials = study.trials
    check_present(study.plan, study.folder)
    notes = study.notes + _check_begun(study.plan, study.folder, args.mix_versions)
    if trials is not None and trials.left.runs:
        _check_begun(trials.plan, trials.inner, args.mix_versions)
    summaries = data_summaries(study.recipe)
    at_once = args.jobs or study.options.jobs
    study_outline = outline(study.chosen, study.folder, began_with(study.folder), at_once)
    if args.json:
        trials_left = 0 if trials is None else len(trials.left.runs)
        data = [summary.to_json() for summary in summaries]
        numbers = {**study_outline.numbers(), "trials_left": trials_left, "data": data}
        print(json.dumps(numbers, indent=2))
        return
    print("\n".join(summary_lines(summaries)), end="\n" * bool(summaries))
    for line in notes:
        print(line)
    if trials is not None:
        print("\n".join(search_outline(trials, args.jobs or cores() // args.threads)))
    print("\n".join(study_outline.lines()))


def _show_commands(study: _Study) -> None:
    """Print the commands that the study would run."""
    from treesyntax.study.run.executor import command_words
    from treesyntax.study.run.process import TYPED

    trials = study.trials
    typed = replace(study.options, programs=TYPED)  # "treesyntax", not the Python that runs it
    for name, value in with_files(study.recipe.own_files, {}).items():
        print(f"export {name}={shlex.quote(value)}")
    if trials is not None:
        for step in trials.left.steps:
            print(shlex.join(command_words(step, trials.inner, typed)))
        if len(trials.settled) < len(trials.rows):
            print("# then, with the settings that the search finds:")
    for step in study.chosen.steps:
        print(shlex.join(command_words(step, study.folder, typed)))


def _execute(
    study: _Study, args: argparse.Namespace, programs: Mapping[str, tuple[str, ...]] | None
) -> int:
    """Find settings where they are searched, train and score."""
    check_cluster(args.cluster)
    # All are loaded before a step runs.
    from treesyntax.study.run.plan import make_plan
    from treesyntax.study.run.process import LAUNCHER
    from treesyntax.study.search.trials import Trials
    from treesyntax.study.searching import find_settings
    from treesyntax.study.session import execute
    from treesyntax.study.taking_up import held_folder

    plan, chosen, folder = study.plan, study.chosen, study.folder
    with held_folder(folder), without_variables(LAUNCHER):
        whole = True
        for line in () if loudness().quiet else study.notes:
            print(line)
        if study.trials is not None:
            # As this process finds it.
            trials = Trials(study.recipe, study.trials.search, folder, args.only)
            inner = _options(args, len(trials.left.runs), study.options.plugins, programs)
            inner = _on_cluster(inner, args, trials.inner, len(trials.left.runs))
            whole = find_settings(trials, inner, args.mix_versions)
            if not trials.settled:
                return 1
            plan = make_plan(trials.chosen())
            chosen = plan.of_rows(trials.settled)
        options = _on_cluster(study.options, args, folder, len(chosen.runs))
        failed = execute(plan, folder, options, args.mix_versions, chosen)
        return failed or not whole


def _check_begun(plan: Plan, folder: Path, mix_versions: bool) -> list[str]:
    """Refuse in a plan what the study itself would refuse, and return what it would say of the code of what is done.

    A study that has not begun has nothing to compare.
    """
    from treesyntax.study.recipe.identity import IDENTITY_FILE, read_identity
    from treesyntax.study.run.archive import check_goes_on, lines_of_other_code
    from treesyntax.study.run.former_keys import look_at

    if not (folder / IDENTITY_FILE).exists():
        return []
    ledger = look_at(plan, folder, read_identity(folder).digests)
    check_goes_on(ledger, mix_versions)
    return lines_of_other_code(ledger)


def _on_cluster(
    options: ExecutionOptions, args: argparse.Namespace, folder: Path, runs: int
) -> ExecutionOptions:
    if not args.cluster:
        return options
    cluster = Cluster(args.cluster, folder, read_parameters(args))
    kinds = STEPS if args.cluster_all else STEPS[:2]
    return replace(options, cluster=cluster, submitted=args.jobs or runs, kinds=kinds)


def check_gpus(slots: Sequence[str]) -> None:
    """Refuse GPUs where there are none: torch would train on the CPU without a word."""
    import torch

    if not torch.cuda.is_available():
        raise OptionError(
            f"--gpus {' '.join(slots)}: there is no GPU, or torch cannot use it; leave --gpus out "
            "to train on the CPU"
        )


def _options(
    args: argparse.Namespace,
    runs: int,
    plugins: str,
    programs: Mapping[str, tuple[str, ...]] | None,
) -> ExecutionOptions:
    from treesyntax.study.run.executor import ExecutionOptions
    from treesyntax.study.run.process import PROGRAMS, read_slots

    if args.threads < 1 or (args.jobs is not None and args.jobs < 1):
        raise OptionError("--jobs and --threads must be 1 or more")
    if args.retries < 0:
        raise OptionError("--retries must be 0 or more")
    read_parameters(args)
    if args.cluster_all and not args.cluster:
        raise OptionError("--cluster-all needs --cluster")
    if args.cluster and args.gpus:
        raise OptionError(
            "--gpus is for this machine; on a cluster use --cluster-set gpus_per_node=N"
        )
    slots = () if args.cluster else read_slots(args.gpus, os.environ)
    wanted = None if args.cluster else args.jobs
    jobs = wanted or max(1, min(len(slots) or cores() // args.threads, runs))
    return ExecutionOptions(jobs, args.threads, plugins, programs or PROGRAMS, args.retries, slots)
