"""The report of a study: report.md, and report.html as one file without any outside resource.

Beside them: tables as CSV and LaTeX, figures with their numbers, and the scores by item that they
are made from.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup, escape

from treesyntax.data.limits import long_references
from treesyntax.data.token_files import TokenData, find_prefix
from treesyntax.errors import TreeSyntaxError
from treesyntax.files import read_lines, write_text
from treesyntax.metrics import composition_warning, reference_warnings
from treesyntax.study.recipe.identity import Identity
from treesyntax.study.report.advice import advice_lines, learning_line
from treesyntax.study.report.curves import lines_of, targets_note
from treesyntax.study.report.data_notes import (
    data_notes,
    same_targets,
    trained_on,
    without_trees,
)
from treesyntax.study.report.items import write_items
from treesyntax.study.report.pair_notes import pair_notes
from treesyntax.study.report.run_table import run_table
from treesyntax.study.report.sections import make_sections
from treesyntax.study.report.stale import remove_stale
from treesyntax.study.report.table import StudyTable, make_table
from treesyntax.study.report.table_files import latex_table, markdown_table, results_csv, table_csv
from treesyntax.study.report.table_notes import (
    COMPARISON_NOTE,
    comparison_table,
    direction,
)
from treesyntax.study.report.verdict import make_verdict
from treesyntax.study.results.comparisons import lost_reference
from treesyntax.study.results.current import other_code
from treesyntax.study.results.first_plan import changes_since
from treesyntax.study.results.outputs import Outputs
from treesyntax.study.results.results import RESULTS_FILE, Result
from treesyntax.study.results.study_folder import StudyFolder
from treesyntax.study.results.table_text import markdown_text
from treesyntax.study.run.code import mixed_parts, of_first_rule, unknown_parts
from treesyntax.study.run.failures import read_failures
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import Run, located
from treesyntax.study.words import WORDS

if TYPE_CHECKING:
    from jinja2 import Template

TEMPLATES = Path(__file__).parent
SCRIPT = TEMPLATES / "report_sort.js"
ELSEWHERE = "make the report on the machine where the study ran"
OF_COMPARISONS = {True: "Differences", False: "Differences in other metrics"}


class Study(StudyFolder):
    """A study's folder with the table that its report shows."""

    @cached_property
    def table(self) -> StudyTable:
        """The table with all its notes."""
        plan, folder, results = self.plan, self.folder, self.results
        table = make_table(plan, results, read_failures(folder), self.comparisons)
        notes = [*table.notes]
        if self.others:
            what = (
                f"Left out of {RESULTS_FILE}, since of another study or of outputs that are no more"
            )
            notes.append(f"{what}: {', '.join(self.others)}")
        table = _with_code(replace(table, notes=tuple(notes)), results, self.mix_versions)
        notes = [
            *table.notes,
            *_of_references(plan, folder),
            *_of_composition(self.outputs),
            *trained_on(plan, folder),
            *without_trees(plan, folder),
            *_long_references(plan, folder, table),
        ]
        if results and (lost := lost_reference(plan, folder)):
            notes.append(f"Not tested for significance: {lost} does not exist; {ELSEWHERE}")
        begun = {row.method for row in table.rows}
        notes += _lost_categories(self.outputs, results)
        notes += _same_outputs(self.outputs, [row.method for row in table.rows])
        notes += _without_effect(self.outputs, [row.method for row in table.rows])
        notes += changes_since(folder, plan.recipe)
        notes += pair_notes(plan, folder, begun, results)
        notes += data_notes(plan, folder, begun)
        advice = tuple(advice_lines(plan.recipe, folder, table))
        return replace(table, notes=tuple(filter(None, notes)), advice=advice)


def read_study(folder: Path, baseline: str | None = None, mix_versions: bool = False) -> Study:
    """Read a study's folder, finished or not, and test its rows against their baseline.

    Args and errors are those of :class:`treesyntax.study.results.study_folder.StudyFolder`.
    """
    study = Study(folder, baseline, mix_versions)
    study.table  # noqa: B018 - what is wrong in its files is told now
    return study


def _with_code(table: StudyTable, results: Sequence[Result], mix_versions: bool) -> StudyTable:
    """A table that marks the rows whose runs are of other code than the first run."""
    table = replace(table, notes=(*table.notes, *_old_records(results)))
    other = other_code(results)
    if not other:
        return table
    rows = [
        replace(row, seeds=f"{row.seeds}, other code: {', '.join(map(str, other[row.method]))}")
        if row.method in other
        else row
        for row in table.rows
    ]
    codes = [result.code for result in results]
    unknown = [f"{kind}: unknown" for kind in unknown_parts(codes)]
    kinds = ", ".join([*mixed_parts(codes), *unknown])
    note = (
        f"Runs of different code ({kinds}): their differences need not be due to the methods; "
        + ("compared as you asked (--mix-versions)" if mix_versions
           else "rows of other code than their baseline are not tested (--mix-versions tests them)")
    )  # fmt: skip
    return replace(table, rows=tuple(rows), notes=(*table.notes, note))


def _lost_categories(outputs: Outputs, results: Sequence[Result]) -> list[str]:
    """Say which metrics are not tested, since nothing says any more which lines they count."""
    metrics: dict[Path, dict[str, None]] = {}
    for result in results:
        if file := outputs.lost_categories(result.method, result.metric):
            metrics.setdefault(file, {})[result.metric] = None
    return [
        f"{', '.join(names)} not tested for significance: {file} does not exist; {ELSEWHERE}"
        for file, names in metrics.items()
    ]


def _same_outputs(outputs: Outputs, rows: Iterable[str]) -> list[str]:
    """A loud note on runs of a row that wrote the same, so that several are no more evidence than one."""
    groups: dict[tuple[int, ...], list[str]] = {}
    for row in rows:
        for seeds in outputs.same_outputs(row):
            groups.setdefault(seeds, []).append(row)
    return [
        f"SEED WITHOUT EFFECT: seeds {', '.join(map(str, seeds))} of {', '.join(names)} wrote the same outputs, so "
        "they are no more evidence than one run, and intervals are too narrow; check that training uses the seed"
        for seeds, names in groups.items()
    ]


def _without_effect(outputs: Outputs, rows: Iterable[str]) -> list[str]:
    """A loud note on rows that are the same trainings as their baseline: no method, but a fault of the recipe."""
    equal: dict[str, list[str]] = {}
    for row in rows:
        baseline = outputs.plan.recipe.baseline_of(outputs.methods[row])
        if baseline is not None and outputs.writes_what(row, baseline.name):
            equal.setdefault(baseline.name, []).append(row)
    return [
        f"ROW WITHOUT EFFECT: each run of {', '.join(names)} had the loss and wrote the outputs of that of {baseline}, so "
        "what the row changes has no effect; check its settings"
        for baseline, names in equal.items()
    ]


def _old_records(results: Sequence[Result]) -> list[str]:
    """Say for how many runs it is not known whether all their code was the same."""
    runs = {(result.method, result.seed) for result in results if of_first_rule(result.code)}
    if not runs:
        return []
    return [
        f"The code of {len(runs)} runs was recorded by an older version, which did not watch kernels, training and data "
        "sets: these may differ"
    ]


def _of_references(plan: Plan, folder: Path) -> list[str]:
    """What the scores do not say of the test set, one line each."""
    names = dict.fromkeys(row.target.test for row in plan.recipe.methods)
    files = [file for name in names if (file := located(name, folder)).is_file()]
    notes = (reference_warnings(plan.recipe.score, [*read_lines(file)]) for file in files)
    return [*dict.fromkeys(note for of_file in notes for note in of_file)]


def _of_composition(outputs: Outputs) -> list[str]:
    """Say which runs spell words otherwise than the references in Unicode alone, and how often the first does."""
    recipe = outputs.plan.recipe
    runs = [Run(row, seed) for row in recipe.methods for seed in recipe.seeds]
    warnings = {
        run.name: warning
        for run in runs
        if outputs.has_references(run.method.name) and outputs.output(run).is_file()
        if (warning := _composition(outputs, run))
    }
    if not warnings:
        return []
    name, warning = next(iter(warnings.items()))
    return [f"{name} ({len(warnings)} of {len(runs)} runs have such outputs): {warning}"]


def _composition(outputs: Outputs, run: Run) -> str:
    lines, references = outputs.text(outputs.output(run)), outputs.references(run.method.name)
    return composition_warning(lines, references) if len(lines) == len(references) else ""


def _long_references(plan: Plan, folder: Path, table: StudyTable) -> list[str]:
    """The rows whose outputs may not be as long as some references; what cannot be read is not told."""
    rows: dict[str, list[str]] = {}
    begun = {row.method for row in table.rows}
    for method in (method for method in plan.recipe.methods if method.name in begun):
        data = plan.data_folder(method, folder)
        flags = plan.recipe.flags(method, "generate")
        try:
            sources, targets = (
                TokenData(find_prefix(data, "test", side)).sizes for side in ("source", "target")
            )
            a, b = float(flags.get("max-len-a", 0)), float(flags.get("max-len-b", 200))
        except (TreeSyntaxError, TypeError, ValueError):
            continue
        if text := long_references(sources, targets, a, b):
            rows.setdefault(text, []).append(method.name)
    return [f"{', '.join(names)}: {text}" for text, names in rows.items()]


def write_report(study: Study) -> Path:
    """Write the report, its figures and its tables; returns the HTML file."""
    failures = read_failures(study.folder)
    shown = [result for result in study.results if result.metric in study.table.shown]
    sections = make_sections(study.outputs, study.scores, study.rows, shown, failures)
    script = SCRIPT.read_text("utf-8").strip()
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    hidden = study.table.coinciding
    comparisons = [
        comparison
        for comparison in study.comparisons
        if comparison.primary or comparison.metric not in hidden
    ]
    learning = learning_line(study.plan.recipe, study.folder, study.table)
    verdict = make_verdict(comparisons, lines_of(study.plan.recipe), learning)
    written = [*sections, *filter(None, [verdict])]
    for section in written:
        section.write(study.folder)
    if study.outputs.are_whole:  # else what cannot be made again here stays
        remove_stale(study.folder, written)
    page = {
        "sections": sections,
        "verdict": verdict,
        "script": script,
        "script_hash": f"sha256-{digest}",
    }
    context = {**_context(study), **page}
    for suffix in ("md", "html"):
        write_text(study.folder / f"report.{suffix}", _render(f"report.{suffix}.j2", context))
    for name, text in (
        ("results.csv", results_csv(study.plan.recipe, study.results)),
        ("table.csv", table_csv(study.table)),
        ("table.tex", latex_table(study.table)),
    ):
        write_text(study.folder / "tables" / name, text)
    write_items(study.outputs, study.rows, study.identity.hash, study.results)
    return study.folder / "report.html"


def _context(study: Study) -> dict[str, Any]:
    recipe, shown = study.plan.recipe, study.table.shown
    begun = {row.method for row in study.table.rows}
    return {
        "recipe": recipe,
        "about": {
            method.base: method.about
            for method in recipe.methods
            if method.about and method.name in begun
        },
        "table": study.table,
        "comparison_note": COMPARISON_NOTE,
        "comparisons": {
            primary: comparison_table(
                [
                    comparison
                    for comparison in study.table.comparisons
                    if comparison.primary is primary
                ],
                title,
            )
            for primary, title in OF_COMPARISONS.items()
        },
        "markdown_table": markdown_table(study.table),
        "direction": direction(shown),
        "provenance": provenance_rows(study.identity, study.results),
        "inputs": study.identity.inputs,
        "runs": run_table(recipe, shown, study.results),
        "runs_notes": targets_note(
            same_targets(study.plan, study.folder),
            {result.method: result for result in study.results},
        ),
        "commands": shown_commands(study.plan, begun),
        "words": WORDS,
    }


def provenance_rows(identity: Identity, results: Sequence[Result]) -> list[tuple[str, str]]:
    """The origin of the results; several values where runs differ."""
    rows = [("study", identity.hash)]
    for label, values in (
        ("commit", [result.commit or "not in a repository" for result in results]),
        ("versions", [_versions(result) for result in results]),
        ("device", [result.device for result in results]),
        ("data sha256", [result.data_sha256 for result in results]),
        ("metrics", [f"{result.metric}: {result.signature}" for result in results]),
        ("test sentences", [str(result.n) for result in results]),
        ("seeds", [str(result.seed) for result in results]),
        ("date", [result.date[:10] for result in results]),
    ):
        if values:
            rows.append((label, "; ".join(dict.fromkeys(values))))
    return rows


def shown_commands(plan: Plan, rows: Collection[str]) -> dict[str, list[str]]:
    """Command lines by heading: those that make the data of some rows, and those of each one's first run."""
    selected = plan.only([run for run in plan.runs if run.method.name in rows])
    data = [step for step in selected.steps if step.name.startswith(("prepare", "binarize"))]
    first = [run for run in selected.runs if run.seed == plan.recipe.seeds[0]]
    groups = {"data": data, **{run.name: plan.steps_of(run) for run in first}}
    return {name: [shlex.join(step.command) for step in steps] for name, steps in groups.items()}


def _versions(result: Result) -> str:
    return ", ".join(f"{name} {version}" for name, version in result.versions.items())


def _breakable(text: str) -> Markup:
    """HTML that may break a long name after a colon or an underscore."""
    return Markup(re.sub("([:_])", r"\1<wbr>", str(escape(text))))


def _plain(text: str) -> str:
    """Markdown of a meaning without its marks."""
    return text.replace("*", "").replace("`", "")


def _render(template: str, context: dict[str, Any]) -> str:
    return _template(template).render(context)


@cache
def _template(name: str) -> Template:
    """A template, ready to be filled in; compiling it takes longer than most tables."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=name.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "md": markdown_text,
        "url": quote,
        "breakable": _breakable,
        "plain": _plain,
    }
    return environment.get_template(name)
