"""The search of a study: its trials are trained, the winners are told and written down."""

from __future__ import annotations

from treesyntax.study.estimate import Estimate, outlook
from treesyntax.study.recipe.search import shown
from treesyntax.study.report.table import make_console, print_line
from treesyntax.study.run.executor import ExecutionOptions, Executor
from treesyntax.study.run.logs import divergence
from treesyntax.study.run.steps import Step
from treesyntax.study.search.trials import Trials
from treesyntax.study.taking_up import held_folder, take_up, work


def find_settings(trials: Trials, options: ExecutionOptions, mix_versions: bool = False) -> bool:
    """Make the trials that are left and choose the winners; returns whether all could be made.

    A training that diverged is a trial that lost.

    Args:
        trials: of the study, whose folder this process holds.
        options: how to run them.
        mix_versions: go on with other code than that of trials that are made.

    Raises:
        OptionError: as :func:`treesyntax.study.session.execute`.
    """
    console, left, whole = make_console(), trials.left, True
    if left.runs:
        with held_folder(trials.inner):
            ledger, _ = take_up(trials.plan, trials.inner, console, options.cluster, mix_versions)

            def after(step: Step) -> None:
                if step.name in left.run_of_training:
                    trials.record(left.run_of_training[step.name])

            executor = Executor(ledger, options, after, left)
            ledger.digests.save()
            for run in left.runs:
                if run.step("train") in executor.done:  # before the last session could note it
                    trials.record(run)
            failures = work(executor, left, console, "search")
            for name in failures:
                log = trials.inner / "logs" / f"{name}.log"
                run_failed, why = left.run_of_training.get(name), divergence(log)
                if run_failed is not None and why:
                    trials.record(run_failed, why)
                else:
                    whole = False
    trials.write()
    for line in trials.lines():
        print_line(console, f"search: {line}")
    return whole


def search_outline(trials: Trials, at_once: int) -> list[str]:
    """What a search would do: the settings, the trials that each row has made, and the steps left."""
    search, left = trials.search, trials.left
    count = len(trials.rows) * len(search.settings) * len(search.seeds)
    return [
        f"search {trials.inner}: {count} trials on validation ({search.metric}), "
        f"{count - len(left.runs)} done; each row tries",
        *(f"  {shown(settings)}" for settings in search.settings.values()),
        *(f"  {line}" for line in trials.lines()),
        *([outlook(Estimate(left, trials.inner, set(), {}, at_once))] if left.runs else []),
    ]
