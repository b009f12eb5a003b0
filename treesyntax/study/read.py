"""A finished study as plain records, for notebooks and scripts of a user's own.

Nothing here needs pandas, but ``pandas.DataFrame`` takes all records as they are::

    study = ts.read_study("runs/for2lam-demo")
    pandas.DataFrame(study.runs).groupby(["metric", "row"])["score"].mean()
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from treesyntax.errors import OptionError, unknown_name
from treesyntax.metrics import score_of_lines
from treesyntax.study.recipe.recipe import Method
from treesyntax.study.results.comparisons import compare_rows, facts_of
from treesyntax.study.results.rows import counts_alike, is_tested
from treesyntax.study.results.study_folder import StudyFolder
from treesyntax.study.results.tidy import run_records

Record = dict[str, Any]


class StudyData(StudyFolder):
    """The results of a study as records."""

    @cached_property
    def runs(self) -> list[Record]:
        """One record for each run and metric, as in ``tables/results.csv``: row, seed, metric, score and others."""
        return run_records(self.plan.recipe, self.results)

    @cached_property
    def lines(self) -> list[Record]:
        """One record for each run, metric and test line that the metric counts.

        ``line`` counts from 0. ``score`` is that of the line alone, in percent. ``statistics`` are the numbers
        that add up: the metric's score of any lines is a function of their sum.
        """
        return [
            {
                "row": method.name,
                "seed": seed,
                "metric": metric,
                "line": line,
                "score": score_of_lines(metric, numbers[None]),
                "statistics": tuple(numbers.tolist()),
            }
            for metric in filter(is_tested, self.plan.recipe.score)
            for method in self.plan.recipe.methods
            for seed in self.outputs.seeds(method.name, metric)
            for line, numbers in zip(
                self.outputs.counted(method.name, metric),
                self.outputs.statistics(method.name, seed, metric),
                strict=True,
            )
        ]

    def table(self) -> list[Record]:
        """One record for each row and metric: the mean over runs, and the comparison with the row's baseline.

        ``low`` and ``high`` are the ends of the 95 % interval of ``difference``; ``holm_p`` is corrected as in the
        report, and None where there is no verdict. ``conclusion`` is what the row shows, in a word, and ``why`` the
        reason, in the primary metric alone. What is not compared has None.
        """
        compared = {(test.method, test.metric): test for test in self.comparisons}
        records = []
        for method in self.plan.recipe.methods:
            for metric in self.plan.recipe.score:
                values = [
                    result.value
                    for result in self.results
                    if (result.method, result.metric) == (method.name, metric)
                ]
                if values:
                    comparison = compared.get((method.name, metric))
                    records.append({
                        "row": method.name,
                        "metric": metric,
                        "mean": float(np.mean(values)),
                        "sd": float(np.std(values, ddof=1)) if len(values) > 1 else None,
                        "runs": len(values),
                        **facts_of(comparison),
                    })  # fmt: skip
        return records

    def compare(self, row: str, baseline: str | None = None, metric: str | None = None) -> Record:
        """Compare a row with another over training runs and test items; p is not corrected.

        Args:
            row: its name.
            baseline: of another row; by default the recipe's.
            metric: by default the one that decides.

        Raises:
            OptionError: if there is no such row or metric, nothing to compare, or the code of the two rows differs.
        """
        method = self._row(row)
        baseline_method = (
            self.plan.recipe.baseline_of(method) if baseline is None else self._row(baseline)
        )
        name = method.primary if metric is None else metric
        if name not in self.plan.recipe.score:
            raise unknown_name("metric", name, self.plan.recipe.score)
        if baseline_method is None or baseline_method is method:
            raise OptionError(f"{row} is a baseline; name another row to compare it with")
        lost = not self.outputs.has_references(
            baseline_method.name
        ) or self.outputs.lost_categories(row, name)
        if not is_tested(name) or lost:
            raise OptionError(
                f"{name} of {row} cannot be tested: there is no test for it, or no test set or categories"
            )
        if not counts_alike(method, baseline_method, name):
            raise OptionError(
                f"{name} counts other lines of {row} than of {baseline_method.name}: their data differ"
            )
        if not all(self.outputs.seeds(side.name, name) for side in (method, baseline_method)):
            raise OptionError(f"{row} or {baseline_method.name} has no runs with {name}")
        if method.target.test != baseline_method.target.test:
            raise OptionError(f"{row} and {baseline_method.name} have different test sets")
        if not self.may_compare(row, baseline_method.name):
            raise OptionError(
                f"{row} and {baseline_method.name} are of different code; read_study(…, mix_versions=True) compares them"
            )
        comparison = compare_rows(self.scores, row, baseline_method.name, name)
        return {"row": row, "metric": name, **facts_of(comparison)}

    def _row(self, name: str) -> Method:
        for method in self.plan.recipe.methods:
            if method.name == name:
                return method
        raise unknown_name("row", name, [method.name for method in self.plan.recipe.methods])


def read_study(folder: str | Path, mix_versions: bool = False) -> StudyData:
    """Read a study's folder, finished or not.

    Args:
        folder: of the study, such as ``runs/NAME``.
        mix_versions: compare rows of different code too.

    Raises:
        OptionError: if it holds no study, or a data file or an output has changed since it was used.
        InputError: if a file is damaged.
    """
    return StudyData(folder, mix_versions=mix_versions)
