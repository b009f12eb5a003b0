"""What goes into a paper: a short table, two sentences on the method and whom to cite, rendered from a study's table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from treesyntax.errors import in_one_line, unknown_name
from treesyntax.files import write_text
from treesyntax.metrics.runs import FEWEST_RUNS, LEVEL
from treesyntax.references import cited_in, references
from treesyntax.study.recipe.backbone import papers_of
from treesyntax.study.recipe.recipe import Recipe
from treesyntax.study.report.table import NOTHING, Row, StudyTable
from treesyntax.study.report.table_notes import (
    LOPSIDED,
    SIGNIFICANT,
    WOULD_FIND,
    direction,
    listed,
    would_find,
)
from treesyntax.study.results.comparisons import Comparison
from treesyntax.study.results.results import Result
from treesyntax.study.results.table_text import Table, latex_file

COLUMN_WIDTH = 3.03
"""Inches: a column of a page with two, as of ACL."""
OF_ROWS = ("parameters", "minutes", "runs")
"""Columns beside metrics."""
TABLE, METHODS, CITED = "table.tex", "methods.txt", "references.bib"
SOFTWARE = {"treesyntax": "treesyntax-2026", "fairseq": "ott-2019", "transformers": "wolf-2020"}
"""The papers of packages, by their keys in the bibliography."""


def write_paper(
    table: StudyTable, recipe: Recipe, results: Sequence[Result], columns: Sequence[str], out: Path
) -> None:
    """Write the table, the sentences and the BibTeX of what the study uses into a folder.

    Args:
        table: of the study.
        recipe: of the same.
        results: of the same.
        columns: metrics and `OF_ROWS`; by default the metrics that decide.
        out: the folder.

    Raises:
        OptionError: for a column that there is none of.
    """
    known = [*recipe.score, *OF_ROWS]
    for name in columns:
        if name not in known:
            raise unknown_name("column", name, known, "--columns:")
    write_text(out / TABLE, paper_table(table, recipe, columns or recipe.primary))
    write_text(out / METHODS, methods_text(table, recipe, results))
    write_text(out / CITED, bibliography(recipe, results))


def paper_table(table: StudyTable, recipe: Recipe, columns: Sequence[str]) -> str:
    """The table with the differences beside the scores, and the conclusions; one for each test set.

    The notes of the report follow as comments, for the writer to see.
    """
    groups: dict[str, list[Row]] = {}
    for row in table.rows:
        test_set = table.domains[row.method].name if table.domains else ""
        groups.setdefault(test_set, []).append(row)
    lines: list[str] = []
    for test_set, rows in groups.items():
        tests = [row.tests[name] for row in rows for name in columns if name in row.tests]
        title = f"{table.title}: {test_set}" if test_set else table.title
        label = re.sub(r"[^\w.-]+", "-", f"tab:{recipe.name}-{test_set}".strip("-")).replace(
            "tab-", "tab:", 1
        )
        header, cells = _cells(rows, columns, bool(table.conclusions))
        caption = " ".join(
            filter(None, [f"{title}.", _caption(rows, columns, tests), table.missing])
        )
        lines += Table(caption, header, cells).latex(label)
    lines += [f"% {in_one_line(note)}" for note in (*table.notes, *table.failed)]
    return latex_file(lines)


def _cells(
    rows: Sequence[Row], columns: Sequence[str], concludes: bool
) -> tuple[list[str], list[list[str]]]:
    header = ["system"]
    cells = [[row.method] for row in rows]
    for name in columns:
        compared = any(name in row.tests for row in rows)
        header += [name, *(["difference"] if compared else [])]
        for row, line in zip(rows, cells, strict=True):
            if name in OF_ROWS:
                line.append(_of_row(row, name))
                continue
            line.append(
                str(row.metrics[name]) if name in row.metrics and not row.is_blank else NOTHING
            )
            line += [_difference(row.tests.get(name))] if compared else []
    if concludes:
        header.append("conclusion")
        for row, line in zip(rows, cells, strict=True):
            line.append(str(row.conclusion or NOTHING))
    return header, [*cells, *_would_find(rows, columns, header)]


def _would_find(
    rows: Sequence[Row], columns: Sequence[str], header: Sequence[str]
) -> list[list[str]]:
    """The line with the smallest differences that such comparisons find; none where none is known."""
    line = [WOULD_FIND]
    for name in columns:
        tests = [row.tests[name] for row in rows if name in row.tests]
        line += ["", would_find(tests)] if tests else [""]
    return [[*line, *[""] * (len(header) - len(line))]] * any(line[1:])


def _of_row(row: Row, name: str) -> str:
    if name == "parameters":
        return NOTHING if row.parameters is None else f"{row.parameters:,}"
    return row.seeds if name == "runs" else str(row.minutes or NOTHING)


def _difference(test: Comparison | None) -> str:
    if test is None or test.no_trees:
        return NOTHING
    marks = SIGNIFICANT * test.significant + LOPSIDED * (test.tested and test.lopsided)
    mark = f" {marks}" if marks else ""
    interval = "" if test.low is None else f" [{test.low:+.2f}, {test.high:+.2f}]"
    return f"{test.difference:+.2f}{interval}{mark}".replace("-", "−")


def _caption(rows: Sequence[Row], columns: Sequence[str], tests: Sequence[Comparison]) -> str:
    metrics = [name for name in columns if name not in OF_ROWS]
    shown = [row.metrics[name].values for row in rows for name in metrics if name in row.metrics]
    runs = sorted({len(values) for values in shown})
    spread = "Mean ± standard deviation over" if runs and runs[0] >= FEWEST_RUNS else "Mean of"
    clauses = (
        [f"{spread} {_span(runs)} run{'s' * (runs != [1])} ({direction(metrics)})"] if runs else []
    )
    if tests:
        names = listed(list(dict.fromkeys(test.baseline for test in tests)))
        interval = " with its 95 % interval" if any(test.low is not None for test in tests) else ""
        clauses.append(f"difference from {names}{interval}")
    if would_find(tests):
        clauses.append(
            f"{WOULD_FIND}: the smallest true difference that 80 % of such studies find, before correction"
        )
    if any(test.significant for test in tests):
        clauses.append(f"{SIGNIFICANT} p < {LEVEL} after Holm's correction")
    if any(test.tested and test.lopsided for test in tests):
        clauses.append(
            f"{LOPSIDED} close to the lowest or highest score, where p < {LEVEL} comes too easily"
        )
    return "; ".join(clauses) + "." * bool(clauses)


def methods_text(table: StudyTable, recipe: Recipe, results: Sequence[Result]) -> str:
    """Two sentences: runs, items, test and correction; then versions."""
    primary = [test for test in table.comparisons if test.primary]
    tested = [test for test in primary if test.p is not None]
    metrics = listed(list(dict.fromkeys(test.metric for test in primary) or recipe.primary))
    seeds = {
        row.method: {result.seed for result in results if result.method == row.method}
        for row in table.rows
    }
    numbers = ", ".join(map(str, sorted(set().union(*seeds.values()))))
    counts = [*map(len, seeds.values())]
    trained = f"We trained {len(seeds)} systems with {_span(counts)} seed{'s' * (max(counts, default=0) != 1)} each ({numbers})"
    if tested:
        baselines = listed(list(dict.fromkeys(test.baseline for test in tested)))
        family = sum(test.in_family for test in tested)
        first = (
            f"{trained} and tested their differences from {baselines} in {metrics} on "
            f"{_span(test.items for test in tested)} test items with a two-sided t test that takes training runs and test "
            f"items as crossed random factors (Satterthwaite's degrees of freedom), at p < {LEVEL} after Holm's "
            f"correction for {family} comparison{'s' * (family != 1)}; intervals hold 95 % and are not corrected."
        )
    else:
        first = (
            f"{trained}; no difference in {metrics} was tested, as fewer than {FEWEST_RUNS} runs of a system or of "
            "its baseline have it."
        )
    return f"{first}\n{_versions(results)}\n"


def bibliography(recipe: Recipe, results: Sequence[Result]) -> str:
    """The BibTeX of the software and of each method's paper."""
    packages = {"treesyntax"}.union(*(result.versions for result in results))
    papers: dict[str, str] = {}
    for row in recipe.methods:
        papers |= papers_of(row.arch, recipe.flags(row, "train"))
    cited = [references()[key] for package, key in SOFTWARE.items() if package in packages]
    cited += cited_in("; ".join(papers.values()))
    unknown = [f"% {name}: add its paper" for name, paper in papers.items() if not paper]
    return "\n\n".join([*(reference.bibtex for reference in cited), *unknown]) + "\n"


def _versions(results: Sequence[Result]) -> str:
    """The sentence on software: each package with all its versions, and how the metrics were computed."""
    versions_of: dict[str, dict[str, None]] = {}
    for result in results:
        for name, version in result.versions.items():
            versions_of.setdefault(name, {})[version] = None
    used = [f"{name} {' and '.join(versions)}" for name, versions in versions_of.items()]
    commits = dict.fromkeys(result.commit[:12] for result in results if result.commit)
    commit = f" (commit {', '.join(commits)})" if commits else ""
    signatures = dict.fromkeys(f"{result.metric}: {result.signature}" for result in results)
    return f"Software: {', '.join(used)}{commit}; metrics: {'; '.join(signatures)}."


def _span(numbers: Iterable[int]) -> str:
    """``5``, or ``3 to 5`` where they differ."""
    known = sorted({*numbers})
    if not known:
        return "0"
    ends = dict.fromkeys((known[0], known[-1]))
    return " to ".join(f"{number:,}" for number in ends)
