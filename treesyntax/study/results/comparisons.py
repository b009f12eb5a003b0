"""Comparisons of rows with their baselines, as they are kept in significance.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from treesyntax.files import write_json
from treesyntax.metrics import LOWER_IS_BETTER, UNSEEN
from treesyntax.metrics.runs import LEVEL

SIGNIFICANCE_FILE = "significance.json"
TEST = "crossed t over training runs and test items (treesyntax.metrics.compare_runs)"
CHECKPOINT_TEST = "random signs over items, runs as fixed (treesyntax.metrics.checkpoint_p)"


@dataclass(frozen=True)
class Comparison:
    """A row against its baseline in one metric.

    Attributes:
        runs: training runs of the row and of the baseline, all that have this score.
        seeds: how many seeds the recipe has.
        items: distinct pairs of source and reference.
        lines: lines of the test set in which these stand.
        difference: mean of the row's runs less that of the baseline's, in points.
        low: lower end of the 95 % interval of the difference; None with fewer than 3 runs a side,
            and where nothing varies between runs or items.
        high: its upper end.
        p: of no difference, over runs and items, uncorrected; None with fewer than 3 runs a side.
        holm_p: ``p``, corrected for the tests of its family.
        smallest: the true difference that this many runs and items find in 80 % of cases.
        checkpoint_p: of no difference between these checkpoints on other lines. It says nothing
            about the methods.
        primary: whether it belongs to the primary metric's family; others are a second one.
        same_as: the primary metric, or an earlier one, with the same score of every item and run, which
            is the same test; "" for none.
        scores: a hash of all scores by item and run.
        error: the standard error of the difference; None as ``low``.
        floor: which part of the variance was estimated below 0 and counts as 0
            (:class:`treesyntax.metrics.runs.RunComparison`).
        lopsided: whether runs of the row or its baseline lie close to the lowest or highest score.
    """

    method: str
    baseline: str
    metric: str
    runs: tuple[int, int]
    seeds: int
    items: int
    lines: int
    difference: float
    low: float | None
    high: float | None
    p: float | None
    holm_p: float | None
    smallest: float | None
    checkpoint_p: float
    primary: bool
    same_as: str
    scores: str
    error: float | None = None
    floor: str = ""
    lopsided: bool = False

    @property
    def significant(self) -> bool:
        """Whether the difference holds over runs and items after correction."""
        return self.holm_p is not None and self.holm_p < LEVEL

    @property
    def better(self) -> bool:
        """Whether the row is on the better side of its baseline."""
        lower = self.metric.removesuffix(UNSEEN) in LOWER_IS_BETTER
        return self.difference < 0 if lower else self.difference > 0

    @property
    def complete(self) -> bool:
        """Whether every seed of the recipe is in it, on both sides."""
        return min(self.runs) == self.seeds


def write_comparisons(folder: Path, comparisons: Sequence[Comparison]) -> None:
    """Write ``significance.json``."""
    stored = [
        {
            **asdict(one),
            "runs": list(one.runs),
            "better": one.better,
            "significant": one.significant,
        }
        for one in comparisons
    ]
    content = {
        "level": LEVEL,
        "test": TEST,
        "checkpoint_test": CHECKPOINT_TEST,
        "correction": "Holm over the rows in their primary metrics, and over all others",
        "comparisons": stored,
    }
    write_json(folder / SIGNIFICANCE_FILE, content)
