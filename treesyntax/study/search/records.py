"""``search.jsonl``: what each trial of a search gave, for good; the checkpoints of trials are not kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from treesyntax.errors import OptionError
from treesyntax.made.records import Lines
from treesyntax.study.recipe.search import METRICS, TRIALS_FILE, Settings
from treesyntax.study.run.logs import TrainLog


@dataclass(frozen=True)
class Record:
    """One trial: a row with one of the settings and one seed.

    Attributes:
        key: of its training command and data, see :mod:`treesyntax.study.run.keys`.
        figures: by metric the figures of the validation set, in the order of training.
        failed: why it gave none, "" otherwise.
        ended: how its training ended, see :attr:`treesyntax.study.results.results.Result.ended`.
        chosen: whether these settings won when the file was written.
    """

    row: str
    settings: Settings
    seed: int
    key: str
    figures: dict[str, list[float]]
    failed: str = ""
    chosen: bool = False
    ended: str | None = None


LINES = Lines(
    Record,
    "is not a trial of a search",
    "restore the line, or remove it to have the trial made again",
)


def read_records(folder: Path) -> list[Record]:
    """The trials of a study's folder, the later ones last.

    Raises:
        InputError: for a line that is no trial.
    """
    return LINES.read(folder / TRIALS_FILE)


def figures_of(log: TrainLog, metric: str) -> dict[str, list[float]]:
    """What a training said of the validation set: finite figures by metric.

    Args:
        log: of the training, read.
        metric: must be among them.

    Raises:
        OptionError: if it is not.
    """
    figures = log.figures
    if metric not in figures:
        known = ", ".join(name for name in METRICS if name in figures) or "none of them"
        raise OptionError(f"training reports no {metric} of the validation set, but {known}")
    return {
        name: [value for _, value in sorted(figures[name].items()) if math.isfinite(value)]
        for name in METRICS
        if name in figures
    }
