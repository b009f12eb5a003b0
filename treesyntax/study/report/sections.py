"""The figures of a report: those drawn here, and those of the analyses of the runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from types import MappingProxyType

from treesyntax.errors import TreeSyntaxError
from treesyntax.files import write_json, write_text
from treesyntax.metrics import plain_name
from treesyntax.study.report.breakdown import (
    Quantity,
    break_down,
    draw_breakdowns,
    find_quantities,
)
from treesyntax.study.report.categories import (
    CATEGORY_HEADER,
    score_categories,
)
from treesyntax.study.report.cost import compute_costs, cost_numbers, draw_costs
from treesyntax.study.report.curves import Lines, draw_curves, lines_of, not_ended, targets_note
from treesyntax.study.report.data_notes import same_targets
from treesyntax.study.report.examples.sections import outputs_sections
from treesyntax.study.report.map.cells import MAP_FILE, csv_rows, make_cells, method_lines
from treesyntax.study.report.map.draw import LEGEND, draw_map, table_rows
from treesyntax.study.report.pictures import (
    ANALYSES,
    FIGURES,
    Section,
    draw_picture,
    listed_pictures,
    read_list,
    write_picture,
)
from treesyntax.study.report.rows.commands import train_on_command
from treesyntax.study.report.table_files import categories_csv, csv_text
from treesyntax.study.report.worth import (
    WORTH_COLUMNS,
    WORTH_FILE,
    WORTH_HEADER,
    draw_worth,
    find_worth,
    worth_lines,
)
from treesyntax.study.results.domains import find_domains, plans_by_test_set, short_name
from treesyntax.study.results.item_scores import ItemScores
from treesyntax.study.results.outputs import NO_CATEGORIES, Outputs
from treesyntax.study.results.results import Result
from treesyntax.study.results.rows import ItemRow
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
    """All figures of a study as far as there is something to draw; writes those that are new.

    Args:
        outputs: of the study.
        scores: of them.
        rows: those with results.
        results: in the metrics that are shown.
        failures: of steps.
    """
    plan, folder, lines = outputs.plan, outputs.folder, lines_of(outputs.plan.recipe)
    found = [_map(folder, scores, rows), _worth(folder, scores, rows, results)]
    found.append(_curves(plan, folder, results, lines))
    found.append(_breakdowns(outputs, results, lines))
    found.append(_categories(outputs, scores, rows, results, lines))
    found += outputs_sections(outputs)
    found.append(_search(plan, folder))
    found += [_costs(plan, folder, results, lines), *_analyses(plan, folder, failures)]
    filled = ("pictures", "notes", "rows", "examples")
    return [section for section in found if any(getattr(section, name) for name in filled)]


def _map(folder: Path, scores: ItemScores, rows: Sequence[ItemRow]) -> Section:
    section = Section("map", "What helps where", LEGEND)
    if cells := make_cells(scores, rows):
        section.lines = method_lines(cells)
        write_text(folder / "tables" / MAP_FILE, csv_text([*csv_rows(cells)]))
        numbers = [asdict(cell) for cell in cells]
        section.pictures.append(write_picture(folder, "map", draw_map(cells), numbers, "The map."))
        header, *section.rows = table_rows(cells)
        section.header = tuple(header)
    return section


def _worth(
    folder: Path, scores: ItemScores, rows: Sequence[ItemRow], results: Sequence[Result]
) -> Section:
    section = Section(
        "worth",
        "How much data is it worth",
        "How many times the training pairs its baseline needs to reach a row's score, read off the baseline's curve. "
        "Intervals draw runs and test items anew. Beyond the data: the baseline never reaches the row.",
    )
    if found := find_worth(scores, rows, results):
        section.lines, section.header = worth_lines(found), WORTH_HEADER
        section.rows = [cells for one in found for cells in one.cells()]
        numbers = [one.numbers() for one in found]
        flat = [line for lines in numbers for line in lines]
        write_text(folder / "tables" / WORTH_FILE, csv_text([WORTH_COLUMNS, *flat]))
        values = [dict(zip(WORTH_COLUMNS, map(_plain, line), strict=True)) for line in flat]
        caption = "Score by training pairs: means over runs, with 95 % intervals."
        section.pictures.append(write_picture(folder, "worth", draw_worth(found), values, caption))
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
        if found := [log for log in logs if log]:
            curves[method.name] = found
    section = Section("learning-curves", "Learning curves", "")
    if curves:
        caption = "Validation loss by update: the mean of each method as a thick line, each seed as a thin one."  # fmt: skip
        figure = draw_curves(curves, lines)
        section.pictures.append(write_picture(folder, "learning_curves", figure, curves, caption))
        section.notes += targets_note(same_targets(plan, folder), curves)
        longer = train_on_command(plan.recipe, folder)
        section.notes += not_ended(results, curves, bool(plan.recipe.average), longer)
    return section


def _breakdowns(outputs: Outputs, results: Sequence[Result], lines: Lines) -> Section:
    plan = outputs.plan
    section = Section(
        "score-by-size",
        "Score by length and depth",
        "The primary metric over the lines of the test set in a bin, mean over seeds, with the lowest and "
        "the highest seed as a bar. Below each bin stands its number of lines.",
    )
    if not results:
        return section
    if len({method.target.test for method in plan.recipe.methods}) > 1:
        only = plan.recipe.methods[0].target.test
        section.notes.append(f"Of several test sets only one is drawn, {only}")
    quantities = find_quantities(plan, outputs.folder)
    _break_down(outputs, plan, results, quantities, section, "score_by_size", lines)
    return section


def _break_down(
    outputs: Outputs,
    plan: Plan,
    results: Sequence[Result],
    quantities: Sequence[Quantity],
    section: Section,
    name: str,
    lines: Lines,
    names: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Add a figure of the primary metric by all quantities, then for each one all metrics, folded."""
    every, folder = [], outputs.folder
    outputs = Outputs(plan, folder, results) if plan is not outputs.plan else outputs
    for quantity in quantities:
        file = folder / FIGURES / f"score_by_{quantity.name}.json"
        try:
            found = break_down(outputs, results, quantity)
        except TreeSyntaxError as error:
            section.notes.append(f"Score by {quantity.label} is not drawn: {error}")
            continue
        if found is None:
            return
        write_json(file, found.numbers())
        every.append((found, file))
    if not every:
        return
    metrics = every[0][0].metrics
    first = next(
        (one for one in map(plain_name, plan.recipe.primary) if one in metrics), metrics[0]
    )
    figure = draw_breakdowns([(found, first) for found, _ in every], lines, names)
    labels = " and ".join(found.quantity.label for found, _ in every)
    picture = draw_picture(
        folder,
        name,
        figure,
        [file for _, file in every],
        f"Score by {labels}.",
    )
    section.pictures.append(picture)
    for found, file in every if len(metrics) > 1 else ():
        figure = draw_breakdowns([(found, metric) for metric in metrics], lines, names)
        label = found.quantity.label
        picture = draw_picture(
            folder, f"{file.stem}_all_metrics", figure, [file], f"Score by {label} in all metrics."
        )
        section.pictures.append(replace(picture, owner=f"All metrics by {label}"))


def _categories(
    outputs: Outputs,
    scores: ItemScores,
    rows: Sequence[ItemRow],
    results: Sequence[Result],
    lines: Lines,
) -> Section:
    plan = outputs.plan
    section = Section(
        "score-by-category",
        "Score by category",
        "The primary metric over the lines of a category: mean over seeds, the lowest and highest seed as a bar. The "
        "table has differences from the baseline with their 95 % intervals, which are not corrected.",
    )
    by_category = []
    metrics = [one for one in plan.recipe.score if one in {result.metric for result in results}]
    systems = {row: domain.system for row, domain in find_domains(plan.recipe).items()}
    for name, part in plans_by_test_set(plan).items():
        own = [row for row in rows if row.test_set == name]
        shown = [result for result in results if result.method in {row.row for row in own}]
        where = f" of {short_name(name)}" if name else ""
        try:
            names, places = outputs.categories_of(own[0].row) if own else NO_CATEGORIES
            if names:
                file = f"category_{short_name(name)}" if name else "category"
                quantity = Quantity(file, f"category{where}", tuple(places.tolist()), names)
                place = f"score_by_{file}"
                _break_down(outputs, part, shown, [quantity], section, place, lines, systems)
                by_category += score_categories(scores, own, metrics)
        except TreeSyntaxError as error:
            section.notes.append(f"There are no scores by category{where}: {error}")
    if by_category:
        section.header, section.rows = CATEGORY_HEADER, [one.cells() for one in by_category]
        write_text(outputs.folder / "tables" / "categories.csv", categories_csv(by_category))
    return section


def _search(plan: Plan, folder: Path) -> Section:
    section = Section("search", "Settings found by search", "")
    if plan.recipe.search is not None:
        found = trial_table(plan.recipe, plan.recipe.search, folder)
        section.header, section.rows, section.notes = found
    return section


def _costs(plan: Plan, folder: Path, results: Sequence[Result], lines: Lines) -> Section:
    section = Section("cost", "Score against cost", "")
    order, metric = [method.name for method in plan.recipe.methods], plan.recipe.score[0]
    if found := compute_costs(results, order, metric):
        memory = (
            "Peak memory is the most that a GPU held at a log interval, or on a CPU the largest "
            "resident size of the training process, which is mostly the libraries it loads."
            if any("peak_memory" in cost.costs for cost in found.values())
            else "Peak memory was not recorded for these runs."
        )
        caption = f"Mean {metric} over seeds, with its standard deviation as a bar. {memory}"
        figure = draw_costs(found, metric, lines)
        numbers = cost_numbers(found, metric)
        section.pictures.append(write_picture(folder, "score_by_cost", figure, numbers, caption))
    return section


def _analyses(plan: Plan, folder: Path, failures: Mapping[str, Failure]) -> list[Section]:
    """A section for each kind of analysis, with the first seed of each method."""
    sections = {
        name: Section(name.replace("_", "-"), heading, text)
        for name, (heading, text) in ANALYSES.items()
    }
    lost = Section("not-drawn", "Analyses that are not drawn", "")
    failed: dict[str, Failure] = {}
    for owner, place, step in _places(plan):
        if (failure := failure_of(step, plan, failures)) is not None:
            failed[owner] = failure
            continue
        listed = read_list(folder / place / LIST)
        for entry in listed["drawn"]:
            if entry["name"] in sections:
                pictures, foreign = listed_pictures(folder, place, owner, entry)
                sections[entry["name"]].pictures += pictures
                lost.notes += foreign
        for entry in listed["absent"]:
            heading = ANALYSES.get(entry["name"], (entry["name"],))[0]
            why = str(entry["why"]).replace(f"{folder}/", "")
            lost.notes.append(f"{heading}, {owner}: {why}")
    lost.notes += failure_lines(failed)
    return [*sections.values(), lost]


def _places(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Of each analysis the owner, the folder and the step that makes it."""
    for run in plan.runs:
        if plan.recipe.analyses and run.seed == plan.recipe.seeds[0]:
            yield run.name, f"{run.folder}/analyses", run.step("analyses")
    if any(step.name == STUDY_ANALYSES for step in plan.steps):
        yield "all runs", STUDY_ANALYSES, STUDY_ANALYSES
