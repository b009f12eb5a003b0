"""A recipe as steps: their command lines, the steps they need, and the files they write.

Commands are symbolic, see :mod:`treesyntax.study.run.steps`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from treesyntax.errors import OptionError, unknown_name
from treesyntax.study.recipe.recipe import Method, Recipe
from treesyntax.study.run.steps import (
    BINARIZE,
    PREPARE,
    PREPARED,
    Command,
    Run,
    Step,
    inside,
    located,
    study_step,
)
from treesyntax.study.run.trainers import Trainer, trainer_of


@dataclass(frozen=True)
class Plan:
    """All steps of a study in the order in which they are preferred, and its runs."""

    recipe: Recipe
    steps: tuple[Step, ...]
    runs: tuple[Run, ...]

    @property
    def trainer(self) -> Trainer:
        """What trains its runs."""
        return trainer_of(self.recipe)

    def commands_of(self, run: Run) -> Iterator[Command]:
        """The command lines of a run that can be checked before anything is made."""
        steps = self.steps_of(run)
        return self.trainer.commands(self.recipe, run, self._step_of_name[steps[0].needs[0]], steps)

    def steps_of(self, run: Run) -> list[Step]:
        """The run's own steps."""
        return self._steps_by_run[run.name]

    @cached_property
    def _steps_by_run(self) -> dict[str, list[Step]]:
        steps_by_run: dict[str, list[Step]] = {run.name: [] for run in self.runs}
        for step in self.steps:
            if (name := step.name.partition("/")[0]) in steps_by_run:
                steps_by_run[name].append(step)
        return steps_by_run

    @cached_property
    def prepare(self) -> list[Step]:
        """The commands of the recipe that make its data."""
        return [step for step in self.steps if step.kind == PREPARE]

    @cached_property
    def needs(self) -> dict[str, tuple[str, ...]]:
        """The names of the steps that each step needs."""
        return {step.name: step.needs for step in self.steps}

    def of_rows(self, rows: Sequence[str]) -> Plan:
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

    def data_folder(self, method: Method, folder: Path) -> Path:
        """Return where the data that a row's models read lies in a study's folder."""
        train = self.steps_of(Run(method, self.recipe.seeds[0]))[0]
        data = located(train.command[1], folder)
        of_all_rows = train.needs[0].partition("/")[2]  # as older versions named it
        older = data.parent / of_all_rows
        return older if of_all_rows and not data.exists() and older.is_dir() else data

    @cached_property
    def rows_of_data(self) -> dict[str, list[str]]:
        """The rows that read what a binarize step makes, by the step's name."""
        rows: dict[str, list[str]] = {}
        for method in self.recipe.methods:
            train = self.steps_of(Run(method, self.recipe.seeds[0]))[0]
            rows.setdefault(train.needs[0], []).append(method.name)
        return rows

    @cached_property
    def _step_of_name(self) -> dict[str, Step]:
        return {step.name: step for step in self.steps}

    @cached_property
    def run_of_training(self) -> dict[str, Run]:
        """The run of each training step."""
        return {run.step("train"): run for run in self.runs}


def make_plan(recipe: Recipe) -> Plan:
    """The steps of a recipe: its own commands, data, then the runs.

    Runs are ordered by seed first, so that an unfinished study has something of every method.
    """
    prepare = _prepare_steps(recipe)
    runs = tuple(Run(method, seed) for seed in recipe.seeds for method in recipe.methods)
    ready = tuple(step.name for step in prepare[-1:])
    steps = trainer_of(recipe).steps(recipe, runs, len(prepare) + 1, ready)
    return Plan(recipe, (*prepare, *steps, *study_step(recipe, runs)), runs)


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
