"""The results that a study's table, marks, figures and files are all made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from treesyntax.errors import InputError
from treesyntax.study.recipe.identity import read_identity
from treesyntax.study.recipe.recipe import Recipe
from treesyntax.study.recipe.rows import run_name
from treesyntax.study.results.endings import with_endings
from treesyntax.study.results.results import Key, Result, read_results, results_file
from treesyntax.study.run.code import mixed_parts, unknown_parts

Comparable = Callable[[str, str], bool]
"""Whether a row may be compared with another."""


def current_results(folder: Path, recipe: Recipe) -> tuple[list[Result], list[str]]:
    """The results of the runs that a study now consists of, in the order of the file.

    Args:
        folder: the study's folder.
        recipe: its recipe; of rows, seeds and metrics that it lacks nothing is taken.

    Returns:
        The results, and a name for each line that says something of a run of the recipe but is of
        another study, or of other outputs of that run.

    Raises:
        InputError: if two lines say different things of one run and metric.
    """
    identity, path = read_identity(folder), results_file(folder)
    rows = {method.name for method in recipe.methods}
    results, others = [], []
    for result in read_results(path):
        if (
            result.method not in rows
            or result.seed not in recipe.seeds
            or result.metric not in recipe.score
        ):
            continue
        name = run_name(result.method, result.seed)
        if (result.hash, result.run) != (identity.hash, identity.runs.get(name)):
            others.append(f"{name} in {result.metric}")
        else:
            results.append(result)
    return with_endings(each_once(results, path), folder, recipe), others


def each_once(results: Iterable[Result], path: Path) -> list[Result]:
    """Results without repetitions: a run that counts twice is no second run.

    Raises:
        InputError: if two say different things of one run and metric.
    """
    known: dict[Key, Result] = {}
    for result in results:
        if known.setdefault(result.key, result) != result:
            name = run_name(result.method, result.seed)
            cause = f"holds two results of {name} in {result.metric}"
            raise InputError(path, None, cause, "remove one of the lines")
    return [*known.values()]


def missing_scores(recipe: Recipe, results: Iterable[Result]) -> dict[str, dict[str, list[int]]]:
    """Return by row and metric of the recipe the seeds that lack a result; what lacks none is left out."""
    known = {result.key for result in results}
    missing = {
        method.name: {
            metric: seeds
            for metric in recipe.score
            if (
                seeds := [seed for seed in recipe.seeds if (method.name, seed, metric) not in known]
            )
        }
        for method in recipe.methods
    }
    return {name: metrics for name, metrics in missing.items() if metrics}


def comparable(results: Iterable[Result], mix_versions: bool = False) -> Comparable:
    """Any two rows may be compared whose runs are surely of the same code; all if versions may be mixed.

    Runs whose code was recorded by the same older rule count as of the same code if that rule says so.
    """
    codes: dict[str, list[Mapping[str, str]]] = {}
    for result in results:
        codes.setdefault(result.method, []).append(result.code)

    @cache
    def may_compare(row: str, other: str) -> bool:
        both = [*codes.get(row, ()), *codes.get(other, ())]
        return mix_versions or not (mixed_parts(both) or unknown_parts(both))

    return may_compare


def other_code(results: Sequence[Result]) -> dict[str, list[int]]:
    """Return by row the seeds whose runs are of other code than the first run, or may be."""
    seeds: dict[str, dict[int, None]] = {}
    for result in results:
        both = [results[0].code, result.code]
        if mixed_parts(both) or unknown_parts(both):
            seeds.setdefault(result.method, {})[result.seed] = None
    return {name: sorted(numbers) for name, numbers in seeds.items()}
