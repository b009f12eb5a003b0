"""What is to be known of the data: rows that differ in more than trees, test lines of training, missing trees."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

from treesyntax.data.manifest import read_manifest
from treesyntax.errors import InputError, OptionError
from treesyntax.files import read_lines
from treesyntax.metrics import UNSEEN, plain_name, unseen_lines
from treesyntax.study.recipe.recipe import SPLITS, Side
from treesyntax.study.report.table_notes import ALLOWED, baselines_of, uneven
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import located

Facts = TypeVar("Facts")
TREES = ("tree", "tree_pair")
"""The keys of an example's trees."""


def data_notes(plan: Plan, folder: Path, rows: Collection[str]) -> list[str]:
    """A note for each quantity of the source in which some rows differ noticeably from their baseline."""
    quantities = _of_manifests(plan, folder, _source)
    notes = []
    for index, what in enumerate(("Source tokens in training", "Source vocabularies")):
        values = {name: counts[index] for name, counts in quantities.items() if name in rows}
        if texts := uneven(baselines_of(plan.recipe), values, ALLOWED):
            notes.append(
                f"{what} differ by more than {ALLOWED:.0%} from the baseline's, so rows differ in "
                f"more than the tree: {', '.join(texts)}"
            )
    return notes


def trained_on(plan: Plan, folder: Path) -> list[str]:
    """How many test lines stand in the training data, source and reference alike; nothing for none.

    Each test set is looked at with each training set that it is the test of. Nothing is told of sources of several
    lines each, such as CoNLL-U.
    """
    recipe = plan.recipe
    metric = plain_name(recipe.score[0])
    others = (
        ""
        if any(UNSEEN in name for name in recipe.score)
        else f"; {metric}{UNSEEN} scores the others"
    )
    data: dict[tuple[str, str], dict[Side, None]] = {}
    for row in recipe.methods:
        data.setdefault((row.target.test, row.target.train), {})[row.source] = None
    notes = []
    for (test, train), sources in data.items():
        counts = (_seen(folder, (source.test, test, source.train, train)) for source in sources)
        seen, size = next((count for count in counts if count is not None), (0, 0))
        where = f" of {test}" if len(data) > 1 else "", f" {train}" if len(data) > 1 else ""
        if seen:
            notes.append(
                f"{seen} of {size} test lines{where[0]} stand in the training data{where[1]} too, with the same answer{others}"
            )
    return notes


def _seen(folder: Path, names: Sequence[str]) -> tuple[int, int] | None:
    """How many pairs of a test set training has, and how many there are; None where that cannot be told."""
    files = [located(name, folder) for name in names]
    if not all(file.is_file() for file in files):
        return None
    try:
        unseen = unseen_lines(*map(read_lines, files))
    except (InputError, OptionError):
        return None
    return unseen.count(False), len(unseen)


def without_trees(plan: Plan, folder: Path) -> list[str]:
    """How many examples of each split have no tree; nothing where all have one."""
    template = plan.trainer.examples
    counts = []
    for split in SPLITS if template else ():
        file = folder / template.format(split=split)
        if not file.is_file():
            continue
        # A quote inside a text is written with a backslash, so this is the key.
        known = [any(f'"{key}": ' in line for key in TREES) for line in read_lines(file)]
        if not all(known):
            counts.append(f"{known.count(False)} of {len(known)} in {split}")
    return [f"Examples without a tree: {', '.join(counts)}"] if counts else []


def same_targets(plan: Plan, folder: Path) -> list[list[str]]:
    """The rows in groups whose models predict the same target tokens, as far as their data exist."""
    groups: dict[tuple[str, int, int], list[str]] = {}
    for name, target in _of_manifests(plan, folder, _target).items():
        groups.setdefault(target, []).append(name)
    return list(groups.values())


def _of_manifests(plan: Plan, folder: Path, pick: Callable[[Any], Facts]) -> dict[str, Facts]:
    """What ``pick`` finds in the manifest of each row's data."""
    facts_of = {}
    for method in plan.recipe.methods:
        data = plan.data_folder(method, folder)
        try:
            facts = read_manifest(data, pick)
        except InputError:
            continue  # the steps that need the data name its fault
        if facts is not None:
            facts_of[method.name] = facts
    return facts_of


def _source(manifest: Any) -> tuple[float, float]:
    side = manifest["sides"]["source"]
    tokens = manifest["splits"]["train"][side["language"]]["tokens"]
    return float(tokens), float(side["dictionary_symbols"])


def _target(manifest: Any) -> tuple[str, int, int]:
    side = manifest["sides"]["target"]
    tokens = manifest["splits"]["valid"][side["language"]]["tokens"]
    return str(side["view"]), int(tokens), int(side["dictionary_symbols"])
