"""The figures of a report: those drawn here, and those of the analyses of the runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import inf
from pathlib import Path
from types import MappingProxyType

from treesyntax.errors import TreeSyntaxError
from treesyntax.metrics import plain_name
from treesyntax.study.report.advice import train_on_command
from treesyntax.study.report.cost import compute_costs, cost_numbers, draw_costs
from treesyntax.study.report.curves import Lines, draw_curves, lines_of, not_ended, targets_note
from treesyntax.study.report.data_notes import same_targets
from treesyntax.study.report.examples.sections import outputs_sections
from treesyntax.study.report.groups import (
    CATEGORIES_FILE,
    CATEGORY_COLUMNS,
    CATEGORY_HEADER,
    Breakdown,
    GroupScore,
    draw_breakdowns,
    find_quantities,
    score_categories,
)
from treesyntax.study.report.map import (
    LEGEND,
    MAP_FILE,
    csv_rows,
    draw_map,
    make_cells,
    map_table,
    method_lines,
)
from treesyntax.study.report.pictures import (
    ALL_METRICS,
    ANALYSES,
    Drawing,
    Section,
    listed_pictures,
    read_list,
)
from treesyntax.study.report.worth import (
    WORTH_COLUMNS,
    WORTH_FILE,
    WORTH_HEADER,
    draw_worth,
    find_worth,
    without_curves,
    worth_lines,
    worth_numbers,
)
from treesyntax.study.results.domains import short_name
from treesyntax.study.results.item_scores import ItemScores
from treesyntax.study.results.outputs import Outputs
from treesyntax.study.results.results import Result
from treesyntax.study.results.rows import ItemRow
from treesyntax.study.results.table_text import Table
from treesyntax.study.run.failures import Failure, failure_lines, failure_of
from treesyntax.study.run.logs import read_log
from treesyntax.study.run.plan import Plan
from treesyntax.study.run.steps import STUDY_ANALYSES, Run
from treesyntax.study.search.table import trial_table

LIST = "analyses.json"


def make_sections(
    outputs: Outputs,
    scores: ItemScores,
    rows: Sequence[ItemRow],
    results: Sequence[Result],
    failures: Mapping[str, Failure],
) -> list[Section]:
    """All figures of a study as far as there is something to draw.

    Args:
        outputs: of the study.
        scores: of them.
        rows: those with results.
        results: in the metrics that are shown.
        failures: of steps.
    """
    plan, folder, lines = outputs.plan, outputs.folder, lines_of(outputs.plan.recipe)
    shown = {result.metric for result in results}
    metrics = [metric for metric in plan.recipe.score if metric in shown]
    sections = [
        map_section(scores, rows),
        worth_section(scores, rows, results),
        _curves(plan, folder, results, lines),
        _breakdowns(outputs, scores, rows, metrics, lines),
        _categories(outputs, scores, rows, metrics, lines),
        *outputs_sections(outputs),
        _search(plan, folder),
        _costs(plan, results, lines),
        *_analyses(plan, folder, failures),
    ]
    return [section for section in sections if section.is_filled]


def map_section(scores: ItemScores, rows: Sequence[ItemRow]) -> Section:
    """What helps where, in a study with several test sets."""
    section = Section("map", "What helps where", LEGEND)
    if cells := make_cells(scores, rows):
        section.lines = method_lines(cells)
        section.tables[MAP_FILE] = [*csv_rows(cells)]
        section.draw("map", draw_map(cells), [asdict(cell) for cell in cells], "The map.")
        section.table = map_table(cells)
    return section


def worth_section(
    scores: ItemScores, rows: Sequence[ItemRow], results: Sequence[Result]
) -> Section:
    """How much data each row is worth, where rows were trained on several numbers of pairs."""
    section = Section(
        "worth",
        "How much data is it worth",
        "How many times the training pairs its baseline needs to reach a row's score, read off the baseline's curve. "
        "Intervals draw runs and test items anew. Beyond the data: the baseline never reaches the row.",
    )
    section.notes = without_curves(rows)
    if row_worths := find_worth(scores, rows, results):
        section.lines = worth_lines(row_worths)
        section.table = Table(
            "", WORTH_HEADER, [cells for row_worth in row_worths for cells in row_worth.cells()]
        )
        flat = worth_numbers(row_worths)
        section.tables[WORTH_FILE] = [WORTH_COLUMNS, *flat]
        values = [dict(zip(WORTH_COLUMNS, map(_plain, line), strict=True)) for line in flat]
        caption = "Score by training pairs: means over runs, with 95 % intervals."
        section.draw("worth", draw_worth(row_worths), values, caption)
    return section


def _plain(value: object) -> object:
    """A value for JSON, which has no infinity."""
    return "beyond the data" if value == inf else value


def _curves(plan: Plan, folder: Path, results: Sequence[Result], lines: Lines) -> Section:
    curves = {}
    for method in plan.recipe.methods:
        logs = [
            read_log(folder / f"logs/{Run(method, seed).step('train')}.log").valid
            for seed in plan.recipe.seeds
        ]
        if row_curves := [log for log in logs if log]:
            curves[method.name] = row_curves
    section = Section("learning-curves", "Learning curves", "")
    if curves:
        caption = "Validation loss by update: the mean of each method as a thick line, each seed as a thin one."  # fmt: skip
        section.draw("learning_curves", draw_curves(curves, lines), curves, caption)
        section.notes += targets_note(same_targets(plan, folder), curves)
        longer = train_on_command(plan.recipe, folder)
        section.notes += not_ended(results, curves, bool(plan.recipe.average), longer)
    return section


def _breakdowns(
    outputs: Outputs,
    scores: ItemScores,
    rows: Sequence[ItemRow],
    metrics: Sequence[str],
    lines: Lines,
) -> Section:
    plan = outputs.plan
    section = Section(
        "score-by-size",
        "Score by length and depth",
        "The primary metric over the lines of the test set in a bin, mean over seeds, with the lowest and "
        "the highest seed as a bar. Below each bin stands its number of lines.",
    )
    first = plan.recipe.methods[0].target.test
    rows = [row for row in rows if outputs.methods[row.row].target.test == first]
    if rows and len({method.target.test for method in plan.recipe.methods}) > 1:
        section.notes.append(f"Of several test sets only one is drawn, {first}")
    breakdowns = []
    for quantity in find_quantities(plan, outputs.folder) if rows else ():
        try:
            breakdowns.append(quantity.break_down(outputs, scores, rows, metrics))
        except TreeSyntaxError as error:
            section.notes.append(f"Score by {quantity.label} is not drawn: {error}")
    _add_breakdowns(section, breakdowns, plan.recipe.primary, "score_by_size", lines)
    return section


def _add_breakdowns(
    section: Section,
    breakdowns: Sequence[Breakdown],
    primary: Sequence[str],
    name: str,
    lines: Lines,
    names: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Add a figure of the primary metric by all quantities, then for each one all metrics, folded."""
    shown = [breakdown for breakdown in breakdowns if breakdown.metrics]
    if not shown:
        return
    metrics = shown[0].metrics
    wanted = (*primary, *map(plain_name, primary))
    first = next((metric for metric in wanted if metric in metrics), metrics[0])
    figure = draw_breakdowns([(breakdown, first) for breakdown in shown], lines, names)
    numbers = {f"score_by_{breakdown.name}": breakdown.numbers() for breakdown in shown}
    labels = " and ".join(breakdown.label for breakdown in shown)
    section.drawings.append(Drawing(name, figure, numbers, f"Score by {labels}."))
    for breakdown in shown if len(metrics) > 1 else ():
        stem = f"score_by_{breakdown.name}"
        section.drawings.append(Drawing(
            f"{stem}{ALL_METRICS}", draw_breakdowns([(breakdown, metric) for metric in metrics], lines, names),
            {stem: numbers[stem]}, f"Score by {breakdown.label} in all metrics.", f"All metrics by {breakdown.label}",
        ))  # fmt: skip


def _categories(
    outputs: Outputs,
    scores: ItemScores,
    rows: Sequence[ItemRow],
    metrics: Sequence[str],
    lines: Lines,
) -> Section:
    section = category_section([])
    all_scores: list[GroupScore] = []
    for name in dict.fromkeys(row.test_set for row in rows):
        set_rows = [row for row in rows if row.test_set == name]
        where = f" of {short_name(name)}" if name else ""
        try:
            set_scores = score_categories(scores, set_rows, metrics)
        except TreeSyntaxError as error:
            section.notes.append(f"There are no scores by category{where}: {error}")
            continue
        file = f"category_{short_name(name)}" if name else "category"
        breakdown = Breakdown(file, f"category{where}", set_scores)
        systems = {row.row: row.system for row in set_rows}
        primary = outputs.plan.recipe.primary
        _add_breakdowns(section, [breakdown], primary, f"score_by_{file}", lines, systems)
        all_scores += set_scores
    filled = category_section(all_scores)
    section.table, section.tables = filled.table, filled.tables
    return section


def category_section(scores: Sequence[GroupScore]) -> Section:
    """The scores by category as a table."""
    section = Section(
        "score-by-category",
        "Score by category",
        "The primary metric over the lines of a category: mean over seeds, the lowest and highest seed as a bar. The "
        "table has differences from the baseline with their 95 % intervals, which are not corrected.",
    )
    if scores:
        section.table = Table("", CATEGORY_HEADER, [score.cells() for score in scores])
        section.tables[CATEGORIES_FILE] = [CATEGORY_COLUMNS, *(score.numbers() for score in scores)]
    return section


def _search(plan: Plan, folder: Path) -> Section:
    section = Section("search", "Settings found by search", "")
    if plan.recipe.search is not None:
        section.table, section.notes = trial_table(plan.recipe, plan.recipe.search, folder)
    return section


def _costs(plan: Plan, results: Sequence[Result], lines: Lines) -> Section:
    section = Section("cost", "Score against cost", "")
    order, metric = [method.name for method in plan.recipe.methods], plan.recipe.score[0]
    if costs := compute_costs(results, order, metric):
        memory = (
            "Peak memory is the most that a GPU held at a log interval, or on a CPU the largest "
            "resident size of the training process, which is mostly the libraries it loads."
            if any("peak_memory" in cost.costs for cost in costs.values())
            else "Peak memory was not recorded for these runs."
        )
        caption = f"Mean {metric} over seeds, with its standard deviation as a bar. {memory}"
        figure, numbers = draw_costs(costs, metric, lines), cost_numbers(costs, metric)
        section.draw("score_by_cost", figure, numbers, caption)
    return section


def _analyses(plan: Plan, folder: Path, failures: Mapping[str, Failure]) -> list[Section]:
    """A section for each kind of analysis, with the first seed of each method."""
    sections = {
        name: Section(name.replace("_", "-"), heading, text)
        for name, (heading, text) in ANALYSES.items()
    }
    lost = Section("not-drawn", "Analyses that are not drawn", "")
    failed: dict[str, Failure] = {}
    for owner, list_folder, step in _analysis_folders(plan):
        if (failure := failure_of(step, plan, failures)) is not None:
            failed[owner] = failure
            continue
        listed = read_list(folder / list_folder / LIST)
        for entry in listed["drawn"]:
            if entry["name"] in sections:
                pictures, foreign = listed_pictures(folder, list_folder, owner, entry)
                sections[entry["name"]].pictures += pictures
                lost.notes += foreign
        for entry in listed["absent"]:
            heading = ANALYSES.get(entry["name"], (entry["name"],))[0]
            why = str(entry["why"]).replace(f"{folder}/", "")
            lost.notes.append(f"{heading}, {owner}: {why}")
    lost.notes += failure_lines(failed)
    return [*sections.values(), lost]


def _analysis_folders(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Of each analysis the owner, the folder and the step that makes it."""
    for run in plan.runs:
        if plan.recipe.analyses and run.seed == plan.recipe.seeds[0]:
            yield run.name, f"{run.folder}/analyses", run.step("analyses")
    if any(step.name == STUDY_ANALYSES for step in plan.steps):
        yield "all runs", STUDY_ANALYSES, STUDY_ANALYSES
