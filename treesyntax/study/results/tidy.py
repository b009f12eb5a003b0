"""The runs of a study as tidy records, a record a run and metric: ``tables/results.csv`` and ``read_study(…).runs``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from treesyntax.study.recipe.recipe import Recipe
from treesyntax.study.results.domains import Domain, find_domains
from treesyntax.study.results.results import Result

COLUMNS = {
    "study": "name of the recipe",
    "test_set": "of a study with several; empty otherwise",
    "row": "name of the row",
    "seed": "of the run",
    "metric": "name of the metric",
    "score": "of the run in that metric, in points",
    "lines": "of the test set that the metric counts",
    "parameters": "that are trained",
    "updates": "of the training",
    "ended": "`rested`, `cap` or `last`, see [protocol](protocol.md); empty if it is not known",
    "minutes": "of the training with its validations; tables show those of the whole run",
    "signature": "how the metric was computed",
}
"""The columns with what they hold."""


def run_records(recipe: Recipe, results: Iterable[Result]) -> list[dict[str, Any]]:
    """Return a record of `COLUMNS` for each result; what is not known is None."""
    domains, nowhere = find_domains(recipe), Domain("", "")
    return [
        dict(zip(COLUMNS, (
            result.recipe, domains.get(result.method, nowhere).name, result.method, result.seed, result.metric, result.value,
            result.n, result.parameters, result.updates, result.ended, result.train_seconds / 60, result.signature,
        ), strict=True))
        for result in results
    ]  # fmt: skip
