"""A recipe as steps: their command lines, the steps they need, and the files they write.

Commands are symbolic, see :mod:`treesyntax.study.run.steps`.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property

from treesyntax.data.encoding import TEXT
from treesyntax.errors import OptionError, unknown_name
from treesyntax.study.recipe.recipe import SPLITS, Method, Recipe, Side, flag_words
from treesyntax.study.recipe.trainer import is_huggingface
from treesyntax.study.run import huggingface
from treesyntax.study.run.steps import (
    BINARIZE,
    OUT,
    PREPARE,
    PREPARED,
    Run,
    Step,
    inside,
    languages,
    run_steps,
    study_step,
)

LONGEST_NAME = 120
"""Letters in the name of a folder; most file systems allow 255 bytes."""


@dataclass(frozen=True)
class Plan:
    """All steps of a study in the order in which they are preferred, and its runs."""

    recipe: Recipe
    steps: tuple[Step, ...]
    runs: tuple[Run, ...]

    def steps_of(self, run: Run) -> list[Step]:
        """The run's own steps."""
        return self._steps_by_run[run.name]

    @cached_property
    def _steps_by_run(self) -> dict[str, list[Step]]:
        found: dict[str, list[Step]] = {run.name: [] for run in self.runs}
        for step in self.steps:
            if (name := step.name.partition("/")[0]) in found:
                found[name].append(step)
        return found

    @cached_property
    def prepare(self) -> list[Step]:
        """The commands of the recipe that make its data."""
        return [step for step in self.steps if step.kind == PREPARE]

    @cached_property
    def needs(self) -> dict[str, tuple[str, ...]]:
        """The names of the steps that each step needs."""
        return {step.name: step.needs for step in self.steps}

    def part(self, rows: Sequence[str]) -> Plan:
        """The runs of some rows alone, and the steps that they need.

        Args:
            rows: names of rows, or of methods for all their rows on the axes of the study.

        Raises:
            OptionError: for a name that no row has.
        """
        names = {name for run in self.runs for name in (run.method.name, run.method.base)}
        for row in rows:
            if row not in names:
                raise unknown_name("row", row, sorted(names), "--only:")
        return self.only([run for run in self.runs if {run.method.name, run.method.base} & {*rows}])

    def only(self, runs: Sequence[Run]) -> Plan:
        """Some of the runs, and the steps that they need.

        Where rows leave out what any of them cannot use, that is the data of all rows.
        """
        wanted = [step.name for run in runs for step in self.steps_of(run)]
        if self.recipe.skips and wanted:
            wanted += [step.name for step in self.steps if step.kind == BINARIZE]
        for name in wanted:  # grows while it is read
            wanted += [need for need in self.needs[name] if need not in wanted]
        chosen = {*wanted}
        steps = tuple(step for step in self.steps if step.name in chosen)
        return Plan(self.recipe, steps, tuple(runs))

    @cached_property
    def trainings(self) -> Plan:
        """The same without all that comes after training, so that no test set is read."""
        steps = tuple(step for step in self.steps if step.kind in (*PREPARED, "train"))
        return Plan(self.recipe, steps, self.runs)

    def outcome(self, run: Run, kind: str) -> str:
        """The name of a run's step of a kind, or of its training where the plan ends with that."""
        name = run.step(kind)
        return name if name in self.needs else run.step("train")

    def words_of(self, step: Step) -> tuple[str, ...]:
        """The words of a step; of a step of a run before them those of its training and its binarize.

        They name the methods and formats that the step uses.
        """
        run, _, _ = step.name.partition("/")
        if run not in self._steps_by_run:
            return step.command
        train = self._steps_by_run[run][0]
        return (*train.command, *self._step_of_name[train.needs[0]].command, *step.command)

    @cached_property
    def _step_of_name(self) -> dict[str, Step]:
        return {step.name: step for step in self.steps}

    @cached_property
    def run_of_training(self) -> dict[str, Run]:
        """The run of each training step."""
        return {run.step("train"): run for run in self.runs}


def make_plan(recipe: Recipe) -> Plan:
    """The steps of a recipe: prepare, binarize each distinct setting once, then the runs.

    Runs are ordered by seed first, so that an unfinished study has something of every method.
    """
    prepare = _prepare_steps(recipe)
    runs = tuple(Run(method, seed) for seed in recipe.seeds for method in recipe.methods)
    steps_of = _finetuning if is_huggingface(recipe.content) else _binarizing
    steps = steps_of(recipe, runs, prepare)
    return Plan(recipe, (*prepare, *steps, *study_step(recipe, runs)), runs)


def _finetuning(recipe: Recipe, runs: Sequence[Run], prepare: Sequence[Step]) -> list[Step]:
    """The steps of trainer: huggingface: data once for all rows, then the runs."""
    ready = tuple(step.name for step in prepare[-1:])
    data = list(huggingface.data_steps(recipe, len(prepare) + 1, ready))
    return [
        *data,
        *(step for run in runs for step in huggingface.run_steps(recipe, run, data[-1])),
    ]


def _binarizing(recipe: Recipe, runs: Sequence[Run], prepare: Sequence[Step]) -> list[Step]:
    """The steps of trainer: fairseq: each distinct setting of binarize once, then the runs."""
    ready = tuple(step.name for step in prepare[-1:])
    groups = _binarize_groups(recipe)
    binarize = [_binarize_step(recipe, methods, ready) for methods in groups]
    folder_of = {
        method.name: step
        for methods, step in zip(groups, binarize, strict=True)
        for method in methods
    }
    lenders = _with_trees(recipe, folder_of)
    steps = [
        step
        for run in runs
        for step in run_steps(
            recipe, run, folder_of[run.method.name], lenders.get(run.method.name, [])
        )
    ]
    return [*binarize, *steps]


def _with_trees(recipe: Recipe, folder_of: dict[str, Step]) -> dict[str, list[Step]]:
    """For each method that reads plain text, the steps that make trees of the same source."""
    trees: dict[Side, dict[str, Step]] = {}
    texts = []
    for method in recipe.methods:
        if recipe.flags(method, "binarize").get("source-format", TEXT) == TEXT:
            texts.append(method)
        else:
            step = folder_of[method.name]
            trees.setdefault(method.source, {})[step.name] = step
    return {method.name: list(trees.get(method.source, {}).values()) for method in texts}


def _prepare_steps(recipe: Recipe) -> list[Step]:
    steps: list[Step] = []
    for number, line in enumerate(recipe.prepare, start=1):
        try:
            words = tuple(inside(word) for word in shlex.split(line))
        except ValueError as error:
            raise OptionError(
                f"{recipe.path}: prepare, command {number}: {str(error).lower()}"
            ) from None
        needs = tuple(step.name for step in steps[-1:])
        steps.append(Step(f"{PREPARE}-{number}", words, needs))
    return steps


def _binarize_groups(recipe: Recipe) -> list[list[Method]]:
    """The methods that share their data and all settings of binarize."""
    groups: dict[str, list[Method]] = {}
    for method in recipe.methods:
        setting = [recipe.flags(method, "binarize"), asdict(method.source), asdict(method.target)]
        groups.setdefault(json.dumps(setting, sort_keys=True), []).append(method)
    return list(groups.values())


def _binarize_step(recipe: Recipe, methods: Sequence[Method], needs: tuple[str, ...]) -> Step:
    first = methods[0]
    name = _joined([method.name.replace("/", ".") for method in methods])
    folder = f"binarized/{name}"
    # The study may have been killed after the folder was complete, before it marked the step as done.
    words = ["treesyntax", "binarize", f"{OUT}/{folder}", "--overwrite", *languages(recipe)]
    for split in SPLITS:
        files = (getattr(side, split) for side in (first.source, first.target))
        words += [f"--{split}", *map(inside, files)]
    words += [inside(word) for word in flag_words(recipe.flags(first, "binarize"))]
    return Step(f"{BINARIZE}/{name}", tuple(words), needs, (folder,))


def _joined(names: Sequence[str]) -> str:
    """The names of methods as one; many are the first, their number and a hash of all."""
    name = "+".join(names)
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{names[0]}+{len(names) - 1}-more-{digest}"
