"""The table of a study: a row a method, mean ± standard deviation over seeds, with speed and minutes of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, stdev
from typing import Literal, NamedTuple

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from treesyntax.jobs.terminal import console_of
from treesyntax.metrics.runs import FEWEST_RUNS
from treesyntax.study.recipe.fairness import BATCH_KEY
from treesyntax.study.recipe.recipe import FIXED
from treesyntax.study.report.table_notes import (
    BUSY_NOTE,
    COMPARISON_NOTE,
    WOULD_FIND,
    average_note,
    baselines_of,
    coinciding_notes,
    comparison_table,
    footnote_mark,
    limit_notes,
    pairs_note,
    parameter_note,
    partial_note,
    row_notes,
    search_note,
    sentence,
    significance_notes,
    unknown_endings,
    verdict,
    would_find,
)
from treesyntax.study.results.comparisons import Comparison, Conclusion
from treesyntax.study.results.domains import Domain, find_domains
from treesyntax.study.results.results import Result
from treesyntax.study.results.table_text import Table
from treesyntax.study.run.failures import Failure, failed_runs, failure_lines
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import Run

BUSY = 1.25
"""Threads a core above which speeds are those of a busy machine."""


class Speed(NamedTuple):
    """Pairs a second in training: the mean of the runs' medians, and the outermost quartiles."""

    mean: float
    slow: float
    fast: float
    busy: bool

    @classmethod
    def of(cls, results: Sequence[Result]) -> Speed | None:
        """Of those of a row, None where no run has a speed."""
        runs = {result.seed: result for result in results if result.pairs_per_second}.values()
        if not runs:
            return None
        speeds = [result.pairs_per_second or 0.0 for result in runs]
        slow = min(result.slow or speed for result, speed in zip(runs, speeds, strict=True))
        fast = max(result.fast or speed for result, speed in zip(runs, speeds, strict=True))
        return cls(fmean(speeds), slow, fast, any((run.load or 0) > BUSY for run in runs))

    def __str__(self) -> str:
        """With its spread, and a mark where the machine was busy."""
        return f"{self.mean:,.0f} ({self.slow:,.0f} to {self.fast:,.0f}){' ~' * self.busy}"


class Minutes(NamedTuple):
    """Minutes of a run, mean over runs. What older records do not say is None: all but training."""

    training: float
    generation: float | None
    scoring: float | None
    start_up: float | None

    @classmethod
    def of(cls, results: Sequence[Result]) -> Minutes | None:
        """Of those of a row, None where it has none."""
        runs = list({result.seed: result for result in results}.values())
        if not runs:
            return None
        known = all(run.seconds for run in runs)
        minutes = [
            fmean(sum(run.seconds.get(kind, 0.0) for kind in kinds) for run in runs) / 60
            for kinds in (
                ("average", "generate", "hypotheses"),
                ("score", "facts"),
                ("start_up",),
            )
        ]
        training = fmean(run.train_seconds for run in runs) / 60
        return cls(training, *(minutes if known else (None, None, None)))

    @property
    def total(self) -> float:
        """Of all parts that are known."""
        return sum(minutes or 0.0 for minutes in self)

    def __str__(self) -> str:
        """All together; of older records that of training, which is said."""
        text = f"{self.total:.1f}" if self.total >= 0.05 else f"{self.total:.2f}"
        return text if self.generation is not None else f"{text} (training)"


NOTHING = "–"
PLAIN_WIDTH = 240


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation (n - 1; None for a single value) of values."""

    mean: float
    sd: float | None
    values: tuple[float, ...]

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of at least one value."""
        return cls(fmean(values), stdev(values) if len(values) > 1 else None, tuple(values))

    def __str__(self) -> str:
        """Mean and standard deviation, or with too few runs for one the runs themselves."""
        if self.sd is None:
            return f"{self.mean:.2f} (1 run)"
        if len(self.values) < FEWEST_RUNS:
            return f"{self.mean:.2f} ({', '.join(f'{value:.2f}' for value in self.values)})"
        return f"{self.mean:.2f} ± {self.sd:.2f}"


@dataclass(frozen=True)
class Row:
    """A method in the table.

    Attributes:
        primary: the metric that decides on its test set.
        metrics: its spread by metric; metrics without any result are left out.
        seeds: seeds with results, as in "2 of 3".
        mark: footnote marks, "" for none.
        tests: its comparison with its baseline by metric, where there is one.
    """

    method: str
    primary: str
    metrics: dict[str, Spread]
    parameters: int | None
    minutes: Minutes | None
    speed: Speed | None
    seeds: str
    mark: str
    tests: Mapping[str, Comparison]

    def metric(self, metric: str) -> str:
        """The text of a cell: mean, standard deviation and whether it is significant."""
        if metric not in self.metrics or self.is_blank:
            return NOTHING
        return f"{self.metrics[metric]}{verdict(self.tests.get(metric))}"

    @property
    def is_blank(self) -> bool:
        """Whether its outputs are all no trees, of which no score says anything."""
        return any(test.no_trees == self.method for test in self.tests.values())

    @property
    def conclusion(self) -> Conclusion | None:
        """What the row shows; None for a baseline, a control and where nothing is compared."""
        return next((test.conclusion for test in self.tests.values() if test.conclusion), None)


@dataclass(frozen=True)
class StudyTable:
    """Everything that the table shows.

    Attributes:
        rows: those with a result or a failure.
        notes: what the footnote marks mean.
        comparisons: of rows with their baselines, in the order of their table, in shown metrics.
        failed: one line a run that failed: its name, its failed command, the last log line.
        primary: the metrics of the summary.
        domains: the test set of each row, if there are several.
        coinciding: metrics that are not shown, each with the shown one that says the same.
        advice: what to do next; in the report, but not in a table for a paper.
        missing: runs and metrics of the rows without a score, also the first note; "" for a whole table.
    """

    title: str
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    failed: tuple[str, ...]
    comparisons: tuple[Comparison, ...] = ()
    primary: Sequence[str] = ()
    domains: Mapping[str, Domain] = field(default_factory=dict)
    coinciding: Mapping[str, str] = field(default_factory=dict)
    advice: tuple[str, ...] = ()
    missing: str = ""

    @property
    def shown(self) -> list[str]:
        """The metrics that have a column."""
        return [metric for metric in self.metrics if metric not in self.coinciding]

    @property
    def tables(self) -> list[Table]:
        """The table, or one for each test set and a summary of the primary metric."""
        if not self.domains or not self.rows:
            return [Table(self.title, self.header, self._lines(self.rows))]
        shown = [self.domains[row.method] for row in self.rows]
        names, systems = (list(dict.fromkeys(column)) for column in zip(*shown, strict=True))
        by_test_set = {
            name: [row for row in self.rows if self.domains[row.method].name == name]
            for name in names
        }
        cells = {
            self.domains[row.method]: f"{row.metric(row.primary)} {row.conclusion or ''}".strip()
            for row in self.rows
        }
        summary = [
            [system, *(cells.get(Domain(name, system), NOTHING) for name in names)]
            for system in systems
        ]
        would = [
            would_find([row.tests[row.primary] for row in rows if row.primary in row.tests])
            for rows in by_test_set.values()
        ]
        return [
            *(Table(name, self.header, self._lines(rows)) for name, rows in by_test_set.items()),
            Table(
                f"{' or '.join(self.primary)} on each test set",
                ["method", *names],
                [*summary, *([[WOULD_FIND, *would]] if any(would) else [])],
            ),
        ]

    @property
    def header(self) -> list[str]:
        """Column headings."""
        concluded = ["conclusion"] if self.conclusions else []
        return [
            "method", *self.shown, *concluded, "parameters", "minutes a run", "pairs/s", "seeds",
        ]  # fmt: skip

    @property
    def conclusions(self) -> list[Comparison]:
        """The comparisons that have a conclusion, in the order of the rows."""
        return [test for row in self.rows for test in row.tests.values() if test.conclusion]

    def _lines(self, rows: Sequence[Row]) -> list[list[str]]:
        """The texts of rows, and below them the smallest differences that such comparisons find."""
        would = {
            metric: would_find([row.tests[metric] for row in rows if metric in row.tests])
            for metric in self.shown
        }
        lines = [self.cells(row) for row in rows]
        if any(would.values()):
            texts = [would[metric] or NOTHING for metric in self.shown]
            rest = len(self.header) - len(texts) - 1
            lines.append([WOULD_FIND, *texts, *[""] * rest])
        return lines

    def cells(self, row: Row) -> list[str]:
        """The texts of a row, in the order of the heading."""
        return [
            row.method + row.mark,
            *map(row.metric, self.shown),
            *([str(row.conclusion or NOTHING)] if self.conclusions else []),
            NOTHING if row.parameters is None else f"{row.parameters:,}",
            NOTHING if row.minutes is None else str(row.minutes),
            NOTHING if row.speed is None else str(row.speed),
            row.seeds,
        ]


def make_table(
    plan: Plan,
    results: Sequence[Result],
    failures: Mapping[str, Failure],
    comparisons: Sequence[Comparison] = (),
) -> StudyTable:
    """The table of a study, finished or not."""
    recipe = plan.recipe
    failed = failed_runs(plan, failures)
    scored = {result.method for result in results}
    failures_of = {
        method.name: sum(Run(method, seed).name in failed for seed in recipe.seeds)
        for method in recipe.methods
    }
    begun = [
        method for method in recipe.methods if method.name in scored or failures_of[method.name]
    ]
    texts = row_notes(recipe, {method.name for method in begun})
    marked = {footnote_mark(number): of for number, of in enumerate(texts.values(), start=1)}
    rows = []
    for method in begun:
        row = make_row(
            method.name, method.primary, recipe.score, len(recipe.seeds), results, comparisons
        )
        lost = f", {count} failed" if (count := failures_of[method.name]) else ""
        mark = ",".join(mark for mark, names in marked.items() if method.name in names)
        rows.append(replace(row, seeds=row.seeds + lost, mark=mark))
    coinciding = find_coinciding(recipe.score, recipe.primary, rows)
    shown = [comparison for comparison in comparisons if comparison.metric not in coinciding]
    parameters = {row.method: row.parameters for row in rows if row.parameters is not None}
    missing = partial_note(recipe, results)
    notes = [
        *([missing] if missing else []),
        *(
            f"{mark} {', '.join(names)}: {text}"
            for mark, (text, names) in zip(marked, texts.items(), strict=True)
        ),
        *significance_notes(recipe, shown),
        *unknown_endings(results, shown, recipe.budget == FIXED),
        *limit_notes(recipe, results),
        *coinciding_notes(coinciding),
        *parameter_note(baselines_of(recipe), parameters),
        *pairs_note(baselines_of(recipe), results, recipe.differences.get(BATCH_KEY)),
        *search_note(recipe, {method.name for method in begun}),
        *average_note(recipe),
        *([BUSY_NOTE] if any(row.speed and row.speed.busy for row in rows) else []),
    ]
    return StudyTable(
        recipe.title,
        recipe.score,
        tuple(rows),
        tuple(notes),
        tuple(failure_lines(failed)),
        tuple(shown),
        recipe.primary,
        find_domains(recipe),
        coinciding,
        missing=missing,
    )


def find_coinciding(
    metrics: Sequence[str], primary: Sequence[str], rows: Sequence[Row]
) -> dict[str, str]:
    """The metrics with the same values as another one in all runs, and where there are tests, of all
    items too; each with that other one, which is the primary metric or else stands earlier."""
    coinciding: dict[str, str] = {}
    columns: dict[tuple[object, ...], str] = {}
    for metric in sorted(metrics, key=lambda metric: metric not in primary):
        spreads = [row.metrics.get(metric) for row in rows]
        tests = [row.tests[metric] for row in rows if metric in row.tests]
        other = columns.setdefault(tuple(spreads), metric)
        if any(spreads) and other != metric and all(test.same_as for test in tests):
            coinciding[metric] = other
    return coinciding


def make_row(
    name: str,
    primary: str,
    metrics: Sequence[str],
    seeds: int,
    results: Sequence[Result],
    comparisons: Sequence[Comparison],
) -> Row:
    """A row without marks, from all results and comparisons of the study.

    Args:
        name: of the row.
        primary: its primary metric.
        metrics: of the study.
        seeds: how many the study has.
        results: of any rows.
        comparisons: of any rows.
    """
    row_results = [result for result in results if result.method == name]
    values = {
        metric: [result.value for result in row_results if result.metric == metric]
        for metric in metrics
    }
    return Row(
        method=name,
        primary=primary,
        metrics={metric: Spread.of(scores) for metric, scores in values.items() if scores},
        parameters=row_results[0].parameters if row_results else None,
        minutes=Minutes.of(row_results),
        speed=Speed.of(row_results),
        seeds=f"{len({result.seed for result in row_results})} of {seeds}",
        mark="",
        tests={
            comparison.metric: comparison for comparison in comparisons if comparison.method == name
        },
    )


def make_console() -> Console:
    """The terminal, or a width into which tables fit where there is none."""
    console = console_of()
    return console if console.is_terminal else console_of(width=PLAIN_WIDTH)


def print_table(table: StudyTable, console: Console) -> None:
    """For the terminal: the table, then its notes and failures."""
    for text_table in table.tables:
        _print(text_table, console)
    for line in map(sentence, table.conclusions):
        print_line(console, line)
    if table.comparisons:
        _print(comparison_table(table.comparisons), console)
        print_line(console, COMPARISON_NOTE)
    for line in (*table.notes, *table.failed, *table.advice):
        print_line(console, line)


def _print(table: Table, console: Console) -> None:
    drawn = RichTable(title=Text(table.title))
    for number, heading in enumerate(table.header):
        justify: Literal["right", "left"] = "right" if number else "left"
        drawn.add_column(Text(str(heading)), justify=justify, overflow="fold")
    for row in table.rows:
        drawn.add_row(*(Text(str(cell)) for cell in row))  # as Text, brackets are no markup
    console.print(drawn)


def print_line(console: Console, text: str) -> None:
    """A line as it is: no markup, no colours, no breaks."""
    console.print(Text(text), soft_wrap=True)
