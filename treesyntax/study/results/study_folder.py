"""A study's folder, finished or not: recipe, results, line statistics and comparisons."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from treesyntax.errors import InputError
from treesyntax.study.recipe.identity import read_identity
from treesyntax.study.recipe.recipe import FIXED, RECIPE_FILE, read_recipe
from treesyntax.study.results.comparisons import Comparison, compare
from treesyntax.study.results.current import comparable, current_results
from treesyntax.study.results.item_scores import ItemScores
from treesyntax.study.results.outputs import Outputs
from treesyntax.study.results.rows import ItemRow, make_rows
from treesyntax.study.run.ledger import check_read
from treesyntax.study.run.plan import make_plan


class StudyFolder:
    """What all tables, figures and records of a study are made from.

    Args:
        folder: of the study.
        baseline: another baseline than the recipe's.
        mix_versions: compare rows of different code too.

    Attributes:
        others: names of results of another study, or of outputs that are no more.

    Raises:
        OptionError: if the folder holds no study, or a data file or an output has changed since it was used.
        InputError: if a file is damaged.
    """

    def __init__(
        self, folder: str | Path, baseline: str | None = None, mix_versions: bool = False
    ) -> None:
        self.folder, self.mix_versions = Path(folder), mix_versions
        self.identity = read_identity(self.folder)
        file = self.folder / RECIPE_FILE
        if not file.is_file():
            remedy = "run the study again, which writes it"
            raise InputError(file, None, "is lost, or no file", remedy)
        self.plan = make_plan(read_recipe(file, baseline=baseline))
        check_read(self.plan, self.folder, self.identity)
        self.results, self.others = current_results(self.folder, self.plan.recipe)
        self.may_compare = comparable(self.results, mix_versions)
        self.outputs = Outputs(self.plan, self.folder, self.results)
        self.scores = ItemScores(self.outputs, self.results, self.plan.recipe.budget == FIXED)

    @cached_property
    def rows(self) -> tuple[ItemRow, ...]:
        """The rows that have results, and what each is compared with."""
        return make_rows(self.outputs, self.results, self.may_compare)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """Each row against its baseline."""
        recipe = self.plan.recipe
        return compare(self.scores, self.rows, recipe.score, len(recipe.seeds))
