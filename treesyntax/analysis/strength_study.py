"""Range of mask strengths beside the gain in score.

One row of the figure a study and method with relation masks, after figure 4 of McDonald & Chiang 2021.
It has the smallest and the largest strength, each a mean over the seeds, and the method's mean score
minus the baseline's. The same as a table, in Markdown and LaTeX, beside it.

Example: treesyntax analyse strength_study runs/en-vi runs/en-de --metric bleu --out figures
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from treesyntax.analysis.figures import signed, write_figure, write_numbers, write_table
from treesyntax.errors import InputError
from treesyntax.palette import COLOURS
from treesyntax.study.recipe.recipe import RECIPE_FILE, Recipe, read_recipe
from treesyntax.study.recipe.rows import row_of_run
from treesyntax.study.results.current import current_results
from treesyntax.study.results.results import Result, results_file
from treesyntax.study.results.table_text import Table

NAME = "strength_study"
STRENGTHS = "runs/*/analyses/*/mask_strengths.json"
BLUE, ORANGE = COLOURS[:2]


@dataclass(frozen=True)
class StrengthRow:
    """A method of a study, with its strengths and scores.

    Attributes:
        task: name of the study.
        method: name of a method with relation masks.
        side: ``encoder`` or ``decoder``, which has the masks.
        against: the baseline's name.
        minimum: of its strengths, mean over the runs.
        maximum: the same.
        score: mean over the seeds.
        baseline: the baseline's mean score.
        seeds: of the method.
        baseline_seeds: of the baseline.
    """

    task: str
    method: str
    side: str
    against: str
    minimum: float
    maximum: float
    score: float
    baseline: float
    seeds: tuple[int, ...]
    baseline_seeds: tuple[int, ...]

    @property
    def spread(self) -> float:
        """From the smallest strength to the largest."""
        return self.maximum - self.minimum

    @property
    def gain(self) -> float:
        """Mean score minus the baseline's."""
        return self.score - self.baseline


def compute_row(
    strengths: Sequence[NDArray[np.float64]],
    results: Sequence[Result],
    where: tuple[str, str],
    baseline: str,
    metric: str,
) -> StrengthRow:
    """One row of the figure.

    Args:
        strengths: of each run of the method, of any shape.
        results: of the study, with some of both methods in the metric.
        where: a method with relation masks, and the side that has them.
        baseline: to compare it with.
        metric: of the scores.
    """
    method, side = where
    scores = {
        name: {result.seed: result.value for result in results
               if result.method == name and result.metric == metric}
        for name in (method, baseline)
    }  # fmt: skip
    return StrengthRow(
        task=results[0].recipe,
        method=method,
        side=side,
        against=baseline,
        minimum=float(np.mean([values.min() for values in strengths])),
        maximum=float(np.mean([values.max() for values in strengths])),
        score=float(np.mean(list(scores[method].values()))),
        baseline=float(np.mean(list(scores[baseline].values()))),
        seeds=tuple(sorted(scores[method])),
        baseline_seeds=tuple(sorted(scores[baseline])),
    )


def read_rows(folder: Path, baseline: str | None, metric: str) -> list[StrengthRow]:
    """The rows of a study's folder.

    Args:
        folder: of a study that has run.
        baseline: a method; None for each row's own, as the study's recipe says.
        metric: of the scores.

    Raises:
        InputError: if it lacks results, strengths, scores of the baseline, or the metric.
    """
    path, recipe = results_file(folder), read_recipe(folder / RECIPE_FILE)
    results, _ = current_results(folder, recipe)
    if not results:
        raise InputError(path, None, "holds no results", "give the folder of a study that has run")
    runs = {(result.method, str(result.seed)) for result in results}
    strengths_by_side: dict[tuple[str, str], list[NDArray[np.float64]]] = {}
    for file in sorted(folder.glob(STRENGTHS)):
        method, seed = row_of_run(file.parts[-4])
        if (method, seed) not in runs:
            continue
        strengths_by_side.setdefault((method, file.parts[-2]), []).append(_read_strengths(file))
    if not strengths_by_side:
        raise InputError(
            folder, None, f"has no {STRENGTHS}", "give a study with a method of relation_mask"
        )
    methods = list(dict.fromkeys(method for method, _ in strengths_by_side))
    baselines = (
        dict.fromkeys(methods, baseline) if baseline else _baselines(folder, recipe, methods)
    )
    _check_scored(path, results, [*baselines.values(), *baselines], metric)
    return [
        compute_row(strengths, results, (method, side), baselines[method], metric)
        for (method, side), strengths in strengths_by_side.items()
        if method in baselines
    ]


def _baselines(folder: Path, recipe: Recipe, methods: Sequence[str]) -> dict[str, str]:
    """The baseline of each method in the study's recipe; a method without one is left out."""
    rows = [row for row in recipe.methods if row.name in methods]
    pairs = {row.name: recipe.baseline_of(row) for row in rows}
    baselines = {name: row.name for name, row in pairs.items() if row is not None}
    if not baselines:
        raise InputError(
            folder,
            None,
            "has no baseline for its methods with masks",
            "give another with --baseline",
        )
    return baselines


def _check_scored(path: Path, results: Sequence[Result], names: Sequence[str], metric: str) -> None:
    scored = {result.method for result in results if result.metric == metric}
    for name in names:
        if name not in scored:
            metrics = ", ".join(sorted({result.metric for result in results}))
            raise InputError(
                path,
                None,
                f"has no {metric} of {name}",
                f"it has {', '.join(sorted({result.method for result in results}))} in {metrics}",
            )


def _read_strengths(path: Path) -> NDArray[np.float64]:
    try:
        values = np.array(json.loads(path.read_text(encoding="utf-8"))["strengths"], np.float64)
    except OSError as error:
        raise InputError(path, None, f"cannot be read ({error.strerror})") from None
    except (ValueError, TypeError, KeyError):
        values = np.zeros(0)
    if not values.size:
        raise InputError(
            path, None, "holds no strengths", "run treesyntax analyse mask_strengths again"
        )
    return values


def draw_rows(rows: Sequence[StrengthRow], metric: str) -> Figure:
    """Strengths on the left, gains on the right; the widest range is at the top."""
    baselines = {row.against for row in rows}
    baseline = baselines.pop() if len(baselines) == 1 else "the baseline"
    ordered = sorted(rows, key=lambda row: row.spread)
    figure = Figure(figsize=(8, 0.45 * len(ordered) + 1.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    heights = range(len(ordered))
    lows, highs = [row.minimum for row in ordered], [row.maximum for row in ordered]
    gains = [row.gain for row in ordered]
    left.hlines(heights, lows, highs, color="0.6", linewidth=2, zorder=1)
    left.plot(lows, heights, "o", color=BLUE, label="smallest")
    left.plot(highs, heights, "D", color=ORANGE, label="largest")
    right.hlines(heights, 0, gains, color="0.6", linewidth=2, zorder=1)
    right.plot(gains, heights, "s", color=BLUE)
    for panel in (left, right):
        panel.axvline(0, color="0.4", linewidth=0.8)
        panel.xaxis.set_major_locator(MaxNLocator(4))
    several = len({row.task for row in ordered}) < len(ordered)
    left.set_yticks(heights, [_name(row, several) for row in ordered])
    left.set_ylim(-0.6, len(ordered) - 0.4)
    left.set_ylabel("task")
    left.set_xlabel("strength s")
    right.set_xlabel(f"{metric} minus that of {baseline}")
    figure.legend(loc="outside upper center", ncols=2, frameon=False)
    return figure


def _name(row: StrengthRow, several: bool) -> str:
    side = " (decoder)" if row.side == "decoder" else ""
    return f"{row.task}, {row.method}{side}" if several else f"{row.task}{side}"


def table_rows(rows: Sequence[StrengthRow], metric: str) -> tuple[list[str], list[list[str]]]:
    """The header and the lines of the table, the widest range first."""
    header = [
        "task",
        "row",
        "smallest",
        "largest",
        "range",
        metric,
        "baseline",
        "its score",
        "difference",
        "runs",
    ]
    ordered = sorted(rows, key=lambda row: -row.spread)
    return header, [
        [
            row.task, row.method + (" (decoder)" if row.side == "decoder" else ""),
            signed(row.minimum), signed(row.maximum), f"{row.spread:.2f}", f"{row.score:.2f}",
            row.against, f"{row.baseline:.2f}", signed(row.gain, plus=True), f"{len(row.seeds)}, {len(row.baseline_seeds)}",
        ]
        for row in ordered
    ]  # fmt: skip


def analyse(studies: Sequence[Path], metric: str, baseline: str | None, out: Path) -> None:
    """Draw the strengths of several studies, and write the table and the numbers."""
    rows = [row for folder in studies for row in read_rows(folder, baseline, metric)]
    write_figure(draw_rows(rows, metric), out, NAME)
    header, lines = table_rows(rows, metric)
    write_table(Table(f"Range of mask strengths and {metric}", header, lines), out, NAME)
    tasks = [{**asdict(row), "range": row.spread, "gain": row.gain} for row in rows]
    write_numbers({"metric": metric, "tasks": tasks}, out, NAME)
