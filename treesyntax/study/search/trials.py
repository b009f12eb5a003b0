"""The trials of a search: a study inside the study, of trainings alone.

Its rows are those of the study, each with all settings as one more axis. Nothing is generated in it,
so no test set is looked at.
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from treesyntax.study.recipe.budget import TRAIN_ON
from treesyntax.study.recipe.identity import began_with
from treesyntax.study.recipe.reading import laid_over
from treesyntax.study.recipe.recipe import Method, Recipe, with_content
from treesyntax.study.recipe.search import SEARCH, TRIALS_FILE, Search
from treesyntax.study.results.endings import ending
from treesyntax.study.run.archive import names_by_other_code
from treesyntax.study.run.former_keys import former_of
from treesyntax.study.run.ledger import Ledger
from treesyntax.study.run.logs import read_log
from treesyntax.study.run.plan import Plan, make_plan
from treesyntax.study.run.steps import BEGUN_FILE, Run
from treesyntax.study.search.choice import (
    Tried,
    choose,
    tried_by,
    winner_line,
    winner_of,
    write_chosen,
)
from treesyntax.study.search.records import LINES, Record, figures_of, read_records

NEEDED = {"accuracy": {"report-accuracy": True}}
"""Flags without which training does not report a metric; they change no number."""


def trial_recipe(recipe: Recipe, search: Search) -> Recipe:
    """The recipe of the trials."""
    content: dict[str, Any] = {
        key: copy.deepcopy(value)
        for key, value in recipe.content.items()
        if key not in (SEARCH, TRAIN_ON, "average", "baseline", "strongest")
    }
    content["seeds"] = list(search.seeds)
    content["baseline"] = next(
        (row.base for row in recipe.methods if row.name == recipe.baseline), recipe.baseline
    )
    # What is the same in all trials is part of the axis too, and so counts more than what rows have.
    same = {**search.train, **NEEDED.get(search.metric, {})}
    options = {
        f"train.{flag}": {
            label: {**same, **settings}[flag] for label, settings in search.settings.items()
        }
        for flag in (*search.flags, *same)
    }
    content["axes"] = {**content.get("axes", {}), SEARCH: options}
    return with_content(recipe, content)


class Trials:
    """The trials of a study, and what they gave.

    Args:
        recipe: of the study.
        search: its search.
        folder: of the study.
        rows: those to which the search is limited now, as for :meth:`Plan.of_rows`; () for all.

    Attributes:
        whole: the plan of the trials with all steps, of which only the trainings are done.
        plan: the trainings.
    """

    def __init__(
        self, recipe: Recipe, search: Search, folder: Path, rows: Sequence[str] = ()
    ) -> None:
        self.recipe, self.search, self.folder = recipe, search, folder
        self.whole = make_plan(trial_recipe(recipe, search))
        self.plan = self.whole.trainings
        row_at = {(row.base, row.point): row for row in recipe.methods}
        self.row_of: dict[str, Method] = {}
        self._runs: dict[tuple[str, str, int], Run] = {}
        for run in self.plan.runs:
            *point, (_, label) = run.method.point
            row = row_at[run.method.base, tuple(point)]
            self.row_of[run.name] = row
            self._runs[row.name, label, run.seed] = run
        self.rows = [row for row in recipe.methods if not rows or {row.name, row.base} & {*rows}]

    @property
    def inner(self) -> Path:
        """The folder of the trials."""
        return self.folder / SEARCH

    @cached_property
    def keys(self) -> dict[str, str]:
        """The key of each training by the name of its run."""
        keys = self.ledger.keys.of
        return {run.name: keys[run.step("train")] for run in self.plan.runs}

    @cached_property
    def records(self) -> dict[str, Record]:
        """What trials gave by the keys of their trainings, those of older versions too, see `former_of`."""
        records = {record.key: record for record in read_records(self.folder)}
        if not records or (former := former_of(self.ledger)) is None:
            return records
        for run in self.plan.runs:
            record, key = records.get(former.keys.of[run.step("train")]), self.keys[run.name]
            row, settings = (
                self.row_of[run.name].name,
                self.search.settings[run.method.point[-1][1]],
            )
            if record is None or key in records or (record.row, record.settings) != (row, settings):
                continue
            if (self.inner / run.folder / BEGUN_FILE).exists() and former.data_lay_ready(run):
                records[key] = replace(record, key=key)
        return records

    @cached_property
    def ledger(self) -> Ledger:
        """What is noted of the trainings."""
        return Ledger(self.plan, self.inner, began_with(self.inner))

    @property
    def left(self) -> Plan:
        """The trials of the rows that are not made yet."""
        return self.plan.only(
            [
                run
                for run in self.plan.runs
                if self.row_of[run.name] in self.rows and self.keys[run.name] not in self.records
            ]
        )

    def record(self, run: Run, failed: str = "") -> None:
        """Keep what a trial gave, and remove its checkpoints.

        Raises:
            OptionError: if its training does not report the metric.
        """
        metric = self.search.metric
        figures, ended = {}, None
        if not failed:
            flags = self.plan.recipe.flags(run.method, "train")
            log = read_log(self.inner / f"logs/{run.step('train')}.log")
            figures, ended = figures_of(log, metric), ending(log, flags)
            failed = "" if figures[metric] else f"no {metric} of the validation set is finite"
        key, label = self.keys[run.name], run.method.point[-1][1]
        settings = self.search.settings[label]
        row = self.row_of[run.name].name
        self.records[key] = Record(row, settings, run.seed, key, figures, failed, ended=ended)
        self._write()
        shutil.rmtree(self.inner / run.checkpoints, ignore_errors=True)

    def _find(self, row: Method, label: str, seed: int) -> Record | None:
        return self.records.get(self.keys[self._runs[row.name, label, seed].name])

    @property
    def tried(self) -> dict[str, list[Tried]]:
        """What the rows reached with all settings, by the name of the row."""
        return {
            row.name: tried_by(self.recipe, self.search, row, self._find)
            for row in self.recipe.methods
        }

    @property
    def settled(self) -> list[str]:
        """The rows asked for that have a winner."""
        tried = self.tried
        return [row.name for row in self.rows if winner_of(self.search, tried[row.name])]

    def lines(self) -> list[str]:
        """A line for each row: its winner, or why it has none; and which trials other code made."""
        tried = self.tried
        lines = [winner_line(row.name, self.search, tried[row.name]) for row in self.rows]
        return [*lines, *self._lines_of_other_code()]

    def _lines_of_other_code(self) -> Iterator[str]:
        """Who edited a method would take the settings that the former one chose for those of the edit."""
        kept = (
            (run.name, step := self.plan.steps_of(run)[0], self.ledger.marker(step).get("code", {}))
            for run in self.plan.runs
            if self.row_of[run.name] in self.rows and self.keys[run.name] in self.records
        )
        for code, names in names_by_other_code(self.ledger, kept).items():
            rows = dict.fromkeys(self.row_of[name].name for name in names)
            yield (
                f"{len(names)} trials of {', '.join(rows)} were made by other code than the present "
                f"({code}) and are kept; to search anew, delete {self.inner} and {self.folder / TRIALS_FILE}"
            )

    def chosen(self) -> Recipe:
        """The recipe of the runs: rows that have a winner have its settings."""
        return with_content(self.recipe, laid_over(self.recipe.content, self._entries()))

    def _entries(self) -> dict[str, Any]:
        best_of = {row: winner_of(self.search, tried) for row, tried in self.tried.items()}
        winners = {row: best.settings for row, best in best_of.items() if best is not None}
        return choose(self.recipe, self.search, winners)

    def write(self) -> None:
        """Write the trials with those that won last, and the recipe with the winners."""
        self._write()
        tried = self.tried
        lines = [winner_line(row, self.search, attempts) for row, attempts in tried.items()]
        write_chosen(self.folder, self.recipe, self._entries(), lines)

    def _write(self) -> None:
        """Former trials first: of the same row, settings and seed the last line counts."""
        best_of = {row: winner_of(self.search, tried) for row, tried in self.tried.items()}
        now = []
        for run in self.plan.runs:
            record, row = self.records.get(self.keys[run.name]), self.row_of[run.name].name
            settings, best = self.search.settings[run.method.point[-1][1]], best_of[row]
            won = best is not None and best.settings == settings
            if record is not None:
                now.append(replace(record, row=row, settings=settings, seed=run.seed, chosen=won))
        keys = {*self.keys.values()}
        former = [record for key, record in self.records.items() if key not in keys]
        LINES.write(self.folder / TRIALS_FILE, [*former, *now])
