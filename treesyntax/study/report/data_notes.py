"""Where the data of rows differ in more than the trees: tokens and vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from treesyntax.data.manifest import read_manifest
from treesyntax.errors import InputError
from treesyntax.study.report.table_notes import ALLOWED, uneven
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import Run, located


def data_notes(plan: Plan, folder: Path) -> list[str]:
    """A note for each quantity of the source in which rows differ noticeably from their baseline."""
    recipe, found = plan.recipe, {}
    for method in recipe.methods:
        data = located(plan.steps_of(Run(method, recipe.seeds[0]))[0].command[1], folder)
        try:
            counts = read_manifest(data, _source)
        except InputError:
            continue  # the steps that need the data name its fault
        if counts is not None:
            found[method.name] = counts
    notes = []
    for place, what in enumerate(("Source tokens in training", "Source vocabularies")):
        values = {name: counts[place] for name, counts in found.items()}
        if texts := uneven(recipe, values, ALLOWED):
            notes.append(
                f"{what} differ by more than {ALLOWED:.0%} from the baseline's, so rows differ in "
                f"more than the tree: {', '.join(texts)}"
            )
    return notes


def _source(manifest: Any) -> tuple[float, float]:
    side = manifest["sides"]["source"]
    tokens = manifest["splits"]["train"][side["language"]]["tokens"]
    return float(tokens), float(side["dictionary_symbols"])
