"""The table of a study as files for papers and spreadsheets, in the folder ``tables``.

``results.csv`` has a line a run and metric, see :mod:`treesyntax.study.results.tidy`; ``table.csv`` the rows of the table
with means, standard deviations, intervals and p-values in full; ``table.tex`` the table itself, or
one for each test set and a summary. For report.md the table is Markdown.
"""

from __future__ import annotations

from collections.abc import Sequence

from treesyntax.study.recipe.recipe import Recipe
from treesyntax.study.report.table import StudyTable
from treesyntax.study.report.table_notes import (
    COMPARISON_NOTE,
    comparison_table,
)
from treesyntax.study.results.comparisons import FACTS, facts_of
from treesyntax.study.results.domains import Domain
from treesyntax.study.results.results import Result
from treesyntax.study.results.table_text import (
    csv_text,
    latex_file,
    latex_text,
    markdown_text,
)
from treesyntax.study.results.tidy import COLUMNS, run_records

TABLE_COLUMNS = (
    "test_set", "system", "method", "metric", "mean", "sd", "seeds", "parameters", "pairs_per_second", *FACTS,
    "minutes_training", "minutes_generation", "minutes_scoring", "minutes_start_up",
)  # fmt: skip


def results_csv(recipe: Recipe, results: Sequence[Result]) -> str:
    """A line a run and metric; nothing is rounded, and what is not known is empty."""
    return csv_text(
        [[*COLUMNS], *(list(record.values()) for record in run_records(recipe, results))]
    )


def table_csv(table: StudyTable) -> str:
    """A line a row and metric of the table; empty where there is nothing."""
    rows = []
    for row in table.rows:
        for metric, spread in row.metrics.items():
            domain = table.domains.get(row.method, Domain("", row.method))
            rows.append([
                *domain, row.method, metric, spread.mean, spread.sd, len(spread.values), row.parameters,
                row.speed and row.speed.mean, *facts_of(row.tests.get(metric)).values(),
                *(row.minutes or [""] * 4),
            ])  # fmt: skip
    return csv_text([TABLE_COLUMNS, *rows])


def latex_table(table: StudyTable) -> str:
    """The tables for a paper; they need the package booktabs. Notes and failures follow the last."""
    lines: list[str] = []
    for text_table in table.tables:
        title = f"{table.title}: {text_table.title}" if table.domains else text_table.title
        lines += text_table._replace(title=title).latex()
    notes = (rf"\par {latex_text(note)}" for note in (*table.notes, *table.failed))
    return latex_file([*lines[:-1], *notes, lines[-1]])


def markdown_table(table: StudyTable) -> str:
    """For report.md: the table, then its notes, failures and advice."""
    lines: list[str] = []
    for text_table in table.tables:
        lines += [f"\n### {markdown_text(text_table.title)}\n"] if table.domains else []
        lines += text_table.markdown()
    if table.comparisons:
        lines += [
            "",
            *comparison_table(table.comparisons).markdown(),
            f"\n{markdown_text(COMPARISON_NOTE)}",
        ]
    notes = (*table.notes, *table.failed, *table.advice)
    lines += [f"\n{markdown_text(note)}" for note in notes]
    return "\n".join(lines) + "\n"
