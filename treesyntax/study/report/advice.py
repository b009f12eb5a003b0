"""What to do next: the rows that were not run, and how many runs a difference would need.

How many runs: the variance of a difference of means is run_A / R_A + run_B / R_B + rest
(:mod:`treesyntax.metrics.runs`), and more runs shrink all but the rest, which is that of the test
items. The smallest R is sought with (t₀.₉₇₅ + t₀.₈) √(run_A / R + run_B / R + rest) ≤ difference, t
with 2 (R - 1) degrees of freedom. The difference and its variances are taken as they were observed, in
few runs, so the number is a rough guide.
"""

from __future__ import annotations

import math
import shlex
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from treesyntax.metrics.conclusions import STILL_LEARNING
from treesyntax.metrics.runs import FEWEST_RUNS, LEVEL, POWER
from treesyntax.study.recipe.recipe import RECIPE_FILE, Recipe
from treesyntax.study.report.table import Row, StudyTable
from treesyntax.study.results.comparisons import Comparison
from treesyntax.study.run.folder import default_folder
from treesyntax.study.run.trainers import trainer_of

LONGER = 2
"""How many times longer a training is to be that was still learning."""


def study_command(recipe: Recipe, folder: Path) -> str:
    """The command that goes on with a study.

    It names the resolved recipe, which has what the first command changed with --set. Files of own
    methods are not beside that, so the recipe is then the one that was given, as far as it is known.
    """
    name = str(folder / RECIPE_FILE)
    if recipe.imports:
        given = recipe.path.resolve().parent != folder.resolve()
        name = str(recipe.path) if given else "RECIPE"
    out = [] if folder == default_folder(recipe) else ["--out", str(folder)]
    return shlex.join(["treesyntax", "study", name, *out])


def train_on_command(recipe: Recipe, folder: Path) -> str:
    """The command that trains twice as long: from the last checkpoints, or a pretrained model anew."""
    longer = trainer_of(recipe).longer(recipe, LONGER)
    return f"{study_command(recipe, folder)} {shlex.join(longer)}"


SHOWN = 8
"""Most rows that are named."""
MOST_RUNS = 200


def advice_lines(recipe: Recipe, folder: Path, table: StudyTable) -> list[str]:
    """The advice below the table of a study."""
    return [
        *not_run_line(recipe, folder, table),
        *learning_line(recipe, folder, table),
        *runs_line(table),
    ]


def learning_line(recipe: Recipe, folder: Path, table: StudyTable) -> list[str]:
    """How to train on, in a line; none if all that is compared was at rest."""
    rows = [
        comparison.method
        for comparison in table.conclusions
        if comparison.conclusion and comparison.conclusion.word == STILL_LEARNING
    ]
    if not rows:
        return []
    return [
        f"STILL LEARNING: {', '.join(rows)}, or what they are compared with, so there is no verdict and no †. Train "
        f"twice as long: {train_on_command(recipe, folder)}"
    ]


def not_run_line(recipe: Recipe, folder: Path, table: StudyTable) -> list[str]:
    """The rows that the table lacks, in a line; none if it has all."""
    shown = {row.method for row in table.rows}
    names = [method.name for method in recipe.methods if method.name not in shown]
    if not names:
        return []
    more = f" and {len(names) - SHOWN} more rows" if len(names) > SHOWN else ""
    named = ", ".join(names[:SHOWN])
    return [f"Not run yet: {named}{more}; run them with {study_command(recipe, folder)}"]


def runs_line(table: StudyTable) -> list[str]:
    """How many runs the observed differences would need that were not shown, in a line."""
    rows = {row.method: row for row in table.rows}
    texts = [
        f"{test.method} {_runs_text(test, rows[test.method], rows[test.baseline])} ({test.difference:+.2f} {test.metric})"
        for test in table.comparisons
        if test.in_family and test.tested and test.low is not None and not test.significant
        if test.difference
    ]
    if not texts:
        return []
    return [
        f"Runs of each row that find these differences in 80 of 100 studies, uncorrected, a rough guide: {', '.join(texts)}. "
        "Choose the number once: adding seeds until a † appears finds what is not there"
    ]


def _runs_text(test: Comparison, row: Row, baseline: Row) -> str:
    spreads = (row.metrics[test.metric], baseline.metrics[test.metric])
    variances = [(spread.sd or 0.0) ** 2 for spread in spreads]
    of_runs = sum(variance / runs for variance, runs in zip(variances, test.runs, strict=True))
    needed = runs_needed(
        abs(test.difference), sum(variances), max(0.0, (test.error or 0.0) ** 2 - of_runs)
    )
    if needed is None:
        return "none, the test set is too small"
    return f"about {needed}" if needed <= MOST_RUNS else f"more than {MOST_RUNS}"


def runs_needed(difference: float, of_runs: float, rest: float) -> int | None:
    """Runs of each row that find a true difference in 80 % of studies at p < 0.05.

    Args:
        difference: more than 0.
        of_runs: the variances of the scores of both rows over their runs, summed.
        rest: the variance of the difference that more runs leave.

    Returns:
        The number, ``MOST_RUNS + 1`` for more than can be told, None if no number would do.
    """
    limit = (stdtrit(math.inf, 1 - LEVEL / 2) + stdtrit(math.inf, POWER)) * math.sqrt(rest)
    if limit >= difference:
        return None
    runs = np.arange(FEWEST_RUNS, MOST_RUNS + 1)
    reach = stdtrit(2 * (runs - 1), 1 - LEVEL / 2) + stdtrit(2 * (runs - 1), POWER)
    enough = runs[reach * np.sqrt(of_runs / runs + rest) <= difference]
    return int(enough[0]) if len(enough) else MOST_RUNS + 1
