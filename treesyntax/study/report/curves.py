"""The learning curves of a study, and the colour that each row has in all figures."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from treesyntax.palette import COLOURS, line_of, plain_panel
from treesyntax.study.recipe.recipe import Recipe
from treesyntax.study.results.domains import Domain, find_domains
from treesyntax.study.results.results import Result

if TYPE_CHECKING:  # matplotlib is loaded by those who draw
    from matplotlib.figure import Figure

Curve = Mapping[int, float]
"""Validation loss by update."""
Lines = Mapping[str, Mapping[str, Any]]
"""By row its colour, marker and style of line, as matplotlib names them."""

TOLD_APART = 28
"""The most rows that a figure tells apart; with more, all look alike or have no legend."""


def lines_of(recipe: Recipe) -> dict[str, dict[str, Any]]:
    """How each row of a study is drawn, the same in all figures of its report."""
    known = find_domains(recipe)
    return lines_by_row({
        row.name: known.get(row.name, Domain("", row.name)) for row in recipe.methods
    })  # fmt: skip


def lines_by_row(rows: Mapping[str, Domain]) -> dict[str, dict[str, Any]]:
    """The same of all rows by name, in the order of their recipe.

    The rows of a system on several test sets have its colour, and other markers and styles.
    """
    sets = list(dict.fromkeys(domain.name for domain in rows.values()))
    systems = list(dict.fromkeys(domain.system for domain in rows.values()))
    rounds, many = -(-len(systems) // len(COLOURS)), len(COLOURS)
    styles = {}
    for name, (test_set, system) in rows.items():
        number = systems.index(system)
        again = number // many + rounds * sets.index(test_set)
        styles[name] = line_of(number % many + many * again)
    return styles


def mean_curve(curves: Sequence[Curve]) -> dict[int, float]:
    """The mean over seeds, at those updates that all curves have."""
    shared = set(curves[0]).intersection(*curves[1:]) if curves else set()
    return {update: fmean(curve[update] for curve in curves) for update in sorted(shared)}


def targets_note(groups: Sequence[Sequence[str]], curves: Mapping[str, object]) -> list[str]:
    """A note where drawn rows predict different target tokens, of which a bit is another measure.

    Args:
        groups: rows with the same target tokens.
        curves: by the rows that are drawn.
    """
    drawn = [", ".join(name for name in group if name in curves) for group in groups]
    drawn = [names for names in drawn if names]
    if len(drawn) < 2:
        return []
    return [
        "These rows have different target tokens: validation losses, accuracies and bits a token "
        f"cannot be compared between them; compare them only within each of these groups: {' | '.join(drawn)}"
    ]


def not_ended(
    results: Sequence[Result],
    curves: Mapping[str, Sequence[Curve]],
    averaged: bool,
    longer: str = "",
) -> list[str]:
    """A note if training still improved when it stopped.

    Args:
        results: of the runs.
        curves: by row, a curve a run.
        averaged: whether the last checkpoints are tested, so that none was chosen as the best;
            then the loss of validation tells.
        longer: the command that trains longer, "" for none.
    """
    if averaged:
        last = {
            name: (
                sum(min(curve, key=curve.get) == max(curve) for curve in row_curves),  # type: ignore[arg-type]
                len(row_curves),
            )
            for name, row_curves in curves.items()
        }
        what = "validation loss was lowest at the last update of"
    else:
        ends: dict[str, dict[int, bool]] = {}
        for result in results:
            ends.setdefault(result.method, {})[result.seed] = result.best_update >= result.updates
        last = {name: (sum(seeds.values()), len(seeds)) for name, seeds in ends.items()}
        what = "the best checkpoint was the last one of"
    texts = [f"{name} ({count} of {runs} runs)" for name, (count, runs) in last.items() if count]
    if not texts:
        return []
    return [
        f"Training had not ended: {what} {', '.join(texts)}. Longer training may change the scores "
        f"and their order{longer and f'. Train twice as long: {longer}'}"
    ]


def draw_curves(curves: Mapping[str, Sequence[Curve]], lines: Lines) -> Figure:
    """Draw the curves of each method's seeds: the mean as a thick line, each seed as a thin one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.8), layout="constrained")
    panel = figure.subplots()
    for method, seeds in curves.items():
        colour, style = lines[method]["color"], lines[method]["linestyle"]
        for curve in seeds:
            panel.plot(*_points(curve), colour, linewidth=0.7, alpha=0.5, linestyle=style)
        mean = mean_curve(seeds)
        alone = "o" if len(mean) == 1 else "None"  # a line of one point cannot be seen
        panel.plot(*_points(mean), colour, linewidth=2, linestyle=style, marker=alone, label=method)
    panel.set_xlabel("update")
    panel.set_ylabel("validation loss (bits a target token)")
    plain_panel(panel)
    if curves and told_apart(lines, curves, "linestyle"):
        panel.legend(frameon=False)
    return figure


def told_apart(lines: Lines, rows: Collection[str], by: str) -> bool:
    """Whether rows have different colours or differ in their markers or styles, and are not too many."""
    marks = {(lines[name]["color"], lines[name][by]) for name in rows}
    return len(marks) == len(rows) <= TOLD_APART


def _points(curve: Curve) -> tuple[list[int], list[float]]:
    updates = sorted(curve)
    return updates, [curve[update] for update in updates]


def data_uri(svg: bytes) -> str:
    """An SVG file for an ``<img>`` of a page: as an image it runs no script and fetches nothing."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")
