"""Comparisons of rows with their baselines, as they are kept in significance.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from treesyntax.errors import InputError
from treesyntax.files import read_json, write_json
from treesyntax.metrics import LOWER_IS_BETTER, UNSEEN

SIGNIFICANCE_FILE = "significance.json"
LEVEL = 0.05
FEW_SEEDS = 3
"""With fewer, how much a method varies with its seed is not known."""


@dataclass(frozen=True)
class Comparison:
    """A row against its baseline in one metric.

    Attributes:
        seeds: those that both have; differences and tests are of these.
        lines: lines of the test set that count.
        difference: mean over seeds, row less baseline.
        test: the name of the test.
        p: probability of such a difference if the rows do not differ, uncorrected.
        bootstrap_p: by paired bootstrap resampling; None for metrics that judge each line.
        holm_p: ``p``, corrected for all tests of the study.
        key: a hash of all inputs of the test.
    """

    method: str
    baseline: str
    metric: str
    seeds: tuple[int, ...]
    lines: int
    difference: float
    test: str
    p: float
    bootstrap_p: float | None
    holm_p: float
    key: str

    @property
    def significant(self) -> bool:
        """Whether the difference holds after correction."""
        return self.holm_p < LEVEL

    @property
    def better(self) -> bool:
        """Whether the row is on the better side of its baseline."""
        lower = self.metric.removesuffix(UNSEEN) in LOWER_IS_BETTER
        return self.difference < 0 if lower else self.difference > 0


def read_comparisons(folder: Path) -> list[Comparison]:
    """The stored comparisons; none if the file is missing or of another version."""
    try:
        content = read_json(folder / SIGNIFICANCE_FILE)
        return [_comparison(values) for values in content["comparisons"]]
    except (InputError, KeyError, TypeError):
        return []


def _comparison(values: Mapping[str, object]) -> Comparison:
    known = {name: values[name] for name in Comparison.__dataclass_fields__}
    return Comparison(**{**known, "seeds": tuple(values["seeds"])})  # type: ignore[arg-type]


def write_comparisons(folder: Path, comparisons: Sequence[Comparison]) -> None:
    """Write ``significance.json``."""
    content = {
        "level": LEVEL,
        "correction": f"Holm over {len(comparisons)} tests",
        "comparisons": [
            {**asdict(one), "better": one.better, "significant": one.significant}
            for one in comparisons
        ],
    }
    write_json(folder / SIGNIFICANCE_FILE, content)
