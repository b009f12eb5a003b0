"""The programs that train the runs of a study. What a study asks of them is said here; nothing else knows which it has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from treesyntax.study.recipe.recipe import Recipe
from treesyntax.study.recipe.trainer import FAIRSEQ, HUGGINGFACE, TRAINER
from treesyntax.study.run.fairseq import Fairseq
from treesyntax.study.run.huggingface import HuggingFace
from treesyntax.study.run.steps import Command, Run, Step


class Trainer(Protocol):
    """What makes the steps of a study, from its data to the facts of each run.

    Attributes:
        loaded: modules that are loaded once for all trainings.
        checker: the program that reads command lines as JSON and writes the fault of each.
        needs_plugins: whether commands hold the folder of the fairseq plugins.
        drops_pairs: whether a row may leave out pairs that are too long for it.
        examples: where the examples of a split are that may lack a tree, as JSON lines in the folder of a study;
            "" where all must have one.
    """

    loaded: tuple[str, ...]
    checker: tuple[str, ...]
    needs_plugins: bool
    drops_pairs: bool
    examples: str

    def steps(
        self, recipe: Recipe, runs: Sequence[Run], number: int, needs: tuple[str, ...]
    ) -> list[Step]:
        """All steps but the recipe's own commands.

        Args:
            recipe: the recipe.
            runs: in the order in which they are preferred.
            number: of the first step that prepares data.
            needs: the last of the recipe's own commands.
        """

    def commands(
        self, recipe: Recipe, run: Run, data: Step, steps: Sequence[Step]
    ) -> Iterator[Command]:
        """The command lines of a run that the checker should see, the same for all seeds.

        Args:
            recipe: the recipe.
            run: the run.
            data: the step that makes its data.
            steps: its own steps.
        """

    def longer(self, recipe: Recipe, factor: float) -> tuple[str, ...]:
        """What to add to the command of a study so that trainings may be so many times longer."""


TRAINERS: dict[str, Trainer] = {FAIRSEQ: Fairseq(), HUGGINGFACE: HuggingFace()}
"""By the name in a recipe."""


def trainer_of(recipe: Recipe) -> Trainer:
    """The trainer of a recipe."""
    return TRAINERS[recipe.content.get(TRAINER, FAIRSEQ)]
