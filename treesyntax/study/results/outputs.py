"""The outputs of a study: what metrics keep of their lines, and the files of the test set beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from treesyntax.data.encoding import TEXT
from treesyntax.errors import InputError
from treesyntax.files import read_lines, sha256_of
from treesyntax.metrics import OF, UNSEEN, counted_lines, measured, plain_name, unseen_lines
from treesyntax.metrics.counted import read_categories
from treesyntax.metrics.kinds import PREFIX, kinds_of, numbers_as_letters
from treesyntax.metrics.line_file import FILE as LINES
from treesyntax.metrics.line_file import LineFile
from treesyntax.metrics.trees import parse_hypothesis
from treesyntax.study.recipe.recipe import Method, Recipe, Side
from treesyntax.study.results.results import Result
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import Run, located
from treesyntax.trees.formats import FORMATS, read_trees

Categories = tuple[tuple[str, ...], NDArray[np.intp]]
"""Names, and for each line the index of one."""
NO_CATEGORIES: Categories = ((), np.array([], dtype=np.intp))


def tree_format(recipe: Recipe, method: Method, side: str) -> str:
    """The format of the trees in a row's test set on a side, as binarize is told it or a metric names it; "" for none.

    A row that reads them as text has the format of another row with the same file.
    """
    file = getattr(method, side).test
    alike = [row for row in recipe.methods if getattr(row, side).test == file]
    named = [str(recipe.flags(row, "binarize").get(f"{side}-format", TEXT)) for row in alike]
    if side == "target":
        named += [plain_name(metric).partition(":")[2] for metric in recipe.score]
    return next((name for name in named if name in FORMATS), "")


class Outputs:
    """The outputs of a study's runs, as :class:`treesyntax.study.results.item_scores.LineStatistics`.

    Args:
        plan: the study's.
        folder: the study's folder.
        results: those of its runs.
    """

    def __init__(self, plan: Plan, folder: Path, results: Sequence[Result]) -> None:
        self.plan, self.folder = plan, folder
        self.scored = {result.key for result in results}
        self.losses = {(result.method, result.seed): result.valid_loss for result in results}
        self.methods = {method.name: method for method in plan.recipe.methods}
        self.text = lru_cache(maxsize=64)(lambda path: list(read_lines(path)))
        self.lines_of_categories = lru_cache(maxsize=8)(read_categories)
        self.items = lru_cache(maxsize=8)(self._items)
        self.statistics = lru_cache(maxsize=64)(self._statistics)
        self.unseen = lru_cache(maxsize=8)(self._unseen)
        self.digest = lru_cache(maxsize=None)(sha256_of)
        self.line_file = lru_cache(maxsize=64)(lambda name: LineFile(folder / name / LINES))

    def seeds(self, row: str, metric: str) -> list[int]:
        """The seeds of a row's runs that have this score and outputs, if it is still known which lines count."""
        method = self.methods[row]
        is_known = self.has_references(row) and not self.lost_categories(row, metric)
        return [
            seed
            for seed in (self.plan.recipe.seeds if is_known else ())
            if (row, seed, metric) in self.scored and self.output(Run(method, seed)).is_file()
        ]

    def has_references(self, row: str) -> bool:
        """Whether the test set of a row still exists."""
        return self._file(self.methods[row].target.test).is_file()

    def lost_categories(self, row: str, metric: str) -> Path | None:
        """The file that says which lines of a row a metric counts, if it does not exist any more."""
        file = self._file(self.methods[row].categories)
        return file if OF in metric and not file.is_file() else None

    @property
    def are_whole(self) -> bool:
        """Whether all outputs that have scores, and the test sets with their categories, still exist."""
        runs = [Run(self.methods[row], seed) for row, seed in {key[:2] for key in self.scored}]
        tests = {name for run in runs for name in (run.method.target.test, run.method.categories)}
        files = [*map(self.output, runs), *map(self._file, tests - {""})]
        return all(file.is_file() for file in files)

    def output(self, run: Run) -> Path:
        """The hypotheses of a run."""
        return self.folder / run.folder / "hypotheses.txt"

    def has_no_tree(self, row: str) -> bool:
        """Whether trees are wanted of a row and no line of any of its runs is one."""
        notation = tree_format(self.plan.recipe, self.methods[row], "target")
        files = [self.output(Run(self.methods[row], seed)) for seed in self.plan.recipe.seeds]
        lines = [line for file in files if file.is_file() for line in self.text(file)]
        return bool(notation and lines) and not any(
            parse_hypothesis(line, notation) for line in lines
        )

    def same_outputs(self, row: str) -> list[tuple[int, ...]]:
        """The seeds of a row's runs that wrote the same lines, by what they wrote; not where each equals its reference.

        Of trainings that differ in their loss the seed had an effect, however few lines there are to differ in.
        """
        groups: dict[tuple[str, float], list[int]] = {}
        for seed, same in self._written(row).items():
            groups.setdefault(same, []).append(seed)
        return [
            tuple(seeds)
            for seeds in groups.values()
            if len(seeds) > 1 and not self._all_right(row, seeds[0])
        ]

    def writes_what(self, row: str, other: str) -> bool:
        """Whether each run of a row had the loss, and wrote the lines, of another row's run with the same seed.

        Not where each line equals its reference: the loss may be an accuracy, which good models reach too.
        """
        written = self._written(row)
        return written == self._written(other) and not all(
            self._all_right(row, seed) for seed in written
        )

    def _written(self, row: str) -> dict[int, tuple[str, float]]:
        """By seed a digest of what a row's run wrote, and its loss."""
        runs = {
            seed: self.output(Run(self.methods[row], seed))
            for seed in sorted({key[1] for key in self.scored if key[0] == row})
        }
        return {
            seed: (self.digest(file), self.losses[row, seed])
            for seed, file in runs.items()
            if file.is_file()
        }

    def _all_right(self, row: str, seed: int) -> bool:
        lines = self.text(self.output(Run(self.methods[row], seed)))
        return self.has_references(row) and [*map(str.split, lines)] == [
            *map(str.split, self.references(row))
        ]

    def references(self, row: str) -> list[str]:
        """The test set of a row."""
        return self.text(self._file(self.methods[row].target.test))

    def categories(self, row: str, metric: str) -> Categories:
        """As of `LineStatistics`.

        Raises:
            InputError: as `categories_of`.
        """
        names, indices = self.categories_of(row)
        return (names, indices[self.counted(row, metric)]) if names else NO_CATEGORIES

    def categories_of(self, row: str) -> Categories:
        """The category of each line of a row's test set; none if the recipe names no file.

        Raises:
            InputError: if the file cannot be read or has another number of lines than the test set.
        """
        name = self.methods[row].categories
        if not name:
            return NO_CATEGORIES
        test = self._file(self.methods[row].target.test)
        lines = self.lines_of_categories(self._file(name), test, len(self.references(row)))
        names = list(dict.fromkeys(lines))
        return tuple(names), np.array([*map(names.index, lines)])

    def refused(self, row: str, seed: int, metric: str, why: str) -> InputError:
        """As of `LineStatistics`."""
        path = self.output(Run(self.methods[row], seed))
        return InputError(path, None, f"has {metric} {why}", "run the study again")

    def _statistics(self, row: str, seed: int, metric: str) -> NDArray[np.float64]:
        """As the step ``score`` kept them; outputs that an older version scored are judged here."""
        method = self.methods[row]
        run = Run(method, seed)
        files = {"hypothesis": self.output(run), "reference": self._file(method.target.test)}
        if OF in metric:
            files["categories"] = self._file(method.categories)
        if UNSEEN in metric:
            files["source"] = self._file(method.source.test)
            files["train_source"] = self._file(method.source.train)
            files["train_target"] = self._file(method.target.train)
        if (statistics := self._kept(run, metric, files)) is not None:
            return statistics
        references, hypotheses = (self.text(files[name]) for name in ("reference", "hypothesis"))
        if len(hypotheses) != len(references):
            cause = f"has {len(hypotheses)} lines, but {files['reference']} has {len(references)}"
            raise InputError(files["hypothesis"], None, cause, "run the study again")
        counted = self.counted(row, metric)
        outputs, wanted = ([text[line] for line in counted] for text in (hypotheses, references))
        return measured(plain_name(metric), outputs, wanted).lines

    def _kept(self, run: Run, name: str, files: Mapping[str, Path]) -> NDArray[np.float64] | None:
        """What the step ``score`` kept of these files; None for nothing."""
        digests = {option: self.digest(path) for option, path in files.items() if path.is_file()}
        if len(digests) < len(files):
            return None
        return self.line_file(run.folder).statistics(name, digests)

    def kinds(self, row: str, seed: int, notation: str) -> str:
        """What is wrong with each line of a run's output, a letter of :mod:`treesyntax.metrics.kinds` each.

        As the step ``score`` kept them; outputs that an older version scored are judged here.
        """
        run = Run(self.methods[row], seed)
        files = {"hypothesis": self.output(run), "reference": self._file(run.method.target.test)}
        if (statistics := self._kept(run, PREFIX + notation, files)) is not None:
            return numbers_as_letters(statistics)
        return kinds_of(self.text(files["hypothesis"]), self.references(row), notation)

    def _items(self, row: str, metric: str) -> NDArray[np.intp]:
        references, sources = self.references(row), self.sources(row)
        indices: dict[tuple[object, ...], int] = {}
        return np.array([
            indices.setdefault((sources[line], *references[line].split()), len(indices))
            for line in self.counted(row, metric)
        ])  # fmt: skip

    def sources(self, row: str) -> Sequence[object]:
        """What each line of the test set is translated from: its text, the labels of its tree, or its
        index if that is not known."""
        method, size = self.methods[row], len(self.references(row))
        path = self._file(method.source.test)
        if not path.is_file():
            return range(size)
        lines = self.text(path)
        notation = str(self.plan.recipe.flags(method, "binarize").get("source-format", TEXT))
        if len(lines) != size and notation in FORMATS:
            return [tuple(tree.labels) for tree in read_trees(path, notation)]
        return [" ".join(line.split()) for line in lines]

    def counted(self, row: str, metric: str) -> list[int]:
        """The lines of a row's test set that a metric counts."""
        method = self.methods[row]
        names, indices = self.categories_of(row) if OF in metric else NO_CATEGORIES
        unseen = self.unseen(method.source, method.target) if UNSEEN in metric else None
        counted = counted_lines(metric, unseen, [names[index] for index in indices])
        size = len(self.references(row))
        return [*range(size)] if counted is None else [*np.flatnonzero(counted).tolist()]

    def _unseen(self, source: Side, target: Side) -> list[bool]:
        files = (source.test, target.test, source.train, target.train)
        return unseen_lines(*(self.text(self._file(file)) for file in files))

    def _file(self, name: str) -> Path:
        return located(name, self.folder)
