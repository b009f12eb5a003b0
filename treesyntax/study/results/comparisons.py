"""Comparisons of rows with their baselines, as they are kept in significance.json."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from treesyntax.files import write_json
from treesyntax.metrics import LOWER_IS_BETTER, plain_name
from treesyntax.metrics.runs import LEVEL
from treesyntax.study.results.conclusions import Conclusion, is_still_learning

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
        control_of: the row that this one is a control of; "" for none.
        still_learning: runs of the row and of its baseline that were still learning at their end, of those
            of which it is known.
        conclusion: what the row shows; None in other metrics than the primary one, and for controls.
        no_trees: the row or its baseline, if none of its outputs is a tree and trees are wanted; "" otherwise.
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
    control_of: str = ""
    still_learning: tuple[int, int] = (0, 0)
    conclusion: Conclusion | None = None
    no_trees: str = ""

    @property
    def tested(self) -> bool:
        """Whether there is a verdict: enough runs that were at rest, and scores between floor and ceiling."""
        if self.conclusion is not None and not self.conclusion.is_verdict:
            return False
        return self.p is not None and not is_still_learning(self.still_learning, self.runs)

    @property
    def significant(self) -> bool:
        """Whether there is a verdict, and the difference holds over runs and items after correction."""
        return self.tested and self.holm_p is not None and self.holm_p < LEVEL

    @property
    def in_family(self) -> bool:
        """Whether it is of the first family: rows that are concluded on, in their primary metrics."""
        return self.primary and not self.control_of

    @property
    def better(self) -> bool:
        """Whether the row is on the better side of its baseline."""
        lower = plain_name(self.metric) in LOWER_IS_BETTER
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
            "better": one.better,
            "significant": one.significant,
        }
        for one in comparisons
    ]
    content = {
        "level": LEVEL,
        "test": TEST,
        "checkpoint_test": CHECKPOINT_TEST,
        "correction": "Holm over the rows in their primary metrics, likewise against their controls, and over all others",
        "comparisons": stored,
    }
    write_json(folder / SIGNIFICANCE_FILE, content)
