"""How much data a row is worth: curves of score by training pairs, where an axis of a recipe varies these.

Training sets differ along the axis, the validation and test set do not. The number is how many times the
pairs of a row its baseline needs to reach the row's score (:func:`treesyntax.metrics.worth.data_worth`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treesyntax.metrics import LOWER_IS_BETTER, UNSEEN, plain_name
from treesyntax.metrics.conclusions import MOST_LEARNING
from treesyntax.metrics.runs import FEWEST_RUNS
from treesyntax.metrics.worth import Curve, Times, Worth, data_worth
from treesyntax.palette import line_of, plain_panel
from treesyntax.study.report.table_notes import HIGHEST, LOWEST
from treesyntax.study.results.item_scores import ItemScores
from treesyntax.study.results.results import Result
from treesyntax.study.results.rows import ItemRow

if TYPE_CHECKING:  # matplotlib is loaded by those who draw
    from matplotlib.figure import Figure

WORTH_FILE = "worth.csv"
WORTH_HEADER = ("row", "pairs", "score", "baseline", "baseline's score", "worth")
WORTH_COLUMNS = (
    "row", "metric", "pairs", "score", "low", "high", "runs", "baseline", "times", "times_low", "times_high",
)  # fmt: skip


@dataclass(frozen=True)
class RowWorth:
    """How much data a row is worth.

    Attributes:
        row: its name at all numbers of pairs.
        baseline: that of its baseline.
        metric: that decides.
        curve: the row's.
        other: the baseline's.
        times: the factor at each number of pairs.
        without: why no factor is told; "" where it is.
        left_out: points with too few runs, or with as many pairs as another, through which the curves go as if they
            had not been trained.
    """

    row: str
    baseline: str
    metric: str
    curve: Curve
    other: Curve
    times: tuple[Times, ...]
    without: str = ""
    left_out: tuple[str, ...] = ()

    def cells(self) -> list[list[str]]:
        """The texts of the table's lines."""
        others = dict(zip(self.other.pairs, self.other.scores, strict=True))
        return [
            [
                self.row, f"{times.pairs:,}", f"{score:.2f}", self.baseline,
                f"{others[times.pairs]:.2f}" if times.pairs in others else "–",
                "–" if self.without else str(times),
            ]
            for times, score in zip(self.times, self.curve.scores, strict=True)
        ]  # fmt: skip

    def numbers(self) -> list[list[object]]:
        """The lines of the file: the row's, with the factors, and the baseline's."""
        lines: list[list[object]] = []
        for name, curve in ((self.row, self.curve), (self.baseline, self.other)):
            for point in zip(*curve, strict=True):
                pairs, score, low, high, runs = point
                shown = name == self.row and not self.without
                times = [factor for factor in self.times if factor.pairs == pairs and shown]
                factors = [times[0].times, times[0].low, times[0].high] if times else [""] * 3
                of = self.baseline if name == self.row else ""
                lines.append([name, self.metric, pairs, score, low, high, runs, of, *factors])
        return lines


def worth_numbers(row_worths: Sequence[RowWorth]) -> list[list[object]]:
    """The lines of the file; each curve stands there once, however many rows have it for a baseline."""
    lines = [line for row_worth in row_worths for line in row_worth.numbers()]
    once: dict[tuple[object, ...], list[object]] = {}
    for line in sorted(lines, key=lambda line: not line[7]):  # with a factor before without
        once.setdefault(tuple(line[:3]), line)
    return list(once.values())


def find_worth(
    scores: ItemScores, rows: Sequence[ItemRow], results: Sequence[Result]
) -> list[RowWorth]:
    """How much data each row is worth that was trained on several numbers of pairs, as its baseline was.

    Metrics of lines that training does not have count other lines at each number of pairs, so they have no curve.
    """
    pairs = _pairs(results)
    groups: dict[tuple[str, str], dict[int, ItemRow]] = {}
    few: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        if not row.curve or row.row not in pairs or UNSEEN in row.primary:
            continue
        curve = (row.test_set, row.curve)
        runs = len(scores.lines.seeds(row.row, row.primary))
        if row.asked not in ("", row.row) and not row.baseline:
            few.setdefault(curve, []).append(f"{row.row} of other code than {row.asked}")
        elif runs >= FEWEST_RUNS:
            size = pairs[row.row]
            known = groups.setdefault(curve, {}).setdefault(size, row)
            if known is not row:
                few.setdefault(curve, []).append(f"{row.row} with {size:,} pairs as {known.row}")
        else:
            few.setdefault(curve, []).append(f"{row.row} with {runs} of {FEWEST_RUNS} runs")
    curve_of = {row.row: (row.test_set, row.curve) for row in rows}
    row_worths = []
    for group, row_points in groups.items():
        bases = {curve_of[row.baseline] for row in row_points.values() if row.baseline in curve_of}
        baseline_points = groups.get(next(iter(bases)), {}) if len(bases) == 1 else {}
        if len(baseline_points) < 2:
            continue
        first, metric = (
            next(iter(baseline_points.values())),
            next(iter(row_points.values())).primary,
        )
        tables = [
            {size: scores.table(row.row, first.row, metric) for size, row in side.items()}
            for side in (row_points, baseline_points)
        ]
        lower = plain_name(metric) in LOWER_IS_BETTER
        copies = scores.copies(first.row, metric)
        worth = data_worth(tables[0], tables[1], copies, lower_is_better=lower)
        names = (group[1], next(iter(bases))[1])
        without = _still_learning(scores, (row_points, baseline_points), metric) or _at_an_end(
            worth, metric
        )
        left_out = [text for curve in (group, next(iter(bases))) for text in few.get(curve, ())]
        row_worths.append(RowWorth(
            *names, metric, worth.row, worth.baseline, worth.times, without, tuple(left_out)
        ))  # fmt: skip
    return row_worths


def _still_learning(scores: ItemScores, sides: Sequence[Mapping[int, ItemRow]], metric: str) -> str:
    """Which curve had more than a third of its runs still learning at their end; "" for none."""
    for side in sides:
        runs = sum(len(scores.lines.seeds(row.row, metric)) for row in side.values())
        learning = sum(scores.still_learning(row.row, metric) for row in side.values())
        if learning > MOST_LEARNING * runs:
            name = next(iter(side.values())).curve
            return f"{learning} of {runs} runs of {name} were still learning when they ended: train longer"
    return ""


def _at_an_end(worth: Worth, metric: str) -> str:
    """Whether all scores of both curves are close to the lowest or the highest one; "" if they are not."""
    if plain_name(metric) in LOWER_IS_BETTER:
        return ""
    scores = [*worth.row.scores, *worth.baseline.scores]
    if max(scores) < LOWEST:
        return f"all scores are below {LOWEST:g}"
    return f"all scores are above {HIGHEST:g}" if min(scores) > HIGHEST else ""


def _pairs(results: Sequence[Result]) -> dict[str, int]:
    """By row the number of its training pairs, as its trainings told it."""
    pairs = {}
    for result in results:
        try:
            pairs[result.method] = int(json.loads(result.used or "")["train"]["pairs"])
        except (ValueError, TypeError, LookupError):
            continue
    return pairs


def without_curves(rows: Sequence[ItemRow]) -> list[str]:
    """Which metrics have no curves, and why."""
    metrics = dict.fromkeys(row.primary for row in rows if row.curve and UNSEEN in row.primary)
    return [
        f"There are no curves in {metric}: each training set leaves other test lines unseen; let primary name a metric "
        "of all lines"
        for metric in metrics
    ]


def worth_lines(row_worths: Sequence[RowWorth]) -> list[str]:
    """What each row is worth at its fewest pairs, where its baseline has most data left to catch up."""
    lines = []
    for row_worth in row_worths:
        begin = f"{row_worth.row} with {row_worth.times[0].pairs:,} pairs: {row_worth.baseline}"
        lines.append(
            f"{begin} is not compared, {row_worth.without}"
            if row_worth.without
            else f"{begin} needs {row_worth.times[0]}"
        )
        if row_worth.left_out:
            lines.append(f"Not in these curves: {', '.join(row_worth.left_out)}")
    return list(dict.fromkeys(lines))


def draw_worth(row_worths: Sequence[RowWorth]) -> Figure:
    """Score by training pairs on a logarithmic axis, with 95 % intervals; at least one row."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    figure = Figure(figsize=(6, 3.8), layout="constrained")
    panel = figure.subplots()
    curves: Mapping[str, Curve] = {
        row_worth.baseline: row_worth.other for row_worth in row_worths
    } | {row_worth.row: row_worth.curve for row_worth in row_worths}
    for number, (name, curve) in enumerate(curves.items()):
        style: dict[str, Any] = line_of(number)
        panel.fill_between(curve.pairs, curve.low, curve.high, color=style["color"], alpha=0.15, linewidth=0)  # fmt: skip
        panel.plot(curve.pairs, curve.scores, **style, markersize=5, label=name)
    sizes = sorted({size for curve in curves.values() for size in curve.pairs})
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(FixedLocator(sizes))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    panel.set_xlabel("training pairs")
    panel.set_ylabel(" or ".join(dict.fromkeys(row_worth.metric for row_worth in row_worths)))
    plain_panel(panel)
    panel.legend(frameon=False)
    return figure
